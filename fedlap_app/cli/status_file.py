"""What the files of a run folder say about how the run stands, and whether they can be believed."""

import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.store import names

_Facts = dict[str, tuple[type, ...]]
_FACTS: _Facts = {
    "run": (int, str),
    "state": (str,),
    "reason": (str,),
    "phase": (str,),
    "progress": (dict,),
    "updated": (str,),
    "host": (str,),
    "pid": (int,),
    "organisations": (dict,),
}
_PROGRESS: _Facts = {"done": (int,), "total": (int,), "unit": (str,)}
_ORGANISATION: _Facts = {
    "last_seen": (str, type(None)),
    "bytes_up": (int,),
    "bytes_down": (int,),
    "retries": (int,),
}
_ERROR: _Facts = {"error": (str,)}
_PIDS = range(1, 2**31)


def read_status(folder: Path) -> dict[str, Any]:
    """What the run wrote about itself, with what became of its process."""
    found = _stated(folder / names.STATUS) or _ended(folder)
    age = (datetime.now(UTC) - datetime.fromisoformat(found["updated"])).total_seconds()
    found["silent_seconds"] = round(max(age, 0.0), 1)
    if found["state"] == "running" and _is_dead(found):
        found["state"] = "died"
        found["reason"] = "its process is gone: start the run again, which goes on where it can"
    return {**found, "run_folder": str(folder)}


def _stated(path: Path) -> dict[str, Any] | None:
    """The status that a run keeps; None: it keeps none."""
    if not path.exists():
        return None
    found = _read(path, _FACTS)
    _check(path, "", {"training": "", **found}, {"training": (str,)})
    _check(path, "progress", found["progress"], _PROGRESS)
    _check_time(path, "updated", found["updated"])
    if found["pid"] not in _PIDS:
        raise _damaged(path, f"pid is {found['pid']}")
    for name, facts in found["organisations"].items():
        _check(path, f"organisations.{name}", facts, _ORGANISATION)
        if facts["last_seen"] is not None:
            _check_time(path, f"last_seen of {name}", facts["last_seen"])
    return found


def _ended(folder: Path) -> dict[str, Any]:
    """Of a run that kept no status: what its summary or its error says."""
    files = [folder / name for name in (names.SUMMARY, names.ERROR, names.CONFIG)]
    last = next((each for each in files if each.is_file()), None)
    if last is None:
        raise ConfigError(f"{folder} is no run folder: it has neither status.json nor config.json")
    state = {names.SUMMARY: "finished", names.ERROR: "failed"}.get(last.name, "unknown")
    return {
        "run": folder.name.rsplit("-", 1)[-1],
        "state": state,
        "reason": _read(last, _ERROR)["error"] if state == "failed" else "",
        "phase": state,
        "progress": {"done": 0, "total": 0, "unit": ""},
        "updated": datetime.fromtimestamp(last.stat().st_mtime, UTC).isoformat(timespec="seconds"),
        "organisations": {},
    }


def _is_dead(found: dict[str, Any]) -> bool:
    """Whether the process that wrote the status is gone; known on its own machine only."""
    if found.get("host") != socket.gethostname():
        return False
    try:
        os.kill(found["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _read(path: Path, facts: _Facts) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise DataError(f"{path} cannot be read: is it damaged?") from None
    _check(path, "", found, facts)
    return found


def _check(path: Path, where: str, value: object, facts: _Facts) -> None:
    """Refuse what is no JSON object with these facts, each of one of its types."""
    if not isinstance(value, dict):
        raise _damaged(path, f"{where or 'it'} is no JSON object")
    for name, types in facts.items():
        place = f"{where}.{name}" if where else name
        if name not in value:
            raise _damaged(path, f"{place} is missing")
        if type(value[name]) not in types:
            raise _damaged(path, f"{place} is {json.dumps(value[name])[:40]}")


def _check_time(path: Path, where: str, time: str) -> None:
    """Refuse what is no time, or one without its time zone."""
    try:
        zone = datetime.fromisoformat(time).tzinfo
    except ValueError:
        zone = None
    if zone is None:
        raise _damaged(path, f"{where} is {time[:40]!r}, no time with a time zone")


def _damaged(path: Path, what: str) -> DataError:
    return DataError(f"{path} is damaged ({what}): look at the log of the run instead")
