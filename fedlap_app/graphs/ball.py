"""What an organisation would see if it were handed all nodes within some hops of its own."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedlap_app.graphs.arrays import take_rows
from fedlap_app.graphs.graph import join
from fedlap_app.graphs.subgraph import Subgraph


def ball_of(
    part: Subgraph, parts: Sequence[Subgraph], hops: int, *, among_foreign: bool = True
) -> Subgraph:
    """A part with the nodes around it as if they were its own, but without their labels.

    Parameters
    ----------
    part
        The organisation's; its nodes come first, in its own order.
    parts
        Those of all organisations.
    hops
        How far to go.
    among_foreign
        Whether edges between two foreign nodes belong to it.
    """
    whole = join(parts)
    order = np.argsort(whole.ids)
    own = order[np.searchsorted(whole.ids, part.ids, sorter=order)]
    near = whole.symmetric_adjacency()
    reached = np.zeros(whole.num_nodes)
    reached[own] = 1.0
    for _ in range(hops):
        reached = np.minimum(reached + near @ reached, 1.0)
    reached[own] = 0.0
    nodes = np.concatenate([own, np.flatnonzero(reached)])
    place = np.full(whole.num_nodes, -1)
    place[nodes] = np.arange(nodes.size)
    index = place[whole.edge_index]
    kept = index.min(axis=0) >= 0
    if not among_foreign:
        kept &= index.min(axis=0) < own.size
    added = nodes.size - own.size
    nothing = np.empty(0, dtype="<U1")
    return Subgraph(
        name=part.name,
        classes=part.classes,
        feature_names=part.feature_names,
        ids=whole.ids[nodes],
        external_ids=nothing,
        external_owners=nothing,
        edge_index=index[:, kept],
        edge_weight=whole.edge_weight[kept],
        features=take_rows(whole.features, nodes),
        labels=np.concatenate([part.labels, np.full(added, -1)]),
        directed=part.directed,
        **masks_of(part, added),
    )


def masks_of(part: Subgraph, added: int) -> dict[str, Any]:
    """The masks of a part and some nodes behind its own, which are in none."""
    none = np.zeros(added, dtype=bool)
    names = [f"{split}_mask" for split in ("train", "val", "test")]
    return {name: np.concatenate([getattr(part, name), none]) for name in names}
