"""A whole graph, cut into the parts of organisations and joined from them again."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fedlap_app.errors import DataError
from fedlap_app.graphs import checks
from fedlap_app.graphs.arrays import (
    Features,
    Floats,
    Ints,
    Strings,
    feature_matrix,
    freeze,
    numbers,
    stack_rows,
    strings,
    take_rows,
)
from fedlap_app.graphs.edges import edge_keys, simplify_edges
from fedlap_app.graphs.kinds import Kinds, check_kinds
from fedlap_app.graphs.splits import Masks
from fedlap_app.graphs.subgraph import (
    Subgraph,
    feature_arrays,
    features_from,
    kind_arrays,
    kinds_from,
    texts,
)
from fedlap_app.store.arrays import read_arrays, write_arrays

CENTRAL = "central"


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph that nobody has cut yet.

    The edges may be given raw: self loops and exact duplicates are dropped, and unless
    ``directed`` both directions are filled in (see `simplify_edges`).

    Attributes
    ----------
    ids : (n,) names of the nodes.
    features : (n, d) float32, dense or CSR.
    labels : (n,) position in ``classes``, or -1.
    edge_index, edge_weight : (2, E) and (E,).
    classes, feature_names : names.
    owner : (n,) natural owner of each node, where the data has owners.
    directed : whether direction matters.
    kinds, categories : as of `Subgraph`.
    """

    ids: Strings
    features: Features
    labels: Ints
    edge_index: Ints
    edge_weight: Floats
    classes: tuple[str, ...]
    feature_names: tuple[str, ...]
    owner: Strings | None = None
    directed: bool = False
    kinds: Kinds = ()
    categories: Strings | None = None

    def __post_init__(self) -> None:
        ids = strings(self.ids, "The list of nodes")
        checks.check_unique(ids, "Node")
        index = numbers(self.edge_index, np.int64, "The edge index")
        weight = numbers(self.edge_weight, np.float64, "The edge weights")
        if index.ndim != 2 or len(index) != 2 or weight.shape != index.shape[1:]:
            raise DataError(
                f"The edge index has the shape {index.shape} and the weights {weight.shape}: give "
                "(2, edges) and (edges,)."
            )
        if index.size and (index.min() < 0 or index.max() >= ids.size):
            raise DataError(f"An edge names a node outside 0 to {ids.size - 1}: renumber it.")
        index, weight = simplify_edges(index, weight, ids, directed=self.directed)
        checks.check_edges(index, weight, ids, directed=self.directed)
        prepared = {
            "ids": ids,
            "edge_index": freeze(index),
            "edge_weight": freeze(weight),
            "features": feature_matrix(self.features, "The feature matrix"),
            "labels": numbers(self.labels, np.int64, "The labels"),
            "owner": None if self.owner is None else strings(self.owner, "The list of owners"),
            "categories": texts(self.categories),
        }
        for key, value in prepared.items():
            object.__setattr__(self, key, value)
        checks.check_features(self.features, ids, self.feature_names, self.kinds)
        check_kinds(self.kinds, len(self.feature_names), self.categories, ids.size)
        checks.check_labels(self.labels, ids, self.classes)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return int(self.ids.size)

    def adjacency(self) -> sp.csr_array:
        """Weights (n, n): rows are sources, columns targets."""
        shape = (self.num_nodes, self.num_nodes)
        return sp.csr_array((self.edge_weight, tuple(self.edge_index)), shape=shape)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one binary file, atomically."""
        meta, arrays = feature_arrays(self.features)
        meta |= {
            "kind": "Graph",
            "classes": self.classes,
            "feature_names": self.feature_names,
            "directed": self.directed,
        }
        declared, texts_of = kind_arrays(self.kinds, self.categories)
        meta |= declared
        arrays |= texts_of | {key: getattr(self, key) for key in _ARRAYS}
        write_arrays(path, meta, arrays if self.owner is None else arrays | {"owner": self.owner})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Graph":
        """Read what `save` wrote."""
        meta, arrays = read_arrays(path)
        if meta.get("kind") != "Graph":
            raise DataError(f"{path} does not hold a whole graph: name a file that save() wrote.")
        return cls(
            features=features_from(meta, arrays),
            classes=tuple(meta["classes"]),
            feature_names=tuple(meta["feature_names"]),
            owner=arrays.get("owner"),
            directed=meta["directed"],
            **{**kinds_from(meta, arrays), **{key: arrays[key] for key in _ARRAYS}},
        )


_ARRAYS = ("ids", "labels", "edge_index", "edge_weight")


def cut(graph: Graph, assignment: Ints, names: Sequence[str], masks: Masks) -> list[Subgraph]:
    """Parts of a graph, each with the foreign ends of its edges.

    Parameters
    ----------
    graph : the whole.
    assignment : (n,) which part each node goes to, 0 to K - 1, none of them empty.
    names : the K organisations.
    masks : training, validation and test nodes of the whole graph.
    """
    assignment = _checked_assignment(graph, assignment, names)
    count = len(names)
    # Externals are listed by owner and then id: the rank in that order is found once for all.
    name_rank = np.argsort(np.argsort(np.asarray(names)))
    by_owner = np.lexsort((graph.ids, name_rank[assignment]))
    rank = np.empty_like(by_owner)
    rank[by_owner] = np.arange(by_owner.size)
    members = np.split(np.argsort(assignment, kind="stable"), _ends(assignment, count))
    local = np.empty(graph.num_nodes, dtype=np.int64)
    place = np.zeros_like(local)
    for nodes in members:
        local[nodes] = np.arange(nodes.size)
    parts = []
    for part, edges in enumerate(_edges_of_parts(graph, assignment, count)):
        ends = graph.edge_index[:, edges]
        foreign = assignment[ends] != part
        outside = by_owner[np.unique(rank[ends[foreign]])]
        place[outside] = members[part].size + np.arange(outside.size)
        places = np.where(foreign, place[ends], local[ends])
        owners = np.asarray(names)[assignment[outside]]
        parts.append(
            _part(graph, names[part], members[part], outside, owners, edges, places, masks)
        )
    return parts


def _part(
    graph: Graph,
    name: str,
    nodes: Ints,
    outside: Ints,
    owners: Strings,
    edges: Ints,
    places: Ints,
    masks: Masks,
) -> Subgraph:
    return Subgraph(
        name=name,
        classes=graph.classes,
        feature_names=graph.feature_names,
        ids=graph.ids[nodes],
        external_ids=graph.ids[outside],
        external_owners=owners,
        edge_index=places,
        edge_weight=graph.edge_weight[edges],
        features=take_rows(graph.features, nodes),
        labels=graph.labels[nodes],
        train_mask=masks[0][nodes],
        val_mask=masks[1][nodes],
        test_mask=masks[2][nodes],
        directed=graph.directed,
        kinds=graph.kinds,
        categories=None if graph.categories is None else graph.categories[nodes],
    )


def _checked_assignment(graph: Graph, assignment: Ints, names: Sequence[str]) -> Ints:
    assignment = np.asarray(assignment)
    if assignment.shape != graph.ids.shape or assignment.dtype.kind not in "iu":
        raise DataError(
            f"The assignment has the shape {assignment.shape} and type {assignment.dtype}: "
            f"give one whole number for each of the {graph.num_nodes} nodes."
        )
    checks.check_list(tuple(names), "organisation names")
    if assignment.min() < 0 or assignment.max() >= len(names):
        raise DataError(f"The assignment leaves 0 to {len(names) - 1}: there are no more names.")
    sizes = np.bincount(assignment, minlength=len(names))
    if not sizes.all():
        empty = names[int(np.argmin(sizes))]
        raise DataError(f"The assignment gives {empty!r} no node: use fewer parts.")
    return assignment.astype(np.int64)


def _ends(sorted_by: Ints, count: int) -> Ints:
    ends: Ints = np.cumsum(np.bincount(sorted_by, minlength=count))[:-1]
    return ends


def _edges_of_parts(graph: Graph, assignment: Ints, count: int) -> list[Ints]:
    """Positions of the edges that each part knows: an edge between two parts is in both."""
    source, target = assignment[graph.edge_index]
    between = np.flatnonzero(source != target)
    owner = np.concatenate([source, target[between]])
    edges = np.concatenate([np.arange(source.size), between])
    order = np.lexsort((edges, owner))
    return np.split(edges[order], _ends(owner, count))


def join(subgraphs: Sequence[Subgraph]) -> Subgraph:
    """The whole graph in one part named "central", nodes in the order of the parts.

    Every edge between two organisations must be known to both, with one weight.
    """
    if not subgraphs:
        raise DataError("There is nothing to join: give at least one subgraph.")
    first = subgraphs[0]
    for other in subgraphs:
        for key in ("classes", "feature_names", "kinds", "directed"):
            if getattr(other, key) != getattr(first, key):
                raise DataError(
                    f"{first.name!r} and {other.name!r} differ in their {key.replace('_', ' ')}: "
                    "make them the same at every organisation."
                )
    ids = np.concatenate([part.ids for part in subgraphs])
    checks.check_unique(ids, "Node")
    index, weight = _joined_edges(subgraphs, ids)
    nothing = np.empty(0, dtype="<U1")
    stacked: dict[str, NDArray[Any]] = {
        key: np.concatenate([getattr(part, key) for part in subgraphs])
        for key in ("labels", "train_mask", "val_mask", "test_mask")
    }
    return Subgraph(
        name=CENTRAL,
        classes=first.classes,
        feature_names=first.feature_names,
        ids=ids,
        external_ids=nothing,
        external_owners=nothing,
        edge_index=index,
        edge_weight=weight,
        features=stack_rows([part.features for part in subgraphs]),
        directed=first.directed,
        kinds=first.kinds,
        categories=_stacked([part.categories for part in subgraphs]),
        **stacked,
    )


def _stacked(parts: Sequence[Strings | None]) -> Strings | None:
    held = [part for part in parts if part is not None]
    return np.concatenate(held) if held else None


def _joined_edges(subgraphs: Sequence[Subgraph], ids: Strings) -> tuple[Ints, Floats]:
    order = np.argsort(ids)
    ordered, offset = ids[order], 0
    intra, inter = [], []
    for part in subgraphs:
        place = np.minimum(np.searchsorted(ordered, part.external_ids), ids.size - 1)
        unknown = ordered[place] != part.external_ids
        if unknown.any():
            at = int(np.argmax(unknown))
            raise DataError(
                f"{part.name!r} has an edge to {str(part.external_ids[at])!r}, which it says "
                f"{str(part.external_owners[at])!r} holds, but nobody holds it: correct one of "
                "the two."
            )
        whole = np.concatenate([np.arange(part.num_nodes) + offset, order[place]])
        offset += part.num_nodes
        intra.append((whole[part.intra_edges[0]], part.intra_edges[1]))
        inter.append((whole[part.inter_edges[0]], part.inter_edges[1]))
    index = np.concatenate([edges for edges, _ in inter], axis=1)
    weight = np.concatenate([weights for _, weights in inter])
    kept = _known_to_both(index, weight, ids)
    return (
        np.concatenate([index[:, kept], *(edges for edges, _ in intra)], axis=1),
        np.concatenate([weight[kept], *(weights for _, weights in intra)]),
    )


def _known_to_both(index: Ints, weight: Floats, ids: Strings) -> Ints:
    """Position of the first of the two listings of every edge between organisations."""
    keys = edge_keys(index, ids.size)
    order = np.argsort(keys, kind="stable")
    unique, first, times = np.unique(keys[order], return_index=True, return_counts=True)
    if (times != 2).any():
        lonely = unique[int(np.argmax(times != 2))]
        source, target = (str(ids[end]) for end in divmod(int(lonely), ids.size))
        raise DataError(
            f"Only one organisation lists the edge from {source!r} to {target!r}: "
            "an edge between organisations is listed by both."
        )
    differ = weight[order[first]] != weight[order[first + 1]]
    if differ.any():
        source, target = (str(ids[end]) for end in index[:, order[first[int(np.argmax(differ))]]])
        raise DataError(
            f"The edge from {source!r} to {target!r} has a different weight at its two "
            "organisations: agree on one."
        )
    kept: Ints = order[first]
    return kept
