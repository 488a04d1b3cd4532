"""The paper's tables and figures, measured here: methods, data sets and divisions side by side."""
