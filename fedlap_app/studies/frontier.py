"""Accuracy against what it costs: vectors, round trips, bytes and leakage, over many settings."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedlap_app.api.training import conduct
from fedlap_app.errors import ConfigError, RunError
from fedlap_app.graphs.datasets import find_dataset
from fedlap_app.methods.registry import method_class
from fedlap_app.privacy.density import Density, density_of
from fedlap_app.privacy.leakage import alpha_of, auc_of, kl_of, largest_sum, largest_vectors
from fedlap_app.settings import Settings
from fedlap_app.studies.frontier_grid import Point, Values, grid_of
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.plan import find_subgraphs
from fedlap_app.studies.planning.shape import shape_of
from fedlap_app.studies.planning.traffic import traffic_of
from fedlap_app.studies.variation import spread
from fedlap_app.sums.programs import Krylov

Say = Callable[[str], None]
Row = dict[str, Any]


def bench_frontier(
    settings: Settings,
    lists: Mapping[str, Values],
    seeds: Sequence[int],
    *,
    bound: int | None = None,
    say: Say = lambda text: None,
) -> dict[str, Any]:
    """Train at every point of a grid and find the best by validation accuracy.

    Parameters
    ----------
    settings
        Data set and training; the grid replaces those of the offline phase.
    lists
        Values of the axes of the grid; an axis without has the value of the settings.
    seeds
        Seeds that each point is run with.
    bound
        The most vectors exchanged of the second choice (default: the largest number with P + R at
        most 1 at the true edge density).
    say
        Is told how it goes on.
    """
    if Krylov.name not in method_class(settings.method).programs:
        raise ConfigError(
            f"method = '{settings.method}' does not use the spectral basis: a frontier compares "
            "settings of fedlap+, leave the method out"
        )
    graphs = _densities(settings, seeds)
    safe = min(largest_vectors(graph.nodes, graph.true_p) for graph in graphs)
    limit = safe if bound is None else bound
    points, skipped = grid_of(settings, lists, limit, min(graph.nodes for graph in graphs))
    say(f"{len(points)} settings; {len(skipped)} combinations that cannot be run are skipped")
    if not points:
        raise ConfigError(
            f"no setting of the grid can be run ({_first(skipped)}): give other lists, for example "
            "--grid-vectors 30,100 --grid-rank 0 --grid-block 1,10"
        )
    runs = _Runs(settings, seeds, len(points) * len(seeds), say)
    rows, failed = [], []
    for point in points:
        try:
            measured = runs.measure(point)
        except Exception as error:
            # The other points are worth their results, whatever went wrong at this one.
            failed.append({"setting": str(point), "reason": str(error) or type(error).__name__})
            say(f"Failed: {point}: {failed[-1]['reason']}")
            continue
        rows.append({**_described(point), **measured, **_leakage(point, graphs, limit)})
    if not rows:
        raise RunError(f"all {len(failed)} settings failed, the first with: {_first(failed)}")
    best = choose(rows)
    under = choose([row for row in rows if row["inside"]])
    for row in rows:
        row |= {"best": row is best, "best_under_bound": row is under}
    first = graphs[0]
    return {
        "dataset": settings.data or settings.dataset,
        "partition": settings.partition,
        "clients": runs.clients,
        "seeds": len(seeds),
        "seed_start": seeds[0],
        "nodes": first.nodes,
        "edges": first.edges,
        "density": first.true_p,
        "bound": limit,
        "bound_p_plus_r": safe,
        "rows": rows,
        "skipped": skipped,
        "failed": failed,
        "best": best,
        "best_under_bound": under,
    }


def choose(rows: Sequence[Row]) -> Row | None:
    """The row with the highest validation accuracy; of equal ones the cheapest.

    Fewer vectors exchanged count first, then round trips, bytes and vectors kept. Without
    validation nodes there is no choice.
    """
    scored = [row for row in rows if row["validation_mean"] is not None]
    price = ("exchanged", "round_trips", "bytes_up_per_client", "rank")
    return min(
        scored,
        key=lambda row: (-row["validation_mean"], *(row[key] for key in price)),
        default=None,
    )


def _densities(settings: Settings, seeds: Sequence[int]) -> list[Density]:
    """Counts of the graph, for every seed where the graph is generated from it."""
    generated = not settings.data and "seed" in find_dataset(settings.dataset).depends_on
    return [
        density_of(find_subgraphs(replace(settings, seed=seed))[1])
        for seed in (seeds if generated else seeds[:1])
    ]


def _first(reasons: Sequence[Mapping[str, str]]) -> str:
    return f"{reasons[0]['setting']}: {reasons[0]['reason']}" if reasons else "it is empty"


def _described(point: Point) -> Row:
    return {
        "operator": point.operator,
        "keep": point.keep,
        "vectors": point.vectors,
        "exchanged": point.exchanged,
        "rank": point.rank,
        "block": point.block,
    }


def _leakage(point: Point, graphs: Sequence[Density], bound: int) -> Row:
    """The paper's bound on the attacker, of the graph that is worst off."""
    alphas = [(alpha_of(point.exchanged, g.nodes, g.true_p), g.true_p) for g in graphs]
    return {
        "kl": max(kl_of(alpha) for alpha, _ in alphas),
        "auc": max(auc_of(alpha) for alpha, _ in alphas),
        "p_plus_r": max(largest_sum(alpha, p) for alpha, p in alphas),
        "inside": point.exchanged <= bound,
    }


