"""The offline phase as a bare numpy loop: the same parts and sums, nothing around them.

No messages, headers, stores, seals or checks: what the phase takes longer than this is its price.
`run_bare` is the phase's own iteration, number for number. `run_textbook` is block Lanczos as one
would write it down for exact arithmetic: it shows what the safeguards of the solver cost.
"""

import numpy as np

from fedlap_app.experiments.bare_parts import Array, Blocks, Parts, add, inner
from fedlap_app.spectral.ritz import SmallProblem, solve_small
from fedlap_app.spectral.solvers import make_solver


def run_bare(parts: Parts) -> tuple[Array, Blocks]:
    """Eigenvalues, and every part's rows of the eigenvectors, by the solver of the phase."""
    parts.prepare()
    spec = parts.spec
    settings = spec.solver_settings(len(parts.operators))
    solvers = [
        make_solver(spec.solver, operator, settings, start)
        for operator, start in zip(parts.operators, parts.start(), strict=True)
    ]
    while not solvers[0].done:
        mine = [solver.contribute() for solver in solvers]
        small = add(each.small for each in mine)
        blocks = [each.block for each in mine if each.block is not None]
        received = parts.exchange(blocks) if blocks else [None] * len(solvers)
        for solver, block in zip(solvers, received, strict=True):
            solver.absorb(block, small)
    solution = solve_small(solvers[0].problem(), spec.kept, spec.keep)
    return solution.eigenvalues, [solver.finish(solution.Y) for solver in solvers]


def run_textbook(parts: Parts) -> tuple[Array, Blocks]:
    """The same by a textbook block Lanczos iteration; fails where a block loses its rank."""
    parts.prepare()
    vectors = parts.spec.vectors
    U = [block[:, :vectors] for block in parts.start()]
    Q = [np.empty((op.nodes, vectors), order="F") for op in parts.operators]
    Z = [np.empty_like(q) for q in Q]
    before = m = 0
    while m < vectors:
        W = parts.multiply(U)
        width = U[0].shape[1]
        S = inner([q[:, :m] for q in Q], U)
        R = np.linalg.cholesky(inner(U, U) - S.T @ S).T
        inverse = np.linalg.inv(R)
        left = min(width, vectors - m - width)
        for i, (u, w) in enumerate(zip(U, W, strict=True)):
            q = (u - Q[i][:, :m] @ S) @ inverse
            z = (w - Z[i][:, :m] @ S) @ inverse
            Q[i][:, m : m + width], Z[i][:, m : m + width] = q, z
            U[i] = z[:, :left] - Q[i][:, before:m] @ R[:left].T if m else z[:, :left]
        before, m = m, m + width
    ritz = inner(Q, Z)
    problem = SmallProblem(
        gram=inner(Q, Q),
        ritz=(ritz + ritz.T) / 2,
        squares=inner(Z, Z),
        unit=parts.operators[0].unit,
    )
    solution = solve_small(problem, parts.spec.kept, parts.spec.keep)
    rows = [op.present(q @ solution.Y) for op, q in zip(parts.operators, Q, strict=True)]
    return solution.eigenvalues, rows
