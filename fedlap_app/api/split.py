"""One graph that is in memory, divided among organisations."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedlap_app.api.organisations import Organisations, in_memory
from fedlap_app.api.sources import Source, absent, source_of
from fedlap_app.errors import DataError
from fedlap_app.graphs.arrays import Bools, Ints, Strings
from fedlap_app.graphs.federation import DataSpec, check_whole
from fedlap_app.graphs.graph import Graph, cut
from fedlap_app.graphs.organisation import numbered
from fedlap_app.graphs.partitions import divide
from fedlap_app.graphs.splits import Masks, draw_masks
from fedlap_app.knobs import plain

_PARTS = 5


def split(
    data: Any,  # noqa: ANN401 - PyG's, networkx's or pandas' own types, imported only when used
    edges: Any = None,  # noqa: ANN401
    *,
    clients: int = 0,
    partition: str = "auto",
    owners: str | Sequence[str] | Mapping[Any, str] | None = None,
    classes: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    seed: int = 0,
    directed: bool = False,
    train_ratio: float = DataSpec.train_ratio,
    val_ratio: float = DataSpec.val_ratio,
    test_ratio: float = DataSpec.test_ratio,
) -> Organisations:
    """Divide a graph of your own among organisations; features, labels, splits and ids are kept.

    Parameters
    ----------
    data
        A torch_geometric ``Data`` (x, y, edge_index, edge_weight, train_mask and so on, and ids in
        ``node_id``), a networkx graph (node attributes label, split, and numbers or a vector
        ``x`` as features; edge attribute weight), or a pandas frame of nodes (columns id, label,
        split; all other columns are features; without a column id the index has the ids).
    edges
        With a frame of nodes: the frame of edges (columns source, target, perhaps weight).
    clients
        Number of organisations (default: as many as there are owners, else five).
    partition
        Who holds which node: "auto" (the owners, else random), "random", "louvain" or "kmeans".
    owners
        Name of the organisation of every node: a list in the order of the nodes, a mapping from
        node to name, or the name of a column or attribute.
    classes
        Names of the classes, in their order (default: all labels, sorted).
    features
        Columns or attributes that are features (default: all that are nothing else).
    kinds
        "number" or "category" of some features of frames and networkx graphs (default: text is a
        category, and numbers may be missing). Of a category the most frequent values get a column
        each, of a number that may be missing a second column says where it is.
    seed
        Decides the partition and the split, and the run unless that is given another one.
    directed
        Keep the direction of edges.
    train_ratio, val_ratio, test_ratio
        Shares of the labelled nodes, for data that has no training nodes marked.
    """
    for name, given in (("classes", classes), ("features", features)):
        if isinstance(given, str):
            raise DataError(f"{name} = {given!r} is one text: give a list, [{given!r}]")
    clients, seed = plain(clients), plain(seed)
    check_whole("clients", clients, 0)
    check_whole("seed", seed, 0)
    ratios = plain(train_ratio), plain(val_ratio), plain(test_ratio)
    own_column = owners if isinstance(owners, str) else None
    source = source_of(data, edges, owner=own_column, features=features, kinds=kinds)
    named = _owners(source.owners if own_column else owners, source)
    labels, names = _numbered(source.labels, classes)
    graph = Graph(
        ids=_texts(source.ids),
        features=source.features,
        labels=labels,
        edge_index=source.edge_index,
        edge_weight=source.edge_weight,
        classes=names,
        feature_names=source.feature_names or numbered(source.features.shape[1]),
        owner=named,
        directed=directed,
        kinds=source.kinds,
        categories=source.categories,
    )
    parts = clients or (len(set(named.tolist())) if named is not None else _PARTS)
    assignment, who = divide(graph, partition, parts, seed)
    rng = np.random.default_rng([seed, 0x51])
    masks = source.masks or draw_masks(labels, ratios, rng)
    return in_memory(cut(graph, assignment, who, _labelled(masks, labels, graph.ids)), seed=seed)


def _owners(owners: Sequence[Any] | Mapping[Any, Any] | None, source: Source) -> Strings | None:
    if owners is None:
        return None
    if isinstance(owners, Mapping):
        owners = [owners.get(node) for node in source.ids]
    if not hasattr(owners, "__len__"):
        raise DataError(f"owners = {owners!r} is none: give a list, a mapping or a column's name")
    if len(owners) != len(source.ids):
        raise DataError(
            f"owners has {len(owners)} entries for {len(source.ids)} nodes: give one for each"
        )
    for node, owner in zip(source.ids, owners, strict=True):
        if absent(owner):
            raise DataError(f"owners names nobody for node {node!r}: give every node one")
    return _texts(owners)


def _texts(values: Sequence[Any]) -> Strings:
    return np.array([str(value) for value in values], dtype=np.str_)


def _numbered(labels: Sequence[Any], classes: Sequence[str] | None) -> tuple[Ints, tuple[str, ...]]:
    """Position of every label among the classes; None, NaN and -1 mean that there is none."""
    bare = [None if _is_missing(label) else label for label in labels]
    known = {label for label in bare if label is not None}
    if not known and not classes:
        raise DataError("no node has a label: give some, or there is nothing to train on")
    numbers = all(isinstance(label, int | float | np.number) for label in known)
    if numbers and all(float(label).is_integer() for label in known):
        bare = [None if label is None else int(label) for label in bare]
        known = {int(label) for label in known}
    ordered = sorted(known) if numbers else sorted(known, key=str)
    names = tuple(map(str, classes if classes is not None else ordered))
    position = {name: at for at, name in enumerate(names)}
    unknown = next((str(each) for each in ordered if str(each) not in position), None)
    if unknown is not None:
        raise DataError(f"the label {unknown!r} is not among the classes {', '.join(names)}")
    found = [-1 if label is None else position[str(label)] for label in bare]
    return np.array(found, dtype=np.int64), names


def _is_missing(label: Any) -> bool:  # noqa: ANN401 - any label
    return absent(label) or (not isinstance(label, str) and bool(label == -1))


def _labelled(masks: Masks, labels: Ints, ids: Strings) -> Masks:
    """Refuse a marked node without a label, by the name that the caller knows."""
    for name, mask in zip(Masks._fields, masks, strict=True):
        bare: Bools = mask & (labels < 0)
        if bare.any():
            node = str(ids[int(np.argmax(bare))])
            raise DataError(f"node {node!r} is in the split {name} but has no label: label it")
    return masks
