"""Graphs as torch_geometric, networkx and pandas hold them, brought into one form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fedlap_app.errors import DataError
from fedlap_app.graphs.arrays import Bools, Features, Floats, Ints, Strings
from fedlap_app.graphs.kinds import CATEGORY, NUMBER, Kinds, kinds_of
from fedlap_app.graphs.splits import Masks

_SPLITS = ("train", "val", "test")
_ID, _LABEL, _SPLIT, _WEIGHT = "id", "label", "split", "weight"
_VECTOR = "x"


@dataclass(frozen=True, eq=False)
class Source:
    """What a caller's graph says, nodes in its own order."""

    ids: Sequence[Any]
    labels: Sequence[Any]
    features: Features
    feature_names: tuple[str, ...]
    edge_index: Ints
    edge_weight: Floats
    masks: Masks | None
    owners: Strings | None = None
    kinds: Kinds = ()
    categories: Strings | None = None


def source_of(
    data: Any,  # noqa: ANN401 - any of the three
    edges: Any,  # noqa: ANN401 - a frame or None
    *,
    owner: str | None,
    features: Sequence[str] | None,
    kinds: Mapping[str, str] | None = None,
) -> Source:
    """Read a graph by its type.

    Parameters
    ----------
    data, edges
        As the caller gave them.
    owner
        Column or attribute that names the organisation of a node.
    features
        Columns or attributes that are features (default: all that are nothing else).
    kinds
        "number" or "category" of some of them (default: by what they hold).
    """
    if isinstance(data, tuple) and len(data) == 2 and edges is None:
        data, edges = data
    if hasattr(data, "edge_index"):
        return _from_pyg(data, owner)
    if hasattr(data, "adj") and hasattr(data, "nodes"):
        nodes, edges = _frames(data, features)
        return _from_frames(nodes, edges, owner, features, kinds)
    if hasattr(data, "columns"):
        if edges is None:
            raise DataError("a frame of nodes needs a frame of edges: give split(nodes, edges)")
        return _from_frames(data, edges, owner, features, kinds)
    raise DataError(
        f"{type(data).__name__} is no graph that is known here: give a torch_geometric Data, a "
        "networkx graph, or two pandas frames, nodes and edges"
    )


def _from_pyg(data: Any, owner: str | None) -> Source:  # noqa: ANN401
    count = int(data.num_nodes)
    x = getattr(data, "x", None)
    if x is not None and str(x.layout) != "torch.strided":
        x = x.to_dense()
    matrix = np.zeros((count, 0), np.float32) if x is None else np.asarray(x.cpu(), np.float32)
    y = getattr(data, "y", None)
    if y is None or tuple(y.squeeze(-1).shape) != (count,):
        shape = None if y is None else tuple(y.shape)
        raise DataError(f"data.y has the shape {shape}: give one class for each of {count} nodes")
    weight = getattr(data, "edge_weight", None)
    index = np.asarray(data.edge_index.cpu(), np.int64)
    size = index.shape[1]
    ids = getattr(data, "node_id", None)
    masks = [_mask(getattr(data, f"{name}_mask", None), name, count) for name in _SPLITS]
    owners = getattr(data, owner, None) if owner else None
    if owner and owners is None:
        raise DataError(f"data has no attribute {owner!r} that names owners: give owners a list")
    return Source(
        ids=range(count) if ids is None else _plain(ids),
        labels=_plain(y.squeeze(-1)),
        features=matrix.reshape(count, -1),
        feature_names=tuple(getattr(data, "feature_names", None) or ()),
        edge_index=index,
        edge_weight=np.ones(size) if weight is None else np.asarray(weight.cpu(), float).ravel(),
        masks=Masks(*masks) if masks[0].any() else None,
        owners=None if owners is None else np.array([str(each) for each in _plain(owners)]),
    )


def _plain(values: Any) -> list[Any]:  # noqa: ANN401 - a tensor, an array or a list
    found: list[Any] = values.tolist() if hasattr(values, "tolist") else list(values)
    return found


def _mask(mask: Any, name: str, count: int) -> Bools:  # noqa: ANN401 - a tensor or None
    if mask is None:
        return np.zeros(count, dtype=bool)
    found = np.asarray(mask.cpu(), dtype=bool)
    if found.shape != (count,):
        raise DataError(
            f"data.{name}_mask has the shape {found.shape}: choose one split, for example "
            f"data.{name}_mask[:, 0]"
        )
    return found


def _frames(graph: Any, features: Sequence[str] | None) -> tuple[Any, Any]:  # noqa: ANN401
    """Frames of the nodes and edges of a networkx graph."""
    import pandas as pd

    names, rows = list(graph.nodes), [dict(facts) for _, facts in graph.nodes(data=True)]
    if features is None and any(_VECTOR in row for row in rows):
        rows = [_unpacked(name, row) for name, row in zip(names, rows, strict=True)]
    nodes = pd.DataFrame(rows)
    nodes[_ID] = pd.Series(names, dtype=object, index=nodes.index if rows else None)
    ends = [(a, b, facts.get(_WEIGHT, 1.0)) for a, b, facts in graph.edges(data=True)]
    return nodes, pd.DataFrame(ends, columns=["source", "target", _WEIGHT])


