"""Runs over two graphs that differ in their edges only, as the server sees them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedlap_app.flower.server.parts import Part
from fedlap_app.graphs.graph import Graph, cut, join
from fedlap_app.graphs.splits import Masks
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.settings import Settings
from fedlap_app.studies.attacks.scores import measure
from fedlap_app.studies.attacks.server import Exchange, attack_server, contents_of, times_of
from fedlap_app.studies.planning.plan import find_subgraphs
from fedlap_app.studies.recorder import record_run

CHANCE = 0.5
RUNS = 40
Say = Callable[[str], None]


def attack_server_views(
    settings: Settings, *, runs: int = RUNS, say: Say = lambda text: None
) -> dict[str, Any]:
    """Train a classifier on the server's views of runs, and ask it about as many further ones.

    Parameters
    ----------
    settings
        Data set and offline phase; no more vectors than two blocks are exchanged, since later
        steps look like earlier ones.
    runs
        Runs to train on, half of them over each graph.
    say
        Is told how it goes on.
    """
    settings, parts = find_subgraphs(settings)
    few = min(settings.vectors, 2 * settings.block)
    settings = replace(settings, vectors=few, rank=min(settings.rank, few))
    rng = np.random.default_rng([settings.seed, 0x5E])
    labels = np.arange(2 * runs) % 2 == 1
    views: list[list[Exchange]] = []
    graphs = [[Part(_bare(part)) for part in graph] for graph in (parts, rewired(parts, rng))]
    for run, label in enumerate(labels):
        chosen = replace(settings, seed=int(rng.integers(2**31)))
        views.append(record_run(chosen, graphs[int(label)]).exchanges)
        if (run + 1) % 10 == 0:
            say(f"[RUN {run + 1}/{2 * runs}] over graphs that differ in edges")
    return {
        "runs": runs,
        "runs_tested": runs,
        "backend": settings.backend,
        "vectors": few,
        "contents": _judge([contents_of(each) for each in views], labels, settings.seed),
        "timing": _judge([times_of(each) for each in views], labels, settings.seed),
    }


def _judge(features: Sequence[Any], labels: Any, seed: int) -> dict[str, Any]:  # noqa: ANN401
    half = len(features) // 2
    scores = attack_server(features[:half], labels[:half], features[half:], labels[half:])
    found = measure(scores, seed)
    low, high = found["auc_interval"]
    return {
        "auc": found["auc"],
        "auc_interval": found["auc_interval"],
        "tpr_at_fpr_0.01": found["tpr_at_fpr_0.01"],
        "tpr_at_fpr_0.001": found["tpr_at_fpr_0.001"],
        "at_chance": low <= CHANCE <= high,
    }


def rewired(parts: Sequence[Subgraph], rng: np.random.Generator) -> list[Subgraph]:
    """The same nodes at the same organisations, with as many edges between random nodes."""
    whole = join(parts)
    sources, targets = whole.edge_index
    once = sources < targets if not whole.directed else sources != targets
    count, nodes = int(once.sum()), whole.num_nodes
    pairs: set[tuple[int, int]] = set()
    while len(pairs) < min(count, nodes * (nodes - 1) // 2):
        u, v = (int(each) for each in rng.integers(nodes, size=2))
        if u != v:
            pairs.add((min(u, v), max(u, v)))
    graph = Graph(
        ids=whole.ids,
        features=whole.features,
        labels=whole.labels,
        edge_index=np.array(sorted(pairs), dtype=np.int64).T,
        edge_weight=whole.edge_weight[once][: len(pairs)],
        classes=whole.classes,
        feature_names=whole.feature_names,
        directed=whole.directed,
    )
    assignment = np.repeat(np.arange(len(parts)), [part.num_nodes for part in parts])
    masks = Masks(whole.train_mask, whole.val_mask, whole.test_mask)
    return cut(graph, assignment, [part.name for part in parts], masks)


def _bare(part: Subgraph) -> Subgraph:
    """A part without features, which the offline phase does not use."""
    return replace(part, features=np.zeros((part.num_nodes, 0), np.float32), feature_names=())
