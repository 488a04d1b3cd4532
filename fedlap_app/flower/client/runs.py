"""The training runs that an organisation knows: who joined with which settings, what began today.

They are in ``runs.json`` of the store, whose size is bounded. Nothing else is written for a run
before its first training message.
"""

import json
import time
from pathlib import Path

from fedlap_app.errors import RunError
from fedlap_app.methods.kept import make_room, require_room
from fedlap_app.methods.organisation import Organisation
from fedlap_app.store import names
from fedlap_app.store.rewritten import RewrittenFile

FILE = names.RUNS
MOST_JOINED = 100
_DAY = 86_400.0


class Runs:
    """The known runs of one organisation; the caller holds the store's lock."""

    def __init__(self, organisation: Organisation) -> None:
        self._organisation = organisation
        path: Path = organisation.store.root / FILE
        self._file = RewrittenFile(path, durable=organisation.deployed)
        found = self._file.read() or {}
        self._joined: dict[str, str] = dict(found.get("joined", {}))
        self._begun = [float(at) for at in found.get("begun", [])]

    def settings_of(self, run: int) -> str | None:
        """Digest of the settings with which a run joined; None: it did not."""
        return self._joined.get(str(run))

    def join(self, run: int) -> None:
        """Bind a run to the settings that it asks with now."""
        require_room(self._organisation)
        self._today()
        if self.settings_of(run) == self._organisation.agreed:
            return
        self._joined[str(run)] = self._organisation.agreed
        for name in list(self._joined)[:-MOST_JOINED]:
            del self._joined[name]
        self._write()

    def begin(self) -> None:
        """Count a run that trains for the first time, and make room for what it keeps."""
        require_room(self._organisation)
        today = self._today()
        if self._organisation.policy.runs_a_day is not None:
            self._begun = [*today, time.time()]
            self._write()
        make_room(self._organisation.store)

    def _today(self) -> list[float]:
        """When the runs of the last 24 hours began; refuses another one beyond the limit."""
        now, most = time.time(), self._organisation.policy.runs_a_day
        today = [at for at in self._begun if at > now - _DAY]
        if most is not None and len(today) >= most:
            hours = (min(today, default=now) + _DAY - now) / 3600
            raise RunError(
                f"{len(today)} training runs began here within 24 hours and its policy allows "
                f"{most} (runs-a-day): the next one can begin in {max(hours, 0.0):.1f} hours"
            )
        return today

    def _write(self) -> None:
        self._file.write(json.dumps({"joined": self._joined, "begun": self._begun}))
