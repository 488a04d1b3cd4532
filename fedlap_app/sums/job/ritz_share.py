"""The small eigenproblem: solved by the leader, shared under the group key, turned into a basis."""

import struct

import numpy as np

from fedlap_app.errors import ProtocolError
from fedlap_app.spectral.certificate import Certificate, quality
from fedlap_app.spectral.ritz import SmallSolution, solve_small
from fedlap_app.spectral.solvers import Solver
from fedlap_app.spectral.totals import Totals
from fedlap_app.store.packing import Data, pack, unpack
from fedlap_app.sums.header import Place
from fedlap_app.sums.job.answered import Answered
from fedlap_app.sums.job.bases import BasisFacts, FinishedBasis
from fedlap_app.sums.job.iteration import Iteration
from fedlap_app.sums.job.messages import SOLUTION, WAITING, Request
from fedlap_app.sums.job.party import Party
from fedlap_app.sums.job.price import read_price

_PHASE = "ritz"
_QUALITY = struct.Struct("<dd")
_NUMBER = 8


def lead(iteration: Iteration, step: int) -> Data:
    """Reply after the last sums: the leader's sealed solution, nothing from the others."""
    keys = iteration.agreement.keys
    if keys.me != iteration.agreement.leader:
        return pack(WAITING)
    problem = _solver(iteration).problem()
    solution = solve_small(problem, iteration.spec.kept, iteration.spec.keep)
    content = pack(
        iteration.transcript.digest,
        np.ascontiguousarray(solution.Y, dtype="<f8").tobytes(),
        np.ascontiguousarray(solution.eigenvalues, dtype="<f8").tobytes(),
        _QUALITY.pack(*quality(problem, solution)),
    )
    return pack(SOLUTION, keys.broadcast(keys.me).seal(content, Place(_PHASE, step)))


def finish(iteration: Iteration, request: Request, last: Answered, party: Party) -> FinishedBasis:
    """The own rows of the basis, from the leader's solution and the price of the run."""
    solver = _solver(iteration)
    solution, (orthogonality, residual) = _open(iteration, request)
    price = read_price(request.own)
    certificate = Certificate(
        orthogonality=orthogonality,
        residual_max=residual,
        vectors=solver.columns,
        rank=int(solution.eigenvalues.size),
        round_trips=price.round_trips,
        bytes_up=price.bytes_up,
        bytes_down=price.bytes_down,
        seconds=float(price.seconds),
    )
    facts = BasisFacts(
        job=request.job,
        members=last.members,
        spec=last.spec,
        data=last.data,
        organisations=iteration.agreement.keys.members,
        nodes=Totals.from_sums(iteration.totals).nodes,
        rows=int((iteration.agreement.layout.slot_of >= 0).sum()),
        columns=iteration.columns,
        numbers=iteration.numbers,
    )
    return FinishedBasis(solver.finish(solution.Y), solution.eigenvalues, certificate, facts)


def _open(iteration: Iteration, request: Request) -> tuple[SmallSolution, tuple[float, float]]:
    """The leader's solution and its quality, which follows from sums that all have."""
    channel = iteration.agreement.keys.broadcast(iteration.agreement.leader)
    content = channel.open(bytes(request.common), Place(_PHASE, request.step - 1))
    transcript, vectors, values, measures = unpack(content, 4)
    if bytes(transcript) != iteration.transcript.digest:
        raise ProtocolError(
            "The leader was told other sums than this member; the server gave different ones, "
            "the run must stop."
        )
    columns = _solver(iteration).columns
    rank, rest = divmod(len(values), _NUMBER)
    fits = not rest and 1 <= rank <= columns and len(vectors) == len(values) * columns
    if not fits or len(measures) != _QUALITY.size:
        raise ProtocolError(
            f"The leader's solution does not fit {columns} vectors; start a new job."
        )
    eigenvalues = np.frombuffer(values, "<f8").copy()
    solution = np.frombuffer(vectors, "<f8").reshape(columns, rank).copy()
    orthogonality, residual = _QUALITY.unpack(measures)
    numbers = np.concatenate([eigenvalues, solution.ravel(), (orthogonality, residual)])
    if not np.isfinite(numbers).all():
        raise ProtocolError(
            "The leader's solution has values that are not finite numbers; start a new job."
        )
    return SmallSolution(solution, eigenvalues), (orthogonality, residual)


def _solver(iteration: Iteration) -> Solver:
    if iteration.solver is None or not iteration.solver.done:
        raise ProtocolError("The iteration is not over; the message came too early.")
    return iteration.solver
