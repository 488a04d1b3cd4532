"""How much of Flower's log a command shows."""

import logging


def set_verbosity(verbose: bool) -> None:
    """Show Flower's log lines, or only errors; Flower sets the level when it is imported."""
    import flwr.common.logger  # noqa: F401

    logging.getLogger("flwr").setLevel(logging.INFO if verbose else logging.ERROR)
