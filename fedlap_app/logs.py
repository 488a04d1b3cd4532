"""Log lines in the form and to the place that the environment asks for.

``FEDLAP_LOG=json`` makes every line one JSON object, and ``FEDLAP_LOG_FILE`` names a file that gets
the lines as well: Flower throws away what a ClientApp prints. ``fedlap``, the ServerApp and the
ClientApps look there; SuperLink, SuperNode and SuperExec write Flower's usual lines.
"""

import json
import logging
import os
import sys
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from fedlap_app.errors import ConfigError

FORM, FILE = "FEDLAP_LOG", "FEDLAP_LOG_FILE"
_FORMS = ("text", "json")
_LOGGERS = ("flwr", "fedlap")
_BYTES, _FILES = 10_000_000, 3
_given_up: set[str] = set()


class JsonFormatter(logging.Formatter):
    """One JSON object: time, level, logger, message, and the facts of the line if it has some."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        facts: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
        }
        facts.update(getattr(record, "facts", {}))
        if record.exc_info:
            facts["trace"] = self.formatException(record.exc_info)
        return json.dumps(facts, ensure_ascii=False, default=str)


class LogFile(RotatingFileHandler):
    """A file that its owner alone may read, and that does not grow for ever.

    When it cannot be written, because it is a folder or the disk is full, that is told once, and
    the loggers do without it.

    Parameters
    ----------
    path
        The file; its folder is made if it is missing.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=_BYTES, backupCount=_FILES, encoding="utf-8", delay=True)

    def prepare(self) -> None:
        """Make the file, or give it up."""
        path = Path(self.baseFilename)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            with path.open("a"):
                pass
        except OSError as error:
            self._give_up(error)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Give the file up when a line cannot be written to it."""
        error = sys.exc_info()[1]
        if isinstance(error, OSError):
            self._give_up(error)
        else:
            super().handleError(record)

    def _give_up(self, error: OSError) -> None:
        _given_up.add(self.baseFilename)
        for name in _LOGGERS:
            logging.getLogger(name).removeHandler(self)
        logging.getLogger("fedlap").warning(
            "%s = %s cannot be written (%s): name another file",
            FILE,
            self.baseFilename,
            error.strerror,
        )


def wants_json() -> bool:
    """Whether the environment asks for lines of JSON."""
    return os.environ.get(FORM, "").lower() == "json"


def use_logs_as_asked() -> None:
    """Give the loggers of Flower and of this app the handlers that the environment asks for."""
    form = os.environ.get(FORM, "").lower() or "text"
    if form not in _FORMS:
        raise ConfigError(f"{FORM} = {form!r}: choose one of {', '.join(_FORMS)}")
    handlers: list[logging.Handler] = []
    if form == "json":
        handlers.append(logging.StreamHandler())
    file = Path(os.environ.get(FILE, "")).expanduser().absolute()
    if os.environ.get(FILE) and str(file) not in _given_up:
        handlers.append(LogFile(file))
    plain = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    for handler in handlers:
        handler.setFormatter(JsonFormatter() if form == "json" else plain)
        handler.setLevel(logging.INFO)
        handler.addFilter(lambda record: bool(record.getMessage().strip()))
    for name in _LOGGERS if handlers else ():
        logger = logging.getLogger(name)
        # Flower's own handler colours its lines and ignores formatters: for JSON it makes way.
        old = [] if form == "json" else logger.handlers
        logger.handlers = [*(each for each in old if not isinstance(each, LogFile)), *handlers]
        logger.propagate = form != "json" and name == "fedlap"
    if handlers:
        logging.getLogger("fedlap").setLevel(logging.INFO)
    for handler in handlers:
        if isinstance(handler, LogFile):
            handler.prepare()
