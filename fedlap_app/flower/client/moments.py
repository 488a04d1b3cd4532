"""The local optimiser's state between rounds.

In a deployment it is in the organisation's store, which survives the SuperNode and lets a round
that is asked for twice start from the same state twice. Elsewhere it is in what Flower keeps for a
client during a run, which costs no disk.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, RecordDict
from numpy.typing import NDArray

from fedlap_app.flower.records import to_arrays
from fedlap_app.methods.kept import training_job
from fedlap_app.methods.task import Task
from fedlap_app.store import names
from fedlap_app.store.folders import Folder, Store, StoreError

if TYPE_CHECKING:
    from fedlap_app.methods.organisation import Organisation

_MOMENTS = "moments"
_MADE_IN = "moments-of"

Moments = Mapping[str, NDArray[np.float32]]


class KeptMoments(Protocol):
    """The optimiser's state of one stage of a run."""

    def read(self, number: int) -> Moments:
        """State before a round; empty at the start of a run or of a stage."""

    def write(self, number: int, moments: Moments) -> None:
        """Keep the state after a round."""


def kept_moments(organisation: "Organisation", state: RecordDict, task: Task) -> KeptMoments:
    """Where the organisation keeps its moments; `state` is what Flower keeps for the client."""
    if organisation.folder is not None:
        return StoredMoments(organisation.store, task)
    return CarriedMoments(state, task)


@dataclass(frozen=True)
class CarriedMoments:
    """Moments of the last round in Flower's state of the client."""

    state: RecordDict
    task: Task

    def read(self, number: int) -> Moments:
        """State before a round."""
        made_in, moments = self.state.get(_MADE_IN), self.state.get(_MOMENTS)
        if not isinstance(made_in, ConfigRecord) or not isinstance(moments, ArrayRecord):
            return {}
        run, stage, last = (made_in.get(key) for key in ("run", "stage", "round"))
        is_earlier = isinstance(last, int) and last < number
        if (run, stage) != (self.task.run, self.task.stage) or not is_earlier:
            return {}
        return {name: array.numpy() for name, array in moments.items()}

    def write(self, number: int, moments: Moments) -> None:
        """Keep the state after a round."""
        self.state[_MOMENTS] = to_arrays(moments)
        self.state[_MADE_IN] = ConfigRecord(
            {"run": self.task.run, "stage": self.task.stage, "round": number}
        )


@dataclass(frozen=True)
class StoredMoments:
    """Moments in the store: those of the last round, and those that it began with."""

    store: Store
    task: Task

    def read(self, number: int) -> Moments:
        """State before a round: that after the last earlier one which the client took part in."""
        earlier = [each for each in self._rounds() if each < number]
        if not earlier:
            return {}
        content = self._folder.read(self._file(earlier[-1]))
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise StoreError(
                f"{self._folder.path / self._file(earlier[-1])} is damaged ({error}): start the "
                "run again"
            ) from None

    def write(self, number: int, moments: Moments) -> None:
        """Keep the state after a round; a repetition of it still finds what it began with."""
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **moments)
        earlier = [each for each in self._rounds() if each < number]
        with self.store.lock():
            self._folder.write(self._file(number), buffer.getvalue())
            for each in earlier[:-1]:
                (self._folder.path / self._file(each)).unlink(missing_ok=True)

    @property
    def _folder(self) -> Folder:
        return self.store.job(training_job(self.task.run))

    def _file(self, number: int) -> str:
        return names.MOMENTS(stage=self.task.stage, number=number)

    def _rounds(self) -> list[int]:
        """Rounds of this stage after which a state is kept."""
        found = (names.MOMENTS.read(path.name) for path in self._folder.path.glob("*"))
        return sorted(int(m["number"]) for m in found if m and int(m["stage"]) == self.task.stage)
