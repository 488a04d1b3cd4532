"""One organisation's share of the Laplacian regulariser tr(S' L S) / tr(S' S).

The paper's equation `rayleigh_regularizer` is a sum over edges: an organisation adds its internal
edges in full and its inter-organisation edges by half, since the other side adds the other half.
With S_v = sqrt(d_v) t_v the symmetric operator's sum is that of D - A on t, so that nobody needs
the degree of a foreign node.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedlap_app.errors import ConfigError
from fedlap_app.models.sparse import SparseMatrix
from fedlap_app.models.specs import SMOOTHERS

if TYPE_CHECKING:
    from fedlap_app.graphs.subgraph import Subgraph


@dataclass(frozen=True, eq=False)
class LaplacianShare:
    """What one organisation adds to the regulariser.

    Attributes
    ----------
    matrix : SparseMatrix
        (n + m, n + m) share of D - A: the scattered sum over all organisations is D - A.
    scale : Tensor
        (n, 1) square roots of the internal nodes' degrees d_v; ones for the operator D - A.
    """

    matrix: SparseMatrix
    scale: Tensor

    @classmethod
    def from_subgraph(
        cls,
        subgraph: "Subgraph",
        operator: str,
        *,
        self_loops: float,
        device: torch.device | str = "cpu",
    ) -> "LaplacianShare":
        """The share of an organisation.

        Parameters
        ----------
        subgraph
            What it holds; the direction of edges is ignored.
        operator
            ``sym`` (I - D^-1/2 A D^-1/2) or ``laplacian`` (D - A).
        self_loops
            Weight of the loop that ``sym`` adds at each node, which only changes d_v.
        device
            Where to compute (default: the CPU).
        """
        if operator not in SMOOTHERS:
            raise ConfigError(
                f"operator = '{operator}' has no regulariser that organisations can share: "
                f"the method fedlap takes {' or '.join(SMOOTHERS)}"
            )
        degrees = np.ones(subgraph.num_nodes)
        if operator == "sym":
            degrees = subgraph.degrees() + self_loops
            # Without an edge or loop the operator's row is zero, whatever the scale.
            degrees[degrees == 0.0] = 1.0
        scale = torch.from_numpy(np.sqrt(degrees).astype(np.float32)).to(device)
        matrix = SparseMatrix.from_scipy(laplacian_share(subgraph), device)
        return cls(matrix, scale.unsqueeze(1))

    @property
    def held(self) -> int:
        """Rows that the organisation holds: internal nodes, then external neighbours."""
        return self.matrix.shape[0]

    def features(self, t: Tensor) -> Tensor:
        """S_v = sqrt(d_v) t_v of the internal nodes."""
        return self.scale * t[: len(self.scale)]

    def roughness(self, t: Tensor) -> Tensor:
        """The share of tr(S' L S)."""
        return (t * self.matrix.times(t)).sum()

    def volume(self) -> Tensor:
        """The share of tr(S' S) when all rows have length one: the sum of the d_v."""
        return self.scale.square().sum()


def laplacian_share(subgraph: "Subgraph") -> scipy.sparse.csr_array:
    """The (n + m, n + m) matrix of an organisation's share of D - A."""
    n, m = subgraph.num_nodes, subgraph.num_external
    rows = subgraph.out_adjacency()
    if subgraph.directed:
        rows = rows.maximum(subgraph.in_adjacency())
    rows = scipy.sparse.csr_array(rows, dtype=np.float64)
    inside, across = rows[:, :n], rows[:, n:] / 2.0
    nothing = scipy.sparse.csr_array((m, m))
    weights = scipy.sparse.block_array([[inside, across], [across.T, nothing]], format="csr")
    degrees: NDArray[np.float64] = np.asarray(weights.sum(axis=1)).ravel()
    return (scipy.sparse.diags_array(degrees) - weights).tocsr()
