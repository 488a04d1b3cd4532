"""A federation in one process: sums by plain addition in the order of the clients."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp

from fedlap_app.spectral import totals as totals_of
from fedlap_app.spectral.operators import make_operator
from fedlap_app.spectral.ritz import solve_small
from fedlap_app.spectral.solvers import SolverSettings, make_solver


@dataclass
class Part:
    """One client's rows of a graph that was cut."""

    nodes: np.ndarray
    externals: np.ndarray
    rows: sp.csr_array
    incoming: sp.csr_array


class Federation:
    """Clients of a cut graph that add up what they owe each other."""

    def __init__(self, A, owner, clients, noise=0.0, seed=0):
        self.n = A.shape[0]
        self.parts = [cut(A, np.flatnonzero(owner == i)) for i in range(clients)]
        self.noise = noise
        self.rng = np.random.default_rng(seed)

    def totals(self):
        return totals_of.Totals.from_sums(
            sum(totals_of.contribution(p.rows, p.incoming) for p in self.parts)
        )

    def operators(self, kind, **options):
        totals = self.totals()
        return [
            make_operator(kind, p.rows, totals, incoming=p.incoming, **options) for p in self.parts
        ]

    def solvers(self, name, kind, start, *, vectors, noise=0.0, **options):
        settings = SolverSettings(vectors=vectors, block=start.shape[1], noise=noise)
        return [
            make_solver(name, operator, settings, start[p.nodes])
            for operator, p in zip(self.operators(kind, **options), self.parts, strict=True)
        ]

    def exchange(self, blocks):
        """Received rows of every client, from what every client owes."""
        total = np.zeros((self.n, blocks[0].shape[1]))
        for part, block in zip(self.parts, blocks, strict=True):
            np.add.at(total, part.externals, block)
        return [self._noisy(total[p.nodes]) for p in self.parts]

    def round(self, solvers):
        mine = [solver.contribute() for solver in solvers]
        small = self._noisy(sum(m.small for m in mine))
        received = [None] * len(solvers)
        if mine[0].block is not None:
            received = self.exchange([m.block for m in mine])
        for solver, rows in zip(solvers, received, strict=True):
            solver.absorb(rows, small)

    def run(self, solvers, rank, keep="smallest"):
        while not solvers[0].done:
            self.round(solvers)
        solution = solve_small(solvers[0].problem(), rank, keep)
        U = np.zeros((self.n, solution.Y.shape[1]))
        for solver, part in zip(solvers, self.parts, strict=True):
            U[part.nodes] = solver.finish(solution.Y)
        return U, solution

    def _noisy(self, values):
        if not self.noise:
            return values
        return values + self.noise * self.rng.standard_normal(values.shape)


def cut(A, nodes):
    mine = np.zeros(A.shape[0], dtype=bool)
    mine[nodes] = True
    out, into = A[nodes].tocsr(), A.T.tocsr()[nodes]
    touched = np.zeros(A.shape[0], dtype=bool)
    touched[out.indices] = True
    touched[into.indices] = True
    externals = np.flatnonzero(touched & ~mine)
    order = np.concatenate([nodes, externals])
    return Part(nodes, externals, out[:, order].tocsr(), into[:, order].tocsr())


@pytest.fixture(scope="session")
def federate():
    """Cut a matrix into clients: ``federate(A, owner, clients, noise=0)``."""
    return Federation


def random_graph(rng, n, density, *, weighted=False, directed=False):
    A = (rng.random((n, n)) < density).astype(float)
    if weighted:
        A *= rng.uniform(0.1, 10.0, (n, n))
    if not directed:
        A = np.triu(A, 1) + np.triu(A, 1).T
    np.fill_diagonal(A, 0.0)
    return sp.csr_array(A)


@pytest.fixture(scope="session")
def graph():
    """Random adjacency matrix: ``graph(rng, n, density, weighted=False, directed=False)``."""
    return random_graph
