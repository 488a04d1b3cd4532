"""From a handler to a reply: a failure becomes one sentence that shows nothing of the data."""

import logging
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, RecordDict

from client_app.organisation import Organisation, organisation_of
from client_app.store import Folder
from fedlap_app import places
from fedlap_app.errors import DataError, FedLapError

Handler = Callable[[Organisation, RecordDict], RecordDict]
REFUSAL = "refusal"

_log = logging.getLogger("fedlap")


def answer(message: Message, context: Context, handler: Handler) -> Message:
    """Reply of the handler, or a refusal with a reason."""
    who = _provisional_name(context)
    try:
        organisation = organisation_of(context)
        who = organisation.name
        content = handler(organisation, message.content)
    except Exception as error:
        refusal = ConfigRecord({"who": who, "reason": _public_reason(error, context)})
        content = RecordDict({REFUSAL: refusal})
    return Message(content, reply_to=message)


def _provisional_name(context: Context) -> str:
    """Name of a client whose data could not be read."""
    if "data-dir" in context.node_config:
        return Path(str(context.node_config["data-dir"])).name
    return f"client {context.node_config.get('partition-id', 'without a number')}"


def _public_reason(error: Exception, context: Context) -> str:
    """What the server may read: details that could quote data stay in a local file."""
    if isinstance(error, FedLapError) and not isinstance(error, DataError):
        return str(error)
    where = _write_details(error, context)
    _log.error("This organisation cannot go on; the reason is in %s", where)
    if isinstance(error, DataError):
        return "its data cannot be used; `fedlap check` on its folder, there, says why"
    return f"{type(error).__name__} in the client; its file errors.log has the details"


def _write_details(error: Exception, context: Context) -> Path:
    """Write the whole error where only the organisation can read it."""
    folder = Folder(_details_folder(context))
    time = datetime.now(UTC).isoformat(timespec="seconds")
    folder.append_line(
        "errors.log", f"{time} {error}\n{''.join(traceback.format_exception(error))}"
    )
    return folder.path / "errors.log"


def _details_folder(context: Context) -> Path:
    for key in ("store-dir", "data-dir"):
        folder = Path(str(context.node_config.get(key, "")))
        if key in context.node_config and folder.is_dir():
            return folder if key == "store-dir" else folder / "store"
    return places.stores_dir() / f"partition-{context.node_config.get('partition-id', 'unknown')}"
