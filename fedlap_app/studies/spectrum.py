"""The offline phase alone in this process, and its comparison with the whole graph.

Only here are the rows of all organisations in one place.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.api.phase import Phase
from fedlap_app.api.workplace import temporary_home
from fedlap_app.errors import ConfigError
from fedlap_app.flower.server.parts import subgraphs_of
from fedlap_app.graphs.graph import join
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.settings import Settings
from fedlap_app.studies import true_spectrum
from fedlap_app.sums.job.bases import FinishedBasis

if TYPE_CHECKING:
    from fedlap_app.flower.server.price import OfflineOutcome

Progress = Callable[[int, int], None]
Rows = Mapping[str, FinishedBasis]


def run_spectrum(
    settings: Settings, *, check: bool, dump: Path | None, progress: Progress | None = None
) -> dict[str, Any]:
    """Run the phase and describe its price and its result.

    Parameters
    ----------
    settings
        Settings; without a store-dir the stores are deleted at the end.
    check
        Compare with the eigenvectors of the whole graph.
    dump
        Folder for the rows of every organisation.
    progress
        Is told of every round trip.
    """
    with nullcontext() if settings.store_dir else temporary_home():
        return _run(settings, check, dump, progress)


def _run(
    settings: Settings, check: bool, dump: Path | None, progress: Progress | None
) -> dict[str, Any]:
    phase = Phase(settings)
    settings = phase.settings
    subgraphs = subgraphs_of(settings)
    outcome = phase.run(progress)
    rows = phase.rows(outcome.job)
    if dump is not None:
        _dump(dump, subgraphs, rows)
    report = {**_price(settings, outcome, subgraphs, rows), **_certified(rows)}
    if check:
        report |= compare(settings, subgraphs, {name: basis.U for name, basis in rows.items()})
    return report


def _values(settings: Settings, subgraphs: Sequence[Subgraph], rows: Rows) -> list[int]:
    """Numbers that each organisation sent: to all others, or to its partners if they are shown."""
    slots = {name: basis.facts.rows for name, basis in rows.items()}
    sent = []
    for part in subgraphs:
        everyone = set(slots) - {part.name}
        others: Iterable[str] = everyone if settings.hide_topology else part.partners
        facts = rows[part.name].facts
        sent.append(facts.columns * sum(slots[name] for name in others) + facts.numbers)
    return sent


def _price(
    settings: Settings, outcome: "OfflineOutcome", subgraphs: Sequence[Subgraph], rows: Rows
) -> dict[str, Any]:
    """What the phase took; nothing when a finished basis was reused."""
    price = outcome.price
    values = _values(settings, subgraphs, rows)
    up = statistics.mean(price.up.values())
    first = next(iter(rows.values()))
    return {
        "dataset": settings.data or settings.dataset,
        "clients": settings.clients,
        "partition": settings.partition,
        "operator": settings.operator,
        "solver": settings.solver,
        "backend": settings.backend,
        "seed": settings.seed,
        "keep": settings.keep,
        "block": settings.block,
        "vectors": first.certificate.vectors,
        "rank": first.certificate.rank,
        "reused": outcome.reused,
        "round_trips": price.round_trips,
        "handshake_round_trips": price.handshake,
        "bytes_up_per_client": up,
        "bytes_down_per_client": statistics.mean(price.down.values()),
        "values_per_client": 0 if outcome.reused else statistics.mean(values),
        "bytes_per_value_up": None if outcome.reused else up / statistics.mean(values),
        "seconds": price.seconds,
        "seconds_secure": price.secure_seconds,
    }


def _certified(rows: Rows) -> dict[str, Any]:
    """What the clients certify, until a check on the gathered rows replaces it."""
    certificate = next(iter(rows.values())).certificate
    return {
        "orthogonality": certificate.orthogonality,
        "residual_max": certificate.residual_max,
        "capture": None,
    }


def compare(
    settings: Settings, subgraphs: list[Subgraph], rows: Mapping[str, NDArray[np.float64]]
) -> dict[str, float]:
    """Orthogonality, largest residual and capture of gathered rows against the whole graph."""
    spec = settings.krylov
    whole = join(subgraphs)
    adjacency = whole.out_adjacency()
    if whole.directed and spec.operator != "directed":
        adjacency = adjacency.maximum(whole.in_adjacency()).tocsr()
    options: dict[str, Any] = {"self_loops": spec.loops, "regulariser": spec.shift}
    operator = true_spectrum.whole_operator(spec.operator, adjacency, **options)
    vectors = _in_order(whole, subgraphs, rows)
    if spec.operator == "rw":
        # The presented vectors are D^-1/2 times orthonormal ones.
        degrees = np.asarray(adjacency.sum(axis=1)).reshape(-1, 1) + spec.loops
        vectors = vectors * np.sqrt(degrees)
    gram = vectors.T @ vectors
    images = np.asarray(operator @ vectors)
    quotients = np.sum(vectors * images, axis=0) / np.diag(gram)
    rank = vectors.shape[1]
    _, true = true_spectrum.eigenspace(spec.operator, adjacency, rank, spec.keep, **options)
    return {
        "orthogonality": float(np.linalg.norm(np.eye(rank) - gram, 2)),
        "residual_max": float(np.linalg.norm(images - vectors * quotients, axis=0).max()),
        "capture": true_spectrum.capture(vectors, true),
    }


def _in_order(
    whole: Subgraph, subgraphs: list[Subgraph], rows: Mapping[str, NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Rows of all organisations in the order of the whole graph's nodes."""
    ids = np.concatenate([subgraph.ids for subgraph in subgraphs])
    stacked = np.vstack([rows[subgraph.name] for subgraph in subgraphs])
    order = np.argsort(ids)
    return np.asarray(stacked[order[np.searchsorted(ids[order], whole.ids)]])


def _dump(folder: Path, subgraphs: list[Subgraph], rows: Rows) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for subgraph in subgraphs:
            basis = rows[subgraph.name]
            np.savez(
                folder / f"{subgraph.name}.npz",
                ids=subgraph.ids,
                U=np.asarray(basis.U),
                eigenvalues=basis.eigenvalues,
            )
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be written ({error.strerror}): name another folder for --dump"
        ) from None
