"""How much of Flower's log a command shows, in which form, and how it takes its end."""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from fedlap_app.logs import use_logs_as_asked


def set_verbosity(verbose: bool) -> None:
    """Show Flower's log lines, or only errors; Flower sets the level when it is imported."""
    import flwr.common.logger  # noqa: F401

    use_logs_as_asked()
    logging.getLogger("flwr").setLevel(logging.INFO if verbose else logging.ERROR)


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM, which services and containers send, do what Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
