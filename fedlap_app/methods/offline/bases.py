"""Finished bases in an organisation's store: its rows of U, the eigenvalues, the certificate."""

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import DataError, ProtocolError
from fedlap_app.methods.offline.newest import sync
from fedlap_app.secure.kdf import digest
from fedlap_app.spectral.certificate import Certificate

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
        """Name of the folder: data, settings and members decide it."""
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
        Where they are.
    durable
        Whether a basis must survive a power failure.
    """

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        self.folder = folder
        self.durable = durable

    def save(self, basis: FinishedBasis) -> Path:
        """Write a basis; it appears whole, in the place of an older one of the same key."""
        target = self.folder / basis.facts.key
        scratch = self.folder / f".{basis.facts.key}.part"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True, mode=0o700)
        np.save(scratch / "U.npy", basis.U)
        np.save(scratch / "eigenvalues.npy", basis.eigenvalues)
        (scratch / "certificate.json").write_text(basis.certificate.to_json(), encoding="utf-8")
        (scratch / "meta.json").write_text(json.dumps(asdict(basis.facts)), encoding="utf-8")
        if self.durable:
            for path in (*scratch.iterdir(), scratch):
                sync(path)
        shutil.rmtree(target, ignore_errors=True)
        scratch.replace(target)
        for old in sorted(self._folders(), key=lambda path: path.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)
        return target

    def facts(self) -> list[BasisFacts]:
        """Facts of all bases; one that cannot be read counts as absent."""
        found = []
        for folder in self._folders():
            try:
                values = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
                names = tuple(values.pop("organisations"))
                found.append(BasisFacts(**values, organisations=names))
            except (OSError, ValueError, KeyError, TypeError):
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
        folder = self.folder / facts.key
        try:
            rows = np.load(folder / "U.npy", mmap_mode="r", allow_pickle=False)
            eigenvalues = np.load(folder / "eigenvalues.npy", allow_pickle=False)
            certificate = (folder / "certificate.json").read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise DataError(
                f"The basis in {folder} cannot be read ({error}): run again with refresh-basis"
            ) from None
        return FinishedBasis(rows, eigenvalues, Certificate.from_json(certificate), facts)

    def _folders(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return [path for path in self.folder.iterdir() if path.is_dir() and path.name[0] != "."]
