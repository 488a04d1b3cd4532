"""Log lines as JSON, one object a line, when ``FEDLAP_LOG=json`` is in the environment.

Every process of the app looks there: ``fedlap``, the ServerApp and the ClientApps, which inherit
the environment of their SuperExec. Flower's own processes write their usual lines.
"""

import json
import logging
import os
from datetime import UTC, datetime
from typing import Any

from fedlap_app.errors import ConfigError

VARIABLE = "FEDLAP_LOG"
_FORMS = ("text", "json")
_LOGGERS = ("flwr", "fedlap")


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


def use_json_logs_if_asked() -> None:
    """Let the loggers of Flower and of this app write JSON, if the environment says so."""
    form = os.environ.get(VARIABLE, "").lower() or "text"
    if form not in _FORMS:
        raise ConfigError(f"{VARIABLE} = {form!r}: choose one of {', '.join(_FORMS)}")
    if form == "text":
        return
    # Flower's own handler colours its lines and ignores formatters: it makes way.
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    handler.setLevel(logging.INFO)
    handler.addFilter(lambda record: bool(record.getMessage().strip()))
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
