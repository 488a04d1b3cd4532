"""Finished bases in an organisation's store: its rows of U, the eigenvalues, the certificate."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from fedlap_app.graphs.snapshot import Snapshot
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.spectral.certificate import Certificate
from fedlap_app.spectral.extension import COMPUTED, NONE, ORIGINS, Rows
from fedlap_app.store.packing import Data
from fedlap_app.sums.job.results import KEPT, Facts, Results

__all__ = ["KEPT", "Bases", "BasisFacts", "FinishedBasis"]


@dataclass(frozen=True)
class BasisFacts(Facts):
    """What a basis belongs to, see `Facts`.

    Attributes
    ----------
    nodes, mean_degree
        Of the whole graph; a basis of an older version does not tell the degree.
    drift
        Share of the organisation's graph that changed since the basis was computed, when it was
        kept for a changed graph; kept again, the shares add up.
    """

    nodes: int
    mean_degree: float = 0.0
    drift: float = 0.0


@dataclass(frozen=True, eq=False)
class FinishedBasis:
    """One organisation's rows of the eigenvectors, in the order of its nodes.

    Attributes
    ----------
    U, eigenvalues, certificate, facts
        Rows (n, rank), and what is the same at all.
    snapshot
        The graph that the rows belong to, packed; empty in a basis of an older version.
    given
        (n,) where each row comes from in a basis that was kept for a changed graph: one of
        `COMPUTED`, `EXTENDED` and `NONE` by its place in `ORIGINS`; empty: all were computed.
    """

    U: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]
    certificate: Certificate
    facts: BasisFacts
    snapshot: Data = b""
    given: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))

    @property
    def rows(self) -> Rows:
        """The rows with where they come from."""
        given = self.given if self.given.size else np.zeros(len(self.U), dtype=np.uint8)
        names = np.array(ORIGINS)[given]
        return Rows(np.asarray(self.U), names == COMPUTED, names != NONE)

    @cached_property
    def graph(self) -> Snapshot | None:
        """The organisation's graph at the time, if the basis tells."""
        return Snapshot.unpack(self.snapshot) if len(self.snapshot) else None


class Bases(Results[FinishedBasis]):
    """The finished bases of one store."""

    kind = "basis"
    form = BasisFacts

    def _pack(self, result: FinishedBasis) -> tuple[Facts, list[Data]]:
        parts: list[Data] = [
            result.certificate.to_json().encode(),
            np.ascontiguousarray(result.eigenvalues, dtype="<f8").data.cast("B"),
            np.ascontiguousarray(result.U, dtype="<f8").data.cast("B"),
            result.snapshot,
            result.given.data,
        ]
        return result.facts, parts

    def _unpack(self, facts: Facts, parts: list[memoryview]) -> FinishedBasis:
        certificate, values, content, *rest = parts
        snapshot, given = [*rest, memoryview(b""), memoryview(b"")][:2]  # none in older versions
        eigenvalues = np.frombuffer(values, "<f8")
        rows = np.frombuffer(content, "<f8").reshape(-1, eigenvalues.size)
        stated = Certificate.from_json(bytes(certificate).decode())
        return FinishedBasis(
            rows,
            eigenvalues,
            stated,
            cast("BasisFacts", facts),
            snapshot,
            np.frombuffer(given, np.uint8),
        )

    def of_job(self, job: str, part: Subgraph, data: str = "") -> FinishedBasis | None:
        """The basis that a job gave for a part which may have changed since; None without one.

        Parameters
        ----------
        job, part
            The job, and the part as it is now.
        data
            Fingerprint of the part at the time (default: not known). Jobs of simulations follow
            from their settings alone, so that one may have had several data sets.
        """
        named = [facts for facts in self.facts() if facts.job == job]
        for content in filter(None, (data, part.fingerprint())):
            for facts in named:
                if facts.data == content:
                    return self.load(facts)
        found = [each for each in map(self.load, named) if each.graph is not None]
        shared = [each.graph.shared(part) if each.graph else 0 for each in found]
        best = max(shared, default=0)
        return found[shared.index(best)] if best else None
