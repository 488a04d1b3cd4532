"""Ways to divide the nodes of a graph among organisations."""

import heapq
import warnings

import numpy as np

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs.arrays import Ints, Strings
from fedlap_app.graphs.graph import Graph

PARTITIONS = ("auto", "owner", "random", "louvain", "kmeans")
_SLACK = 20  # a group may exceed an even share by this many nodes before it is cut


def resolve_partition(name: str, *, has_owners: bool) -> str:
    """The partition that ``auto`` stands for; other names stay."""
    if name not in PARTITIONS:
        raise ConfigError(f"Unknown partition {name!r}: choose one of {', '.join(PARTITIONS)}.")
    if name == "auto":
        return "owner" if has_owners else "random"
    if name == "owner" and not has_owners:
        raise DataError(
            "This data set has no natural owners: choose the partition random, louvain or kmeans."
        )
    return name


def client_names(count: int) -> list[str]:
    """Names whose sorted order is the order of the parts."""
    width = max(2, len(str(count - 1)))
    return [f"client-{part:0{width}d}" for part in range(count)]


def divide(graph: Graph, name: str, parts: int, seed: int) -> tuple[Ints, list[str]]:
    """Part of each node and the names of the parts; no part is empty.

    Parameters
    ----------
    graph : what to divide.
    name : one of `PARTITIONS`.
    parts : how many parts, 1 to n.
    seed : of every draw.
    """
    name = resolve_partition(name, has_owners=graph.owner is not None)
    if not 1 <= parts <= graph.num_nodes:
        raise DataError(
            f"{graph.num_nodes} nodes cannot be divided among {parts} organisations: "
            f"take 1 to {graph.num_nodes}."
        )
    if name == "owner" and graph.owner is not None:
        return _by_owner(graph.owner, parts)
    rng = np.random.default_rng([seed, 0xD1])
    if name == "random":
        assignment = rng.integers(parts, size=graph.num_nodes)
    else:
        groups = _louvain(graph, rng) if name == "louvain" else _kmeans(graph, parts, rng)
        assignment = _pack(_cut_groups(_gather_isolated(graph, groups), parts), parts)
    return _fill_empty(assignment, parts, rng), client_names(parts)


def _by_owner(owner: Strings, parts: int) -> tuple[Ints, list[str]]:
    names, assignment = np.unique(owner, return_inverse=True)
    if names.size != parts:
        raise DataError(
            f"The data set has {names.size} owners, not {parts}: ask for {names.size} clients or "
            "for another partition."
        )
    return assignment.astype(np.int64), names.tolist()


def _fill_empty(assignment: Ints, parts: int, rng: np.random.Generator) -> Ints:
    """Move random nodes of larger parts into empty ones."""
    sizes = np.bincount(assignment, minlength=parts)
    empty = np.flatnonzero(sizes == 0)
    if empty.size:
        spare = np.ones(assignment.size, dtype=bool)
        spare[np.unique(assignment, return_index=True)[1]] = False
        assignment = assignment.copy()
        assignment[rng.choice(np.flatnonzero(spare), size=empty.size, replace=False)] = empty
    return assignment


def _louvain(graph: Graph, rng: np.random.Generator) -> Ints:
    import networkx as nx

    adjacency = graph.adjacency()
    network = nx.from_scipy_sparse_array(adjacency.maximum(adjacency.T))
    communities = nx.community.louvain_communities(network, seed=int(rng.integers(2**31)))
    groups = np.empty(graph.num_nodes, dtype=np.int64)
    # Sets come in no fixed order: number the communities by their first node.
    for number, members in enumerate(sorted(sorted(members) for members in communities)):
        groups[members] = number
    return groups


def _kmeans(graph: Graph, parts: int, rng: np.random.Generator) -> Ints:
    from sklearn.cluster import KMeans

    if not graph.feature_names:
        raise DataError("This data set has no features to cluster: choose random or louvain.")
    known = graph.features
    if isinstance(known, np.ndarray):  # numbers that may be missing are none in sparse ones
        known = np.nan_to_num(known)
    with warnings.catch_warnings():
        # Fewer distinct rows than parts only means smaller groups, which packing evens out.
        warnings.simplefilter("ignore")
        model = KMeans(n_clusters=parts, n_init=1, random_state=int(rng.integers(2**31)))
        return np.asarray(model.fit_predict(known), dtype=np.int64)


def _gather_isolated(graph: Graph, groups: Ints) -> Ints:
    """Put all nodes without an edge into one group of their own."""
    isolated = np.bincount(graph.edge_index.reshape(-1), minlength=graph.num_nodes) == 0
    return np.where(isolated, groups.max() + 1, groups)


def _cut_groups(groups: Ints, parts: int) -> list[Ints]:
    """Members of each group, cut where it is larger than n / K + 20."""
    limit = groups.size // parts + _SLACK
    members = np.argsort(groups, kind="stable")
    ends = np.flatnonzero(np.diff(groups[members])) + 1
    return [
        group[start : start + limit]
        for group in np.split(members, ends)
        for start in range(0, group.size, limit)
    ]


def _pack(groups: list[Ints], parts: int) -> Ints:
    """Largest group first, each into the part that is smallest so far."""
    assignment = np.empty(sum(group.size for group in groups), dtype=np.int64)
    heap = [(0, part) for part in range(parts)]
    for group in sorted(groups, key=lambda group: (-group.size, int(group[0]))):
        size, part = heapq.heappop(heap)
        assignment[group] = part
        heapq.heappush(heap, (size + group.size, part))
    return assignment
