"""All parts of one graph in one process, and products and sums over them added in place."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.spectral import totals as totals_of
from fedlap_app.spectral.operators import LocalOperator
from fedlap_app.spectral.start import start_block
from fedlap_app.sums.job.secrets import simulated_secrets
from fedlap_app.sums.job.spec import OfflineSpec
from fedlap_app.sums.programs import krylov_of

Array = NDArray[np.float64]
Blocks = list[Array]


class Parts:
    """Parts of one graph with their operators.

    Parameters
    ----------
    subgraphs
        The parts.
    spec
        Settings of the phase.
    seed
        Seed of the simulated phase, from which its start vectors follow.
    """

    def __init__(self, subgraphs: Sequence[Subgraph], spec: OfflineSpec, seed: int) -> None:
        self.spec = spec
        self.program = krylov_of(spec)
        self._subgraphs = subgraphs
        self._secrets = [simulated_secrets(seed, subgraph.name) for subgraph in subgraphs]
        self._ends = np.cumsum([subgraph.num_nodes for subgraph in subgraphs])
        ids = np.concatenate([subgraph.ids for subgraph in subgraphs])
        order = np.argsort(ids)
        # Where each external node stands among the rows of all parts.
        self._foreign = [
            order[np.searchsorted(ids[order], subgraph.external_ids)] for subgraph in subgraphs
        ]
        self.operators: list[LocalOperator] = []

    def prepare(self) -> None:
        """Make the operators, as every organisation does."""
        rows = [self.program.rows_of(subgraph) for subgraph in self._subgraphs]
        totals = totals_of.Totals.from_sums(add(totals_of.contribution(*each) for each in rows))
        self.operators = [self.program.operator_of(each, totals) for each in rows]

    def start(self) -> Blocks:
        """The rows of the start block that the organisations of a simulation draw."""
        width = min(self.program.block, self.program.vectors)
        return [
            start_block(
                secrets.organisation,
                secrets.start_label(""),
                subgraph.num_nodes,
                width,
                int(self._ends[-1]),
            )
            for secrets, subgraph in zip(self._secrets, self._subgraphs, strict=True)
        ]

    def exchange(self, owed: Blocks) -> Blocks:
        """What every part receives when all give what they owe."""
        received = np.zeros((int(self._ends[-1]), owed[0].shape[1]))
        for block, foreign in zip(owed, self._foreign, strict=True):
            received[foreign] += block
        return np.split(received, self._ends[:-1])

    def multiply(self, blocks: Blocks) -> Blocks:
        """Rows of L X: every part's own product, and what the others owe it."""
        for phase in range(self.operators[0].phases):
            pairs = list(zip(self.operators, blocks, strict=True))
            received = self.exchange([operator.owed(block, phase) for operator, block in pairs])
            sums = add(operator.sums(block, phase) for operator, block in pairs)
            blocks = [
                operator.combine(block, piece, sums, phase)
                for (operator, block), piece in zip(pairs, received, strict=True)
            ]
        return blocks


def add(parts: Iterable[Array]) -> Array:
    """Sum of the parts' small numbers."""
    first, *rest = parts
    return np.asarray(sum(rest, start=first))


def inner(left: Blocks, right: Blocks) -> Array:
    """Sum over the parts of the inner products of columns."""
    return add(x.T @ y for x, y in zip(left, right, strict=True))
