"""Results of finished jobs in an organisation's store, and what each belongs to."""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from fedlap_app.errors import DataError, FedLapError, ProtocolError
from fedlap_app.store.job_files import JobFiles
from fedlap_app.store.packing import Data
from fedlap_app.sums.kdf import digest

KEPT = 4


@dataclass(frozen=True)
class Facts:
    """What a result belongs to, and what the member sent for it.

    Attributes
    ----------
    job, members, spec, data
        Job id, hash of the members, digest of the settings, fingerprint of the data.
    organisations
        Names of the members.
    rows
        Own rows that have a slot in the layout.
    columns, numbers
        Columns of all block products and numbers of all small sums sent.
    """

    job: str
    members: str
    spec: str
    data: str
    organisations: tuple[str, ...]
    rows: int
    columns: int
    numbers: int


T = TypeVar("T")


class Results(ABC, Generic[T]):
    """The results of one kind in one store, the newest few.

    Parameters
    ----------
    folder
        Where they are: files in its parent whose names begin with its own.
    durable
        Whether a result must survive a power failure.
    """

    kind: ClassVar[str]
    most: ClassVar[int] = KEPT
    form: ClassVar[type[Facts]] = Facts

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        self._files = JobFiles(folder.parent, durable=durable, prefix=f"{folder.name}-")

    @abstractmethod
    def _pack(self, result: T) -> tuple[Facts, list[Data]]:
        """Facts and content of a result."""

    @abstractmethod
    def _unpack(self, facts: Facts, parts: list[memoryview]) -> T:
        """Read what `_pack` gave."""

    def save(self, result: T) -> None:
        """Write a result; it appears whole, in the place of an older one of the same key."""
        facts, parts = self._pack(result)
        self._files.write(self._key(facts), json.dumps(facts.__dict__).encode(), *parts)
        paths = self._paths()
        if len(paths) > self.most:
            oldest = sorted(paths, key=lambda path: path.stat().st_mtime)[: -self.most]
            self._files.drop(*map(self._name, oldest))

    def facts(self) -> list[Facts]:
        """Facts of all results, the newest first; one that cannot be read counts as absent."""
        found = []
        for path in sorted(self._paths(), key=lambda path: path.stat().st_mtime_ns, reverse=True):
            try:
                values = json.loads(bytes(self._files.read(self._name(path))[0]))
                names = tuple(values.pop("organisations"))
                found.append(self.form(**values, organisations=names))
            except (FedLapError, ValueError, KeyError, TypeError):
                continue
        return found

    def find(self, job: str, data: str, spec: str = "") -> T:
        """The result that a job gave for some data, and by some settings if a digest is given."""
        for facts in self.facts():
            if facts.job == job and facts.data == data and spec in ("", facts.spec):
                return self.load(facts)
        raise ProtocolError(
            f"there is no {self.kind} of job {job[:40] or '(none)'} for this graph and these "
            "settings in the store: run the offline phase again with refresh-basis"
        )

    def load(self, facts: Facts) -> T:
        """Read a result; its arrays are memory-mapped."""
        key = self._key(facts)
        try:
            return self._unpack(facts, self._files.read(key)[1:])
        except (FedLapError, ValueError) as error:
            raise DataError(
                f"The {self.kind} {key} in {self._files.path} cannot be read ({error}): "
                "run again with refresh-basis"
            ) from None

    def _key(self, facts: Facts) -> str:
        """Name of the file: data, settings and members decide it."""
        return digest(self.kind, facts.data, facts.spec, facts.members)[:16].hex()

    def _paths(self) -> list[Path]:
        found = self._files.path.glob(f"{self._files.prefix}*")
        return [path for path in found if path.is_file()]

    def _name(self, path: Path) -> str:
        return path.name.removeprefix(self._files.prefix)
