"""What a basis from an old one costs and is worth, against a cold start and against keeping it.

A share of the edges is another one after training: half of it went, half of it came. Or the last
organisation joins after training, or leaves. All bases are of the graph as it is then; on each the
old model predicts at once, and a fresh one is trained.
"""

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedlap_app.api.organisations import Organisations, in_memory, named_by
from fedlap_app.api.prediction import predict_part
from fedlap_app.api.run import Run
from fedlap_app.api.training import train
from fedlap_app.errors import ConfigError
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.graphs.without import with_edges, without
from fedlap_app.settings import Settings
from fedlap_app.studies.report_files import Column, lines_of
from fedlap_app.studies.variation import spread

STARTS = ("cold", "warm", "kept")
JOINED, LEFT = MEMBERS = "joined", "left"
_PERCENT = 100.0
_COLUMNS: tuple[Column, ...] = (
    ("change", "changed", "{:>7}"),
    ("start", "start", "{:<5}"),
    ("trips", "trips", "{:>5}"),
    ("vectors", "vectors", "{:>7}"),
    ("megabytes", "MB up", "{:>7}"),
    ("at_once", "old model", "{:>9}"),
    ("last_at_once", "at the last", "{:>11}"),
    ("fresh", "fresh model", "{:>15}"),
    ("difference", "against cold", "{:>16}"),
)

Say = Callable[[str], None]
BeforeAndAfter = tuple[list[Subgraph], list[Subgraph]]
Change = Callable[[Organisations], BeforeAndAfter]


@dataclass(frozen=True)
class Start:
    """A basis of one seed; accuracies in percent.

    Attributes
    ----------
    change, start, seed : what was measured.
    trips, vectors, megabytes : round trips, vectors exchanged, and bytes that an organisation sent.
    at_once : test accuracy of the old model on the new basis.
    last_at_once : that at the last organisation alone, the one that joins.
    fresh : that of a fresh model.
    """

    change: str
    start: str
    seed: int
    trips: int
    vectors: int
    megabytes: float
    at_once: float
    last_at_once: float
    fresh: float


def bench_updates(
    settings: Settings,
    shares: Sequence[float],
    seeds: Sequence[int],
    *,
    members: Sequence[str] = (),
    say: Say = lambda text: None,
) -> dict[str, Any]:
    """Measure all starts for every share of changed edges and every seed.

    Parameters
    ----------
    settings
        Data and training, with a method that reads a basis.
    shares
        Of the edges that are others after training.
    seeds
        Each divides a benchmark anew, and draws which edges.
    members
        Changes of the members, some of `MEMBERS`.
    say
        Is told what is done.
    """
    if not settings.needs_basis:
        raise ConfigError(f"method = '{settings.method}' reads no basis: try method = 'fedlap+'")
    for share in shares:
        if not 0.0 < share < 1.0:
            raise ConfigError(f"{share} of the edges: give shares between 0 and 1")
    found = []
    changes: dict[str, Change] = {f"{_PERCENT * share:g} %": _edges(share) for share in shares}
    changes |= {name: _members(name) for name in members}
    for name, change in changes.items():
        for seed in seeds:
            say(f"{name}, seed {seed}")
            found += starts_of(replace(settings, seed=seed), name, change)
    rows = [_row(found, name, start) for name in changes for start in STARTS]
    return {
        "dataset": settings.data or settings.dataset,
        "vectors": settings.vectors,
        "rank": settings.kept,
        "seeds": len(seeds),
        "rows": rows,
        "starts": [vars(each) for each in found],
    }


def starts_of(settings: Settings, name: str, change: Change) -> list[Start]:
    """All starts of one seed."""
    orgs = named_by(settings)
    earlier, now = (in_memory(parts, seed=settings.seed) for parts in change(orgs))
    with tempfile.TemporaryDirectory(prefix="fedlap-") as home:
        old = train(earlier, preset=settings, store=home)
        job = str(old.offline["job"])
        found = []
        for start in STARTS:
            chosen = settings
            if start != "cold":
                kept = start == "kept"
                chosen = replace(settings, start_basis=job, keep_basis=kept)
                chosen = replace(chosen, exchange_rows=len(now) > len(earlier))
            run = train(now, preset=chosen, store=home)
            found.append(_measured(start, name, run, old, now))
    return found


