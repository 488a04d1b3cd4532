"""All attacks on recorded runs in one report: who attacks whom, how well, and what theory says."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.graph import join
from fedlap_app.privacy.density import density_of
from fedlap_app.privacy.leakage import alpha_of, auc_of, recall_at
from fedlap_app.settings import Settings
from fedlap_app.studies.attacks.curious import attack_curious
from fedlap_app.studies.attacks.scores import Scores, curve_of, measure
from fedlap_app.studies.attacks.views import ClientView, form_coalition
from fedlap_app.studies.attacks.worst import attack_worst, worst_case
from fedlap_app.studies.audit.audit import WHOLE
from fedlap_app.studies.audit.exposure import BOTH_ROWS, WORST
from fedlap_app.studies.audit.leverages import leverages_of
from fedlap_app.studies.recorder import record_run
from fedlap_app.studies.server_runs import RUNS, attack_server_views

ATTACKS = ("worst", "client", "coalition", "server")
_CLIENT = "a curious client that knows its own rows, its sums and H"
_BASELINE = "the same without any message: it counts common neighbours among its own nodes"
_SERVER = "the server: a classifier on its views of runs over two graphs that differ in edges"
_POINTS = 400

Say = Callable[[str], None]


@dataclass(frozen=True)
class Choice:
    """Which attacks are made.

    Attributes
    ----------
    attacks
        Names from `ATTACKS`.
    target
        Organisation that the worst case is also tried on; empty: the smallest.
    attacker
        The curious client, and the first of the coalition; empty: the first organisation.
    coalition
        Clients that work together; 0: half of all.
    runs
        Runs that the server's classifier is trained on.
    """

    attacks: Sequence[str] = ATTACKS
    target: str = ""
    attacker: str = ""
    coalition: int = 0
    runs: int = RUNS


def run_attacks(settings: Settings, choice: Choice, say: Say = lambda text: None) -> dict[str, Any]:
    """Record a run and attack it; the server's attack makes runs of its own."""
    _check(choice)
    report: dict[str, Any] = {
        "data": settings.data or settings.dataset,
        "partition": settings.partition,
        "operator": settings.operator,
        "backend": settings.backend,
        "attacks": [],
    }
    if set(choice.attacks) - {"server"}:
        say("Recording what every client holds at the end of a run")
        views = record_run(settings).views()
        report |= {"clients": len(views), "vectors": next(iter(views.values())).Q.shape[1]}
        report["attacks"] += _on_clients(settings, choice, views, say)
    if "server" in choice.attacks:
        found = attack_server_views(settings, runs=choice.runs, say=say)
        report["attacks"].append({"name": "server", "attacker": _SERVER, **found})
    return report


def _check(choice: Choice) -> None:
    unknown = set(choice.attacks) - set(ATTACKS)
    if unknown or not choice.attacks:
        raise ConfigError(
            f"--attack {','.join(choice.attacks)!r} names no attack that there is: choose from "
            f"{', '.join(ATTACKS)}"
        )
    if choice.runs < 4 or choice.runs % 2:
        raise ConfigError(
            f"--runs {choice.runs} is not an even number from 4 on: half of them are over each "
            "graph, try --runs 40"
        )


