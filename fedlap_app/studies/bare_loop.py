"""The offline phase as a bare numpy loop: the same parts and sums, nothing around them.

No messages, headers, stores, seals or checks: what the phase takes longer than this is its price.
`run_bare` is the phase's own iteration, number for number. `run_textbook` is block Lanczos as one
would write it down for exact arithmetic: it shows what the safeguards of the solver cost.
"""

from collections.abc import Callable

import numpy as np

from fedlap_app.spectral.ritz import SmallProblem, solve_small
from fedlap_app.spectral.solvers import Solver, make_solver
from fedlap_app.studies.bare_parts import Array, Blocks, Parts, add, inner


def run_bare(parts: Parts) -> tuple[Array, Blocks]:
    """Eigenvalues, and every part's rows of the eigenvectors, by the solver of the phase."""
    parts.prepare()
    solvers = drive(parts, add)
    program = parts.program
    solution = solve_small(solvers[0].problem(), program.kept, program.keep)
    return solution.eigenvalues, [solver.finish(solution.Y) for solver in solvers]


def drive(parts: Parts, total: Callable[[list[Array]], Array]) -> list[Solver]:
    """All rounds of the solver of the phase; `total` adds the small numbers of all parts."""
    program = parts.program
    settings = program.solver_settings(parts.spec.noise(len(parts.operators)))
    solvers = [
        make_solver(program.solver, operator, settings, start)
        for operator, start in zip(parts.operators, parts.start(), strict=True)
    ]
    while not solvers[0].done:
        mine = [solver.contribute() for solver in solvers]
        small = total([each.small for each in mine])
        blocks = [each.block for each in mine if each.block is not None]
        received = parts.exchange(blocks) if blocks else [None] * len(solvers)
        for solver, block in zip(solvers, received, strict=True):
            solver.absorb(block, small)
    return solvers


def run_textbook(parts: Parts) -> tuple[Array, Blocks]:
    """The same by a textbook block Lanczos iteration; fails where a block loses its rank."""
    parts.prepare()
    vectors = parts.program.vectors
    raw = [block[:, :vectors] for block in parts.start()]
    basis = [np.empty((op.nodes, vectors), order="F") for op in parts.operators]
    images = [np.empty_like(rows) for rows in basis]
    before = m = 0
    while m < vectors:
        products = parts.multiply(raw)
        width = raw[0].shape[1]
        inside = inner([rows[:, :m] for rows in basis], raw)
        root = np.linalg.cholesky(inner(raw, raw) - inside.T @ inside).T
        inverse = np.linalg.inv(root)
        left = min(width, vectors - m - width)
        for i, (u, w) in enumerate(zip(raw, products, strict=True)):
            q = (u - basis[i][:, :m] @ inside) @ inverse
            z = (w - images[i][:, :m] @ inside) @ inverse
            basis[i][:, m : m + width], images[i][:, m : m + width] = q, z
            raw[i] = z[:, :left] - basis[i][:, before:m] @ root[:left].T if m else z[:, :left]
        before, m = m, m + width
    ritz = inner(basis, images)
    problem = SmallProblem(
        gram=inner(basis, basis),
        ritz=(ritz + ritz.T) / 2,
        squares=inner(images, images),
        unit=parts.operators[0].unit,
    )
    solution = solve_small(problem, parts.program.kept, parts.program.keep)
    rows = [op.present(q @ solution.Y) for op, q in zip(parts.operators, basis, strict=True)]
    return solution.eigenvalues, rows