def _measured(start: str, change: str, run: Run, old: Run, now: Organisations) -> Start:
    """What one basis costs and is worth."""
    model = old.model_file
    vectors = 0
    right, counts = [], []
    for part in now:
        basis = run.kept_by(part).basis
        assert basis is not None, "a run with a basis keeps it"
        took_part = part.name in old.summary["client_accuracy"]  # others know the new moments only
        told = old if took_part else run
        encoding = told.encoding_of(part, told.model_file)
        scores = predict_part(part, model, basis, encoding=encoding).evaluation.test
        right.append(scores.correct)
        counts.append(scores.count)
        vectors = int(basis.facts.columns) if basis.facts.job != old.offline["job"] else 0
    up = run.offline["up"].values()
    return Start(
        change=change,
        start=start,
        seed=run.settings.seed,
        trips=int(run.offline["round_trips"]),
        vectors=vectors,
        megabytes=float(np.mean(list(up))) / 1e6,
        at_once=_PERCENT * sum(right) / max(sum(counts), 1),
        last_at_once=_PERCENT * right[-1] / max(counts[-1], 1),
        fresh=_PERCENT * float(run.accuracy["test"] or 0.0),
    )


def _row(found: Sequence[Start], change: str, start: str) -> dict[str, Any]:
    """One start after one change, over the seeds."""
    mine = {each.seed: each for each in found if (each.change, each.start) == (change, start)}
    cold = {each.seed: each for each in found if (each.change, each.start) == (change, "cold")}
    first = next(iter(mine.values()))
    at_once = spread([each.at_once for each in mine.values()])
    differences = spread([each.fresh - cold[seed].fresh for seed, each in mine.items()])
    return {
        "change": change,
        "start": start,
        "trips": first.trips,
        "vectors": first.vectors,
        "megabytes": first.megabytes,
        "at_once": at_once.mean,
        "last_at_once": spread([each.last_at_once for each in mine.values()]).mean,
        "fresh": str(spread([each.fresh for each in mine.values()])),
        "difference": str(differences) if start != "cold" else "",
    }


def _edges(share: float) -> Change:
    """Parts before and after: each lacks half the share of the edges, other ones."""

    def change(orgs: Organisations) -> BeforeAndAfter:
        draws = [(part, _draws(part, orgs.seed)) for part in orgs]
        before = [with_edges(part, draw >= share / 2) for part, draw in draws]
        return before, [with_edges(part, draw < 1 - share / 2) for part, draw in draws]

    return change


def _members(name: str) -> Change:
    """The last organisation is one that joined or left."""

    def change(orgs: Organisations) -> BeforeAndAfter:
        parts = list(orgs)
        fewer = [without(part, parts[-1].ids) for part in parts[:-1]]
        return (fewer, parts) if name == JOINED else (parts, fewer)

    return change


def _draws(part: Subgraph, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A number from 0 to 1 for every edge, the same on both of its sides."""
    everyone = [*part.ids.tolist(), *part.external_ids.tolist()]
    draws = np.empty(part.edge_index.shape[1])
    for at, ends in enumerate(part.edge_index.T.tolist()):
        names = sorted(everyone[end] for end in ends)
        mark = hashlib.blake2b("\0".join([str(seed), *names]).encode(), digest_size=8).digest()
        draws[at] = int.from_bytes(mark, "little") / 2**64
    return draws


def table_of(report: dict[str, Any]) -> str:
    """The report as text."""
    head = (
        f"{report['dataset']}, {report['vectors']} vectors, {report['rank']} kept, "
        f"{report['seeds']} seeds; test accuracy in percent, 95 % intervals"
    )
    return "\n".join([head, *lines_of(_COLUMNS, report["rows"], _cell)])


def _cell(key: str, value: Any) -> str:  # noqa: ANN401 - of any column
    return f"{value:.2f}" if isinstance(value, float) else str(value)
