"""Log lines in the form and to the place that the environment asks for.

``FEDLAP_LOG=json`` makes every line one JSON object, and ``FEDLAP_LOG_FILE`` names a file that gets
the lines as well: Flower throws away what a ClientApp prints. ``fedlap``, the ServerApp and the
ClientApps look there; SuperLink, SuperNode and SuperExec write Flower's usual lines.
"""

import json
import logging
import os
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from fedlap_app.errors import ConfigError

FORM, FILE = "FEDLAP_LOG", "FEDLAP_LOG_FILE"
_FORMS = ("text", "json")
_LOGGERS = ("flwr", "fedlap")
_BYTES, _FILES = 10_000_000, 3


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


def use_logs_as_asked() -> None:
    """Give the loggers of Flower and of this app the handlers that the environment asks for."""
    form = os.environ.get(FORM, "").lower() or "text"
    if form not in _FORMS:
        raise ConfigError(f"{FORM} = {form!r}: choose one of {', '.join(_FORMS)}")
    handlers: list[logging.Handler] = []
    if form == "json":
        handlers.append(logging.StreamHandler())
    if os.environ.get(FILE):
        handlers += _file(Path(os.environ[FILE]).expanduser())
    plain = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    for handler in handlers:
        handler.setFormatter(JsonFormatter() if form == "json" else plain)
        handler.setLevel(logging.INFO)
        handler.addFilter(lambda record: bool(record.getMessage().strip()))
    for name in _LOGGERS if handlers else ():
        logger = logging.getLogger(name)
        # Flower's own handler colours its lines and ignores formatters: for JSON it makes way.
        old = [] if form == "json" else [each for each in logger.handlers if not _is_file(each)]
        logger.handlers = [*old, *handlers]
        logger.propagate = form != "json" and name == "fedlap"
    if handlers:
        logging.getLogger("fedlap").setLevel(logging.INFO)


def _file(path: Path) -> list[logging.Handler]:
    """A file that its owner alone may read, and that does not grow for ever.

    A file that cannot be written, on a full disk say, is told and does without.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError as error:
        logging.getLogger("fedlap").warning(
            "%s = %s cannot be written (%s): name another file", FILE, path, error.strerror
        )
        return []
    return [
        RotatingFileHandler(path, maxBytes=_BYTES, backupCount=_FILES, encoding="utf-8", delay=True)
    ]


def _is_file(handler: logging.Handler) -> bool:
    return isinstance(handler, RotatingFileHandler)
