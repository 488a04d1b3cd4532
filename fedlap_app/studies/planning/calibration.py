"""How fast this machine is: a second of small measurements, each the best of a few."""

import hashlib
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fedlap_app.methods.registry import BUILT_IN
from fedlap_app.settings import Settings
from fedlap_app.studies.spectrum import run_spectrum
from fedlap_app.studies.step_watch import StepWatch
from fedlap_app.sums.backend import InsecureWarning
from fedlap_app.sums.choice import make_accumulator, make_backend
from fedlap_app.sums.edgecheck import EdgeList
from fedlap_app.sums.header import Place
from fedlap_app.sums.job.spec import OfflineSpec
from fedlap_app.sums.keyring import KeyRing
from fedlap_app.sums.programs import Krylov

_TURNS = 3
_ROWS, _COLUMNS = 4000, 50
_NUMBERS = 2**14
_BYTES = 2**21
_EDGES = 1000
_FEW, _MANY = 2, 6
_PHASES = 2


@dataclass(frozen=True)
class Rates:
    """Seconds of single operations on one core.

    Attributes
    ----------
    member, peer
        Handshake of one member: for itself, and for each peer.
    message, contribution
        Handling of one message and of one vector in it, whatever their length.
    seal, open, add
        One number: sealed and opened by a member, added by the server.
    sparse, dense
        One entry of a sparse matrix times one column, and one multiplication of a dense product.
    byte
        One byte hashed, copied and written.
    edge
        One shared edge hashed.
    """

    member: float
    peer: float
    message: float
    contribution: float
    seal: float
    open: float
    add: float
    sparse: float
    dense: float
    byte: float
    edge: float


def calibrate(settings: Settings) -> Rates:
    """Measure this machine for a number of organisations, a back end and a block width."""
    spec = settings.offline_spec
    member, peer, message, contribution = _small_phases(settings)
    rates = Rates(
        member=member,
        peer=peer,
        message=message,
        contribution=contribution,
        seal=0.0,
        open=0.0,
        add=0.0,
        sparse=_sparse(spec.program.width),
        dense=_dense(spec.program.width),
        byte=_byte(),
        edge=_edge(),
    )
    return with_backend(rates, settings)


def with_backend(rates: Rates, settings: Settings) -> Rates:
    """The same machine with another back end."""
    spec = settings.offline_spec
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureWarning)
        return replace(rates, **_sums(spec, settings.clients))


def process_mb() -> float:
    """Memory of a process that has loaded the app and no data yet."""
    import fedlap_app.flower.client.app  # noqa: F401

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _best(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(_TURNS):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)


def _small_phases(settings: Settings) -> tuple[float, float, float, float]:
    """Fixed costs, from phases of few and of many organisations with little to compute."""
    small = replace(
        settings,
        method=BUILT_IN[0],
        options=(),
        programs=Krylov.name,
        dataset="banks",
        data="",
        partition="auto",
        accounts=200,
        directed=False,
        operator="sym",
        solver="block-lanczos",
        vectors=6,
        rank=0,
        block=2,
        hide_topology=True,
        store_dir="",
        resume=False,
        start_basis="",
        keep_basis=False,
        exchange_rows=False,
    )
    few, many = _phase(small, _FEW), _phase(small, _MANY)
    peer, contribution = ((b - a) / (_MANY - _FEW) for a, b in zip(few, many, strict=True))
    peer, contribution = max(peer, 0.0), max(contribution, 0.0)
    member = max(few[0] - (_FEW - 1) * peer, 0.0)
    message = max(few[1] - (_FEW - 1) * contribution, 0.0)
    return member, peer, message, contribution


def _phase(settings: Settings, clients: int) -> tuple[float, float]:
    """Seconds of the handshake a member, and of the rest a message."""
    best = [np.inf, np.inf]
    for _ in range(_PHASES):
        watch = StepWatch()
        report = run_spectrum(
            settings.with_clients(clients), check=False, dump=None, progress=watch
        )
        rest = watch.iteration.wall
        trips = clients * report["round_trips"]
        best = [min(best[0], (report["seconds"] - rest) / clients), min(best[1], rest / trips)]
    return best[0], best[1]


def _sums(spec: OfflineSpec, clients: int) -> dict[str, float]:
    """Sealing, opening and adding a number, without what a vector takes whatever its length."""
    names = tuple(f"client-{index:04d}" for index in range(clients))
    public = {names[-1]: spec.facts.new_public_key(spec.profile, bytes(32))}
    roots = dict.fromkeys(names, bytes(32))
    rings = {
        me: KeyRing(me, names, "0" * 32, "0" * 32, roots, bytes(32), bytes(32), public)
        for me in (names[0], names[-1])
    }
    # Like entries of a unit vector: no back end refuses them, however many organisations there are.
    values = np.random.default_rng(0).standard_normal(_NUMBERS) / np.sqrt(_NUMBERS)
    first, last = (
        make_backend(spec.backend, rings[me], profile=spec.profile) for me in (names[0], names[-1])
    )
    header = last.block_header(names[-1], Place(spec.program.name), length=values.size)
    body = first.seal(values, header)
    seal = _best(lambda: first.seal(values, header))
    total = make_accumulator(header, last.senders)
    started = time.perf_counter()
    total.add(body)
    add = time.perf_counter() - started
    little = last.block_header(names[-1], Place(spec.program.name, 1), length=1)
    fixed = _best(lambda: first.seal(values[:1], little))
    # To open takes off as many pads as a contribution carries, and checks as much.
    seal = max(seal - fixed, 0.0) / values.size
    return {"seal": seal, "open": seal, "add": add / values.size}


def _sparse(width: int) -> float:
    rng = np.random.default_rng(0)
    entries = 10 * _ROWS
    places = rng.integers(_ROWS, size=(2, entries))
    matrix = sp.csr_array((np.ones(entries), (places[0], places[1])), shape=(_ROWS, _ROWS))
    block = np.ones((_ROWS, width))
    return _best(lambda: matrix @ block) / float(matrix.nnz * width)


def _dense(width: int) -> float:
    basis, block = np.ones((_ROWS, _COLUMNS), order="F"), np.ones((_ROWS, width))
    return _best(lambda: basis @ (basis.T @ block)) / (2 * basis.size * width)


def _byte() -> float:
    data = bytes(_BYTES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part"

        def handle() -> None:
            hashlib.sha256(data).digest()
            path.write_bytes(b"".join((data, b"\0")))

        return _best(handle) / _BYTES


def _edge() -> float:
    names = np.array([f"n{index:06d}" for index in range(_EDGES)])
    ends = np.tile(np.arange(_EDGES), (2, 1))
    edges = EdgeList(names, names, ends, np.zeros(_EDGES, dtype=bool), np.ones(_EDGES))
    return _best(lambda: edges.digest(bytes(32))) / _EDGES
