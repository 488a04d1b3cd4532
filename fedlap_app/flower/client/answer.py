"""From a handler to a reply: a failure becomes one sentence that shows nothing of the data."""

import errno
import logging
import os
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, RecordDict

from fedlap_app.errors import DataError, FedLapError, UnwritableError
from fedlap_app.flower.client.organisation import organisation_of
from fedlap_app.graphs.organisation import read_organisation
from fedlap_app.methods.organisation import Organisation
from fedlap_app.store import names, places
from fedlap_app.store.folders import Folder, StoreError

Handler = Callable[[Organisation, RecordDict], RecordDict]
REFUSAL = "refusal"
UNFORESEEN = "unforeseen"
"""In a refusal: what failed was foreseen nowhere, so that it is a fault of this app."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
_FILES = (errno.EMFILE, errno.ENFILE)
_SHORT = {errno.ENOMEM: "memory", **dict.fromkeys(_FILES, "open files")}

_log = logging.getLogger("fedlap")


def answer(message: Message, context: Context, handler: Handler) -> Message:
    """Reply of the handler, or a refusal with a reason."""
    who, started = _provisional_name(context), time.perf_counter()
    try:
        organisation = organisation_of(context)
        who = organisation.name
        content = handler(organisation, message.content)
    except Exception as error:
        content = _refusal(error, context, who)
    _note(message, who, content, time.perf_counter() - started)
    return Message(content, reply_to=message)


def refuse(message: Message, context: Context, error: Exception) -> Message:
    """Refusal of a message that reaches no handler."""
    who = _provisional_name(context)
    content = _refusal(error, context, who)
    _note(message, who, content, 0.0)
    return Message(content, reply_to=message)


def _refusal(error: Exception, context: Context, who: str) -> RecordDict:
    said = ConfigRecord({"who": who, "reason": _public_reason(error, context)})
    if not isinstance(error, FedLapError) and _fault(error) not in (*_FULL, *_REFUSED, *_FILES):
        said[UNFORESEEN] = True
    return RecordDict({REFUSAL: said})


def _note(message: Message, who: str, content: RecordDict, seconds: float) -> None:
    """A line in the organisation's own log."""
    kind, did = message.metadata.message_type, "answered"
    if (refusal := content.get(REFUSAL)) is not None:
        did = "failed at" if UNFORESEEN in refusal else "refused"
    facts = {
        "run": message.metadata.run_id,
        "organisation": who,
        "request": kind,
        "outcome": did,
        "seconds": round(seconds, 3),
    }
    _log.info("%s %s %s in %.2f s", who, did, kind, seconds, extra={"facts": facts})


def _provisional_name(context: Context) -> str:
    """Name of a client whose data could not be read."""
    if "data-dir" in context.node_config:
        folder = Path(str(context.node_config["data-dir"]))
        try:
            return read_organisation(folder).name
        except (FedLapError, OSError):
            return folder.name
    return f"client {context.node_config.get('partition-id', 'without a number')}"


def _public_reason(error: Exception, context: Context) -> str:
    """What the server may read: details that could quote data or paths stay in a local file."""
    if _fault(error) in _FULL:
        _log.error("The disk is full: %s", error)
        return (
            "its disk is full; free some space there, then start the run again, which goes on "
            "where it stopped"
        )
    lacking = _SHORT.get(errno.ENOMEM if isinstance(error, MemoryError) else _fault(error))
    if lacking is not None:
        _log.error("There is not enough room for more %s", lacking, exc_info=error)
        return (
            f"its process has not enough {lacking}: allow it more there, then start the run again, "
            "which goes on where it stopped"
        )
    if _fault(error) in _REFUSED and isinstance(error, OSError | UnwritableError | StoreError):
        _log.error("The store cannot be written: %s", error)
        return (
            f"its store cannot be written ({os.strerror(_fault(error)).lower()}): let its "
            "processes write there or set another store-dir, then start the run again, which goes "
            "on where it stopped"
        )
    if isinstance(error, FedLapError) and not isinstance(error, DataError | StoreError):
        return _without_places(str(error), context)
    written = _write_details(error, context)
    if written is None:
        _log.error("This organisation cannot go on, and cannot write it down", exc_info=error)
    else:
        _log.error("This organisation cannot go on; the reason is in %s", written)
    if isinstance(error, DataError):
        return "its data cannot be used; `fedlap check` on its folder, there, says why"
    if isinstance(error, StoreError):
        return "its store cannot be used; its own log says why"
    where = "its own log" if written is None else "its file errors.log"
    return f"{type(error).__name__} in the client; {where} has the details"


def _without_places(sentence: str, context: Context) -> str:
    """The sentence without the organisation's folders, which are nobody's business."""
    for key in ("store-dir", "data-dir", "federation"):
        place = str(context.node_config.get(key, ""))
        if place:
            sentence = sentence.replace(f"{place.rstrip(os.sep)}{os.sep}", "")
            sentence = sentence.replace(place, Path(place).name)
    return sentence


def _fault(error: BaseException | None) -> int:
    """What the system said that is behind an error, or behind one that it replaced; 0: nothing."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (*_FULL, *_REFUSED, *_SHORT):
            return error.errno
        error = error.__cause__ or error.__context__
    return 0


def _write_details(error: Exception, context: Context) -> Path | None:
    """Write the whole error where only the organisation can read it; None: it cannot be."""
    folder = Folder(_details_folder(context))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    trace = "".join(traceback.format_exception(error))
    try:
        folder.append_line(names.ERRORS, f"{now} {error}\n{trace}")
    except OSError:
        return None
    return folder.path / names.ERRORS


def _details_folder(context: Context) -> Path:
    own = [key for key in ("store-dir", "data-dir") if key in context.node_config]
    for key in own:
        folder = Path(str(context.node_config[key]))
        if folder.is_dir():
            return folder if key == "store-dir" else places.own_store(folder)
    # The run says where the stores of a simulation are, and of nothing else.
    root = (not own and context.run_config.get("store-dir")) or places.stores_dir()
    return Path(str(root)) / f"partition-{context.node_config.get('partition-id', 'unknown')}"
