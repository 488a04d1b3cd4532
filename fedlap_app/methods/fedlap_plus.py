"""FedLap+: a feature model on local edges plus a structure model on the global spectral basis.

Every organisation holds its own rows of the basis and the eigenvalues; what is averaged is
(theta_f, theta_s, W). The regulariser is evaluated at the clients, so no eigenvalue leaves them.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.knobs import keys_of
from fedlap_app.methods.base import Schema
from fedlap_app.methods.fedavg import FedAvg
from fedlap_app.models.options import SpectralModelOptions, StructureOptions
from fedlap_app.sums.programs import NeighbourSums

if TYPE_CHECKING:
    from torch import Tensor, nn

    from fedlap_app.models.tensors import GraphTensors
    from fedlap_app.settings import Settings
    from fedlap_app.sums.job.bases import FinishedBasis

Floats = NDArray[np.float64]


class FedLapPlus(FedAvg):
    """Federated averaging of f(X, E, v) + g(U_v W)."""

    name: ClassVar[str] = "fedlap+"
    summary: ClassVar[str] = "spectral basis"
    reads: ClassVar[frozenset[str]] = FedAvg.reads | keys_of(StructureOptions, SpectralModelOptions)
    programs: ClassVar[tuple[str, ...]] = ("krylov",)
    structural: ClassVar[bool] = True
    reveals: ClassVar[tuple[str, str, str]] = (
        "The server adds sealed sums that it cannot read, then sees models and counts of scores as "
        "with fedavg.",
        "Organisations learn the eigenvalues, their own rows of the basis and, for their own "
        "nodes, sums over foreign neighbours of every vector exchanged; with neighbour-sums also "
        "such sums of features over two neighbours or more.",
        "No row of a single foreign node is sent by design; `fedlap audit` counts what can be "
        "solved from the sums all the same.",
    )

    @classmethod
    def needs(cls, settings: "Settings") -> tuple[str, ...]:
        """The basis, and the sums over neighbours that are asked for."""
        return tuple(settings.programs.split(","))

    @property
    def has_portfolio(self) -> bool:
        """Sums over neighbours stand beside one f and one g."""
        return super().has_portfolio and NeighbourSums.name not in self.needs(self.settings)

    def model(self, schema: Schema, seed: int, *, held: int = 0) -> "nn.Module":
        """Both models, with a weight of the first if validation chooses one; or a portfolio."""
        from fedlap_app.models.fusion import build_fused
        from fedlap_app.models.portfolio import build_portfolio

        settings = self.settings
        if self.has_portfolio:
            readings = settings.basis_readings(settings.operator)
            structure = settings.structure_spec(schema.classes)
            return build_portfolio(self.branch_specs(schema), structure, readings, seed)
        features = None if settings.model == "none" else self.spec(schema)
        structure = settings.structure_spec(schema.classes)
        fused = build_fused(features, structure, seed, weighted=settings.weighted)
        if NeighbourSums.name not in self.needs(settings):
            return fused
        from fedlap_app.models.summed import SummedBeside, build_summed

        sums = build_summed(self.spec(schema), seed)
        return SummedBeside(fused.features, fused.structure, sums, weighted=settings.weighted)

    def inputs(self, part: Subgraph, found: Mapping[str, Any]) -> "GraphTensors":
        """Features, internal edges and the rows of the basis."""
        from fedlap_app.models.summed import with_sums

        tensors = self.with_basis(super().inputs(part, found), found["krylov"])
        sums = found.get(NeighbourSums.name)
        return tensors if sums is None else with_sums(tensors, sums.sums, self.settings.input_norm)

    def with_basis(self, tensors: "GraphTensors", basis: "FinishedBasis") -> "GraphTensors":
        """Tensors with the rows of a basis.

        Rows of an orthonormal basis shrink with the number of nodes n, so they are multiplied by
        sqrt(n). A basis of an invariant subspace may have fewer columns than were asked for: the
        rest is zero, so that W has one shape everywhere.
        """
        found = min(basis.U.shape[1], self.settings.kept)
        rows = np.zeros((basis.U.shape[0], self.settings.kept))
        values = np.array(basis.eigenvalues[:found])
        scale = math.sqrt(basis.facts.nodes)
        # Every branch of a portfolio weighs the columns in its own way.
        weights = 1.0 if self.has_portfolio else self._column_weights(values)
        rows[:, :found] = basis.U[:, :found] * (scale * weights)
        return tensors.with_basis(rows, values)

    def loss(self, model: "nn.Module", inputs: "GraphTensors") -> "Tensor":
        """Cross-entropy, of each branch too if asked for, and the Rayleigh quotient of W."""
        from fedlap_app.models.fusion import smooth_cross_entropy
        from fedlap_app.models.portfolio import Portfolio

        if isinstance(model, Portfolio):
            return model.objective(inputs)
        settings = self.settings
        return smooth_cross_entropy(settings.smoothing, settings.branch_loss)(model, inputs)

    def _column_weights(self, eigenvalues: Floats) -> Floats:
        """How much each column of the basis counts, at most 1."""
        kind = self.settings.column_weights
        sizes = np.abs(eigenvalues) / (np.abs(eigenvalues).max(initial=0.0) or 1.0)
        if kind == "eigenvalue":
            return sizes
        if kind == "root":
            # Of A A' the roots are the singular values of A.
            return np.sqrt(sizes)
        if kind == "diffusion" and len(eigenvalues):
            # The heat kernel exp(-t L): far from the smooth end a column counts less and less.
            heat: Floats = np.exp(-self.settings.diffusion * (eigenvalues - eigenvalues.min()))
            return heat
        return np.ones_like(eigenvalues)
