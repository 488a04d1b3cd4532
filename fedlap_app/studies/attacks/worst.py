"""Attack (a), the paper's worst case: the attacker knows Q, U = A Q, all degrees and p.

It calls (u, v) an edge if the log-likelihood ratio of theorem `thm:posterior` exceeds a threshold,

    LLR_uv = (U_u - mu + Q_v / 2) Sigma^-1 Q_v',   mu = p 1'Q,   Sigma = p (1 - p) Q'Q.

Row u of U alone decides, as in the paper. In an undirected graph row v tells the same edge again:
`both_rows` adds the two ratios, which the theorem leaves out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.privacy.leakage import check_density
from fedlap_app.studies.attacks.pairs import MOST, edge_pairs, other_pairs
from fedlap_app.studies.attacks.scores import Scores
from fedlap_app.studies.audit.leverages import orthonormal_rows

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

_CHUNK = 50_000


@dataclass(frozen=True, eq=False)
class WorstCase:
    """What the attacker of the theorem holds.

    Attributes
    ----------
    rows
        (n_1, rank) orthonormal rows of the basis at the target's nodes.
    images
        (n_1, rank) the target's edges times these rows.
    density
        p that the attacker assumes.
    """

    rows: Array
    images: Array
    density: float

    @property
    def rank(self) -> int:
        """Independent equations that it has for each row of A."""
        return int(self.rows.shape[1])

    def ratios(self, sources: Ints, targets: Ints) -> Array:
        """LLR of pairs (u, v)."""
        spread = self.density * (1.0 - self.density)
        shifted = self.images - self.density * self.rows.sum(axis=0)
        found = np.empty(sources.size)
        for start in range(0, sources.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            ends = self.rows[targets[part]]
            found[part] = np.einsum("ij,ij->i", shifted[sources[part]] + ends / 2.0, ends)
        return found / spread


def worst_case(rows: Array, adjacency: Any, density: float) -> WorstCase:  # noqa: ANN401
    """The attacker of the theorem.

    Parameters
    ----------
    rows
        (n_1, M) the target's rows of the vectors exchanged, scaled as they are multiplied.
    adjacency
        (n_1, n_1) sparse, the edges among the target's nodes.
    density
        p that the attacker assumes.
    """
    check_density(density)
    basis = orthonormal_rows(rows)
    return WorstCase(basis, np.asarray(adjacency @ basis), density)


def attack_worst(
    attacker: WorstCase,
    adjacency: Any,  # noqa: ANN401 - a sparse matrix
    rng: np.random.Generator,
    most: int = MOST,
) -> tuple[Scores, Scores]:
    """Scores of the paper's test on row u alone, and of both rows of a pair together."""
    edges, others = edge_pairs(adjacency), other_pairs(adjacency, rng, most)
    sources, targets = (np.concatenate(each) for each in zip(edges, others, strict=True))
    real = np.arange(sources.size) < edges[0].size
    forth = attacker.ratios(sources, targets)
    back = attacker.ratios(targets, sources)
    return Scores(forth, real, sources), Scores(forth + back, real, sources)