def _on_clients(
    settings: Settings, choice: Choice, views: Mapping[str, ClientView], say: Say
) -> list[dict[str, Any]]:
    rng = np.random.default_rng([settings.seed, 0xA7])
    found = []
    if "worst" in choice.attacks:
        target = choice.target or min(views, key=lambda name: views[name].subgraph.num_nodes)
        parts = [view.subgraph for view in views.values()]
        density = density_of(parts).true_p
        say("Worst case against the whole graph")
        rows = np.concatenate([view.scaled for view in views.values()])
        whole = _Target(WHOLE, rows, _undirected(join(parts)))
        found.append(_worst(whole, density, settings.seed, rng))
        say(f"Worst case against {target}")
        view = _view(views, target)
        own = _undirected(view.subgraph)[:, : view.subgraph.num_nodes]
        found.append(_worst(_Target(target, view.scaled, own), density, settings.seed, rng))
    first = choice.attacker or next(iter(views))
    several = choice.coalition or max(1, len(views) // 2)
    for name, size in (("client", 1), ("coalition", several)):
        if name in choice.attacks:
            say(f"Curious clients: {size}")
            found.append(_curious(name, _team(views, first, size), views, settings.seed, rng))
    return found


def _view(views: Mapping[str, ClientView], name: str) -> ClientView:
    if name not in views:
        raise ConfigError(f"there is no organisation {name!r}: choose from {', '.join(views)}")
    return views[name]


def _team(views: Mapping[str, ClientView], first: str, size: int) -> list[ClientView]:
    if not 1 <= size < len(views):
        raise ConfigError(
            f"--coalition {size} of {len(views)} organisations leaves nobody to attack: give a "
            f"number from 1 to {len(views) - 1}"
        )
    _view(views, first)
    names = [first, *(name for name in views if name != first)]
    return [views[name] for name in names[:size]]


@dataclass(frozen=True, eq=False)
class _Target:
    """Whose edges the worst-case attacker looks for."""

    name: str
    rows: Any
    adjacency: Any


def _undirected(subgraph: Any) -> Any:  # noqa: ANN401 - a sparse matrix
    rows = subgraph.out_adjacency()
    return rows.maximum(subgraph.in_adjacency()).tocsr() if subgraph.directed else rows


def _worst(target: _Target, density: float, seed: int, rng: np.random.Generator) -> dict[str, Any]:
    attacker = worst_case(target.rows, target.adjacency, density)
    one, both = attack_worst(attacker, target.adjacency, rng)
    nodes = target.rows.shape[0]
    alpha = alpha_of(attacker.rank, nodes, density)
    return {
        "name": "worst",
        "attacker": WORST,
        "target": target.name,
        "nodes": nodes,
        "density": density,
        "rank": attacker.rank,
        **measure(one, seed),
        "theory": {
            "alpha": alpha,
            "density": density,
            "auc": auc_of(alpha),
            "auc_exact_alpha": leverages_of(target.rows, density).auc,
            "tpr_at_fpr_0.01": recall_at(1e-2, alpha),
            "tpr_at_fpr_0.001": recall_at(1e-3, alpha),
        },
        "both_rows": {
            "attacker": BOTH_ROWS,
            "auc_theory": auc_of(2.0 * alpha),
            **measure(both, seed),
        },
        "curve": _curve(one, density),
        "curve_both_rows": _curve(both, density),
    }


def _curious(
    name: str,
    team: Sequence[ClientView],
    views: Mapping[str, ClientView],
    seed: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    coalition = form_coalition(team)
    whole = join([view.subgraph for view in views.values()])
    order = np.argsort(whole.ids)
    at = order[np.searchsorted(whole.ids, coalition.ids, sorter=order)]
    adjacency = _undirected(whole)[at][:, at]
    scores, baseline = attack_curious(coalition, adjacency, rng)
    who = _CLIENT if len(team) == 1 else f"{len(team)} such clients that share all they know"
    return {
        "name": name,
        "attacker": who,
        "members": list(coalition.names),
        "target": "edges among the foreign nodes that they border",
        "foreign": int(coalition.ids.size),
        **measure(scores, seed),
        "baseline": {"attacker": _BASELINE, **measure(baseline, seed)},
    }


def _curve(scores: Scores, density: float) -> dict[str, list[float]]:
    """Precision against recall, at so many recalls as a figure can show."""
    curve = curve_of(scores)
    at = np.searchsorted(curve.recalls, np.linspace(0.0, 1.0, _POINTS)).clip(1)
    at = np.unique(at.clip(max=curve.recalls.size - 1))
    precisions = curve.precisions(density)
    return {"recall": curve.recalls[at].tolist(), "precision": precisions[at].tolist()}
