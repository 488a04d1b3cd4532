"""The version, which all who take part in a run compare."""

VERSION = "0.1.0"
