"""The errors that users see: one sentence with the value, what was expected and what to do."""


class FedLapError(Exception):
    """Base of every error that a command shows as one sentence."""


class DataError(FedLapError):
    """A file, data set or graph is not what it should be.

    The sentence may quote node ids, so it is for the owner of the data only and never sent.
    """


class ConfigError(FedLapError):
    """A setting is unknown, of the wrong type or out of range."""


class ProtocolError(FedLapError):
    """A message between parties is missing, altered, stale or out of order."""


class RunError(FedLapError):
    """A run cannot go on, for example because an organisation failed or is missing."""


class ConsentError(RunError):
    """An organisation's own limits do not allow what a run asks of it."""


class UnwritableError(RunError):
    """A file of a store cannot be written; the sentence names it without its folders."""