def _unpacked(name: object, row: dict[str, Any]) -> dict[str, Any]:
    """Attributes of a node with its vector as numbers of their own."""
    if _VECTOR not in row:
        raise DataError(f"node {name!r} has no attribute {_VECTOR!r}, others do: give it one")
    vector = np.asarray(row.pop(_VECTOR), dtype=np.float64).ravel()
    return {**row, **{f"f{at}": value for at, value in enumerate(vector.tolist())}}


def _from_frames(
    nodes: Any,  # noqa: ANN401 - a frame
    edges: Any,  # noqa: ANN401 - a frame
    owner: str | None,
    features: Sequence[str] | None,
    kinds: Mapping[str, str] | None,
) -> Source:
    ids = _plain(nodes.get(_ID, nodes.index))
    for column in (_LABEL, owner):
        if column and column not in nodes:
            raise DataError(f"the nodes have no column {column!r}: there are {_listed(nodes)}")
    taken = {_ID, _LABEL, _SPLIT, owner}
    columns = [name for name in nodes.columns if name not in taken]
    if features is not None:
        columns = list(features)
    held = _columns(nodes, columns, kinds or {})
    at = {node: place for place, node in enumerate(ids)}
    ends = [_places(edges, side, at) for side in ("source", "target")]
    weight = np.ones(len(edges)) if _WEIGHT not in edges else np.asarray(edges[_WEIGHT], float)
    return Source(
        ids=ids,
        labels=_plain(nodes[_LABEL].astype(object)),
        features=held.features,
        feature_names=tuple(map(str, columns)),
        edge_index=np.stack(ends),
        edge_weight=weight,
        masks=_split_column(nodes),
        owners=None if owner is None else np.array([str(each) for each in nodes[owner]]),
        kinds=held.kinds,
        categories=held.categories,
    )


def _listed(frame: Any) -> str:  # noqa: ANN401 - a frame
    return ", ".join(map(str, frame.columns))


class _Held(NamedTuple):
    """Feature columns of a frame."""

    features: Features
    kinds: Kinds
    categories: Strings | None


def _columns(nodes: Any, columns: Sequence[Any], given: Mapping[str, str]) -> _Held:  # noqa: ANN401
    """Numbers and texts of feature columns; what is not said of a column is what it looks like."""
    declared = dict(zip(map(str, columns), kinds_of(given, (*map(str, columns),)), strict=False))
    found = np.zeros((len(nodes), len(columns)), np.float32)
    kinds, texts = [], []
    for at, name in enumerate(columns):
        if name not in nodes:
            raise DataError(f"the nodes have no feature {name!r}: there are {_listed(nodes)}")
        kind = declared.get(str(name), "") or _kind_of(nodes[name])
        kinds.append(kind)
        if kind == CATEGORY:
            empty = nodes[name].isna()
            texts.append(["" if e else str(v) for v, e in zip(nodes[name], empty, strict=True)])
            continue
        try:
            found[:, at] = nodes[name].to_numpy(dtype=np.float32, na_value=np.nan)
        except (TypeError, ValueError):
            raise DataError(
                f"the feature {name!r} does not hold numbers: turn it into numbers, say "
                f'kinds={{{str(name)!r}: "category"}}, or name the others with features=[...]'
            ) from None
    stacked = np.array(texts, dtype=np.str_).T if texts else None
    return _Held(found, tuple(kinds) if any(kinds) else (), stacked)


def _kind_of(column: Any) -> str:  # noqa: ANN401 - a series
    """A column of text is a category, one of numbers that lacks some is declared so."""
    known = column.dropna()
    if all(isinstance(value, str) for value in known) and known.nunique() > 1:
        return CATEGORY  # one text everywhere tells nothing and is refused as no number
    return NUMBER if len(known) < len(column) else ""


def _places(edges: Any, side: str, at: dict[Any, int]) -> Ints:  # noqa: ANN401 - a frame
    if side not in edges:
        raise DataError(f"the edges have no column {side!r}: there are {_listed(edges)}")
    ends = _plain(edges[side])
    stray = next((node for node in ends if node not in at), None)
    if stray is not None:
        raise DataError(f"an edge names the node {stray!r}, which is not among the nodes: add it")
    return np.array([at[node] for node in ends], dtype=np.int64)


def _split_column(nodes: Any) -> Masks | None:  # noqa: ANN401 - a frame
    """Masks of the column split; nothing when no node of it trains."""
    if _SPLIT not in nodes:
        return None
    values = ["" if each is None or each != each else str(each) for each in nodes[_SPLIT]]
    odd = next((value for value in values if value not in (*_SPLITS, "")), None)
    if odd is not None:
        raise DataError(f"unknown split {odd!r}: write {', '.join(_SPLITS)} or leave it empty")
    texts = np.array(values)
    masks = Masks(*(texts == name for name in _SPLITS))
    return masks if masks.train.any() else None
