"""The server's checkpoint: next requests of an unfinished job, ciphertexts and counters only."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedlap_app.errors import FedLapError
from fedlap_app.store.newest import Newest
from fedlap_app.store.packing import pack_named, unpack_named
from fedlap_app.sums.job.messages import Request
from fedlap_app.sums.kdf import digest

_FILE = "step"


@dataclass(frozen=True)
class Checkpoint:
    """What a new server needs to go on.

    Attributes
    ----------
    requests
        The next request to every member; they share kind, job, step and common part.
    facts
        Counters and public facts, as JSON holds them.
    """

    requests: Mapping[str, Request]
    facts: Mapping[str, Any]


class Checkpoints:
    """Checkpoints of unfinished jobs in a folder, one for each set of settings and members.

    Parameters
    ----------
    folder
        Where they are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, spec: str, members: str, checkpoint: Checkpoint, *, durable: bool) -> None:
        """Write a checkpoint atomically, in the place of the last one."""
        first = next(iter(checkpoint.requests.values()))
        facts = {
            **checkpoint.facts,
            "kind": first.kind,
            "job": first.job,
            "step": first.step,
        }
        own = pack_named({name: request.own for name, request in checkpoint.requests.items()})
        records = Newest(self._path(spec, members), _FILE, durable=durable)
        records.write(json.dumps(facts).encode(), first.common, own)

    def read(self, spec: str, members: str) -> Checkpoint | None:
        """The checkpoint of these settings and members; a damaged one counts as none."""
        records = Newest(self._path(spec, members), _FILE, durable=False)
        if not records.head.number:
            return None
        try:
            head, common, own = records.read(3)
            facts = json.loads(bytes(head))
            place = facts["kind"], facts["job"], facts["step"]
            requests = {
                name: Request(*place, common=bytes(common), own=bytes(part))
                for name, part in unpack_named(own).items()
            }
        except (FedLapError, ValueError, KeyError):
            return None
        return Checkpoint(requests, facts)

    def drop(self, spec: str, members: str) -> None:
        """Delete the checkpoint of a job that ended."""
        shutil.rmtree(self._path(spec, members), ignore_errors=True)

    def _path(self, spec: str, members: str) -> Path:
        return self.folder / digest("checkpoint", spec, members)[:16].hex()