@dataclass(frozen=True)
class _Price:
    """What an offline phase took, without and in its handshake; mean bytes sent by a client."""

    round_trips: int
    handshake: int
    up: float


class _Runs:
    """All runs of a frontier, with the time that is left."""

    def __init__(self, settings: Settings, seeds: Sequence[int], runs: int, say: Say) -> None:
        from fedlap_app.flower.grids.in_process import count_clients

        self.clients = count_clients(settings)
        self._settings = settings
        self._seeds = seeds
        self._runs = runs
        self._say = say
        self._done = 0
        self._started = time.perf_counter()

    def measure(self, point: Point) -> Row:
        """Accuracy in percent and price of one point, over all seeds."""
        started = time.perf_counter()
        end = self._done + len(self._seeds)
        scores: dict[str, list[float | None]] = {"val": [], "test": []}
        prices = []
        try:
            for seed in self._seeds:
                settings = replace(point.settings(self._settings), seed=seed)
                run = conduct(settings)
                prices.append(_price_of(settings, run.offline))
                for split, values in scores.items():
                    share = run.accuracy[split]
                    values.append(None if share is None else 100 * share)
                self._done += 1
                self._tell(point, seed, scores)
        finally:
            self._done = end  # runs that a failure left out are not waited for
        return {
            "round_trips": max(price.round_trips for price in prices),
            "handshake_round_trips": max(price.handshake for price in prices),
            "bytes_up_per_client": statistics.mean(price.up for price in prices),
            **spread(scores["val"]).row("validation"),
            **spread(scores["test"]).row("test"),
            "seconds": time.perf_counter() - started,
        }

    def _tell(self, point: Point, seed: int, scores: Mapping[str, Sequence[float | None]]) -> None:
        left = (time.perf_counter() - self._started) / self._done * (self._runs - self._done)
        self._say(
            f"[RUN {self._done}/{self._runs}] {point}, seed {seed}: validation "
            f"{spread(scores['val'][-1:])} %, test {spread(scores['test'][-1:])} %, "
            f"{left:.0f} s left"
        )


def _price_of(settings: Settings, facts: Mapping[str, Any]) -> _Price:
    """What the phase of a run took; of a basis that was reused, what it takes to compute it."""
    if not facts["reused"]:
        up = statistics.mean(facts["up"].values())
        return _Price(facts["round_trips"], facts["handshake"], up)
    settings, subgraphs = find_subgraphs(settings)
    phase = Phase(settings.offline_spec, shape_of(subgraphs), settings.seed)
    traffic = traffic_of(phase, settings.message_mb)
    return _Price(traffic.round_trips, traffic.handshake, traffic.mean_up)
