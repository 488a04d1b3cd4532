"""Which cards of an organisation have begun a job: none does so twice, and few do in a day.

Cards have serial numbers that only grow. The file ``begun.json`` of the store outlives cards, jobs
and their cleaning, so that a job that was forgotten can never start again with its secrets.
"""

import json
import time
from pathlib import Path
from typing import Any

from fedlap_app.errors import ConsentError, ProtocolError
from fedlap_app.store import names
from fedlap_app.store.rewritten import RewrittenFile

FILE = names.BEGUN
_DAY = 86_400.0
_MOST_TIMES = 10_000  # where the policy counts no jobs now, but may tomorrow
_TIMES, _TIMES_FOR_RUNS = "times", "times_for_runs"
_JOBS_A_RUN = 4  # keys for its training and sums over columns, each of them begun twice
_REMEDY = (
    "restore it from a backup, or move the store away, which makes the organisation another one"
)
_NOTHING: dict[str, Any] = {"issued": 0, "used": 0, _TIMES: [], _TIMES_FOR_RUNS: []}


class Begun:
    """The record of one store; the caller holds the store's lock.

    Parameters
    ----------
    root
        Folder of the store.
    durable
        Whether it must survive a power failure.
    """

    def __init__(self, root: Path, *, durable: bool) -> None:
        self._file = RewrittenFile(root / FILE, durable=durable, remedy=_REMEDY)

    def next_serial(self) -> int:
        """Number of a new card."""
        record = self._read()
        serial: int = max(record["issued"], record["used"]) + 1
        self._write({**record, "issued": serial})
        return serial

    def count(self, jobs_a_day: int | None) -> None:
        """Take down that a job about edges begins now, unless that is one too many for a day."""
        self._count(_TIMES, jobs_a_day, f"jobs-a-day = {jobs_a_day}")

    def count_for_run(self, runs_a_day: int | None) -> None:
        """The same for a job that only serves a training run; each run may need a few."""
        most = None if runs_a_day is None else _JOBS_A_RUN * runs_a_day
        self._count(
            _TIMES_FOR_RUNS, most, f"runs-a-day = {runs_a_day}, {_JOBS_A_RUN} jobs for each,"
        )

    def _count(self, kind: str, most: int | None, limit: str) -> None:
        record, now = self._read(), time.time()
        recent = [each for each in record[kind] if each > now - _DAY]
        if most is not None and len(recent) >= most:
            raise ConsentError(
                f"its limit {limit} is reached: start the run again later, or let the "
                "organisation raise the limit in its org.toml"
            )
        kept = max(most or 0, _MOST_TIMES)
        self._write({**record, kind: [*recent, now][-kept:]})

    def require_unused(self, serial: int) -> None:
        """Refuse a card that has begun a job before."""
        if serial <= self._read()["used"]:
            raise ProtocolError(
                "The card has begun a job before, and begins no other: start the run again."
            )

    def use(self, serial: int) -> None:
        """Take down that a card has begun its job; from now on it begins none."""
        record = self._read()
        if serial > record["used"]:
            self._write({**record, "used": serial})

    def _read(self) -> dict[str, Any]:
        record = {**_NOTHING, **(self._file.read() or {})}
        counts = all(isinstance(record[key], int) for key in ("issued", "used"))
        if counts and all(_are_times(record[key]) for key in (_TIMES, _TIMES_FOR_RUNS)):
            return record
        raise self._file.damaged()

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(json.dumps(record), record)


def _are_times(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(each, int | float) for each in found)
