"""Finished bases in an organisation's store: its rows of U, the eigenvalues, the certificate."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import DataError, FedLapError, ProtocolError
from fedlap_app.spectral.certificate import Certificate
from fedlap_app.store.job_files import JobFiles
from fedlap_app.sums.kdf import digest

KEPT = 4


@dataclass(frozen=True)
class BasisFacts:
    """What a basis belongs to, and what the member sent for it.

    Attributes
    ----------
    job, members, spec, data
        Job id, hash of the members, digest of the settings, fingerprint of the subgraph.
    organisations
        Names of the members.
    nodes
        Nodes of the whole graph.
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
    nodes: int
    rows: int
    columns: int
    numbers: int

    @property
    def key(self) -> str:
        """Name of the file: data, settings and members decide it."""
        return digest("basis", self.data, self.spec, self.members)[:16].hex()


@dataclass(frozen=True, eq=False)
class FinishedBasis:
    """One organisation's rows of the eigenvectors, in the order of its nodes."""

    U: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]
    certificate: Certificate
    facts: BasisFacts


class Bases:
    """The finished bases of one store, the newest few.

    Parameters
    ----------
    folder
        Where they are: files in its parent whose names begin with its own.
    durable
        Whether a basis must survive a power failure.
    """

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        self._files = JobFiles(folder.parent, durable=durable, prefix=f"{folder.name}-")

    def save(self, basis: FinishedBasis) -> None:
        """Write a basis; it appears whole, in the place of an older one of the same key."""
        self._files.write(
            basis.facts.key,
            json.dumps(basis.facts.__dict__).encode(),
            basis.certificate.to_json().encode(),
            np.ascontiguousarray(basis.eigenvalues, dtype="<f8").data.cast("B"),
            np.ascontiguousarray(basis.U, dtype="<f8").data.cast("B"),
        )
        paths = self._paths()
        if len(paths) > KEPT:
            oldest = sorted(paths, key=lambda path: path.stat().st_mtime)[:-KEPT]
            self._files.drop(*map(self._name, oldest))

    def facts(self) -> list[BasisFacts]:
        """Facts of all bases; one that cannot be read counts as absent."""
        found = []
        for path in self._paths():
            try:
                values = json.loads(bytes(self._files.read(self._name(path), 4)[0]))
                names = tuple(values.pop("organisations"))
                found.append(BasisFacts(**values, organisations=names))
            except (FedLapError, ValueError, KeyError, TypeError):
                continue
        return found

    def find(self, job: str, data: str) -> FinishedBasis:
        """The basis that a job gave for a subgraph."""
        for facts in self.facts():
            if facts.job == job and facts.data == data:
                return self.load(facts)
        raise ProtocolError(
            f"there is no basis of job {job or '(none)'} for this graph in the store: run the "
            "offline phase again with refresh-basis"
        )

    def load(self, facts: BasisFacts) -> FinishedBasis:
        """Read a basis; its arrays are memory-mapped."""
        try:
            _, certificate, values, content = self._files.read(facts.key, 4)
            eigenvalues = np.frombuffer(values, "<f8")
            rows = np.frombuffer(content, "<f8").reshape(-1, eigenvalues.size)
        except (FedLapError, ValueError) as error:
            raise DataError(
                f"The basis {facts.key} in {self._files.path} cannot be read ({error}): "
                "run again with refresh-basis"
            ) from None
        stated = Certificate.from_json(bytes(certificate).decode())
        return FinishedBasis(rows, eigenvalues, stated, facts)

    def _paths(self) -> list[Path]:
        found = self._files.path.glob(f"{self._files.prefix}*")
        return [path for path in found if path.is_file()]

    def _name(self, path: Path) -> str:
        return path.name.removeprefix(self._files.prefix)
