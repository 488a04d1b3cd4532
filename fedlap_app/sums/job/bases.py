"""Finished bases in an organisation's store: its rows of U, the eigenvalues, the certificate."""

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from fedlap_app.spectral.certificate import Certificate
from fedlap_app.store.packing import Data
from fedlap_app.sums.job.results import KEPT, Facts, Results

__all__ = ["KEPT", "Bases", "BasisFacts", "FinishedBasis"]


@dataclass(frozen=True)
class BasisFacts(Facts):
    """What a basis belongs to, see `Facts`; `nodes` are those of the whole graph."""

    nodes: int


@dataclass(frozen=True, eq=False)
class FinishedBasis:
    """One organisation's rows of the eigenvectors, in the order of its nodes."""

    U: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]
    certificate: Certificate
    facts: BasisFacts


class Bases(Results[FinishedBasis]):
    """The finished bases of one store."""

    kind = "basis"
    form = BasisFacts

    def _pack(self, result: FinishedBasis) -> tuple[Facts, list[Data]]:
        return result.facts, [
            result.certificate.to_json().encode(),
            np.ascontiguousarray(result.eigenvalues, dtype="<f8").data.cast("B"),
            np.ascontiguousarray(result.U, dtype="<f8").data.cast("B"),
        ]

    def _unpack(self, facts: Facts, parts: list[memoryview]) -> FinishedBasis:
        certificate, values, content = parts
        eigenvalues = np.frombuffer(values, "<f8")
        rows = np.frombuffer(content, "<f8").reshape(-1, eigenvalues.size)
        stated = Certificate.from_json(bytes(certificate).decode())
        return FinishedBasis(rows, eigenvalues, stated, cast("BasisFacts", facts))
