"""The Python API: organisations in, a run with its model, scores and predictions out."""
