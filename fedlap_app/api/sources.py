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
    owners: Sequence[Any] | None = None
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
    if hasattr(data, "columns"):
        if not hasattr(edges, "columns"):
            raise DataError("a frame of nodes needs a frame of edges: give split(nodes, edges)")
        return _from_frames(data, edges, owner, features, kinds)
    if edges is not None:
        raise DataError(f"{type(data).__name__} holds edges as well: give no others with it")
    if hasattr(data, "edge_index"):
        return _from_pyg(data, owner)
    if hasattr(data, "adj") and hasattr(data, "nodes"):
        nodes, edges = _frames(data, features)
        return _from_frames(nodes, edges, owner, features, kinds)
    raise DataError(
        f"{type(data).__name__} is no graph that is known here: give a torch_geometric Data, a "
        "networkx graph, or two pandas frames, nodes and edges"
    )


def absent(value: Any) -> bool:  # noqa: ANN401 - any cell of a table
    """Whether there is nothing: None, NaN, pandas' NA or an empty text."""
    try:
        return bool(value is None or value != value or value == "")
    except TypeError:  # of NA nothing is true or false
        return True


def _from_pyg(data: Any, owner: str | None) -> Source:  # noqa: ANN401
    if data.edge_index is None:
        raise DataError("data has no edge_index: give one of the shape (2, edges)")
    count = int(data.num_nodes)
    index = _array(data.edge_index, "long")
    weight = getattr(data, "edge_weight", None)
    x, y = getattr(data, "x", None), getattr(data, "y", None)
    matrix = np.zeros((count, 0), np.float32) if x is None else _array(x, "float")
    if matrix.shape[:1] != (count,):
        raise DataError(f"data.x has the shape {matrix.shape}: give one row for each node")
    if y is None or np.shape(y) not in ((count,), (count, 1)):
        shape = None if y is None else tuple(np.shape(y))
        raise DataError(f"data.y has the shape {shape}: give one class for each of {count} nodes")
    ids = getattr(data, "node_id", None)
    masks = [_mask(getattr(data, f"{name}_mask", None), name, count) for name in _SPLITS]
    owners = getattr(data, owner, None) if owner else None
    if owner and owners is None:
        raise DataError(f"data has no attribute {owner!r} that names owners: give owners a list")
    return Source(
        ids=range(count) if ids is None else _plain(ids),
        labels=_plain(y.squeeze(-1) if np.ndim(y) == 2 else y),
        features=matrix.reshape(count, -1) if count else matrix,
        feature_names=tuple(getattr(data, "feature_names", None) or ()),
        edge_index=index,
        edge_weight=np.ones(index.shape[-1]) if weight is None else _array(weight, "double"),
        masks=Masks(*masks) if masks[0].any() else None,
        owners=None if owners is None else _plain(owners),
    )


def _plain(values: Any) -> list[Any]:  # noqa: ANN401 - a tensor, an array or a list
    found: list[Any] = values.tolist() if hasattr(values, "tolist") else list(values)
    return found


def _array(values: Any, kind: str) -> Any:  # noqa: ANN401 - a tensor, dense or not, or an array
    """An array of what torch calls float, double, long or bool."""
    import torch

    found = torch.as_tensor(values).detach().cpu()
    found = found if found.layout == torch.strided else found.to_dense()
    return getattr(found, kind)().numpy()


def _mask(mask: Any, name: str, count: int) -> Bools:  # noqa: ANN401 - a tensor or None
    if mask is None:
        return np.zeros(count, dtype=bool)
    found: Bools = _array(mask, "bool")
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
        width = np.size(next(row[_VECTOR] for row in rows if _VECTOR in row))
        rows = [_unpacked(name, row, width) for name, row in zip(names, rows, strict=True)]
    nodes = pd.DataFrame(rows)
    nodes[_ID] = pd.Series(names, dtype=object, index=nodes.index if rows else None)
    ends = [(a, b, facts.get(_WEIGHT, 1.0)) for a, b, facts in graph.edges(data=True)]
    return nodes, pd.DataFrame(ends, columns=["source", "target", _WEIGHT])


def _unpacked(name: object, row: dict[str, Any], width: int) -> dict[str, Any]:
    """Attributes of a node with its vector as numbers of their own."""
    if _VECTOR not in row:
        raise DataError(f"node {name!r} has no attribute {_VECTOR!r}, others do: give it one")
    given = row.pop(_VECTOR)
    try:
        vector = np.asarray(given, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise DataError(f"{_VECTOR} of node {name!r} is no vector of numbers: {given!r}") from None
    if vector.size != width:
        raise DataError(
            f"{_VECTOR} of node {name!r} has {vector.size} numbers where others have {width}: give "
            "all nodes as many"
        )
    return {**row, **{f"f{at}": value for at, value in enumerate(vector.tolist())}}


def _from_frames(
    nodes: Any,  # noqa: ANN401 - a frame
    edges: Any,  # noqa: ANN401 - a frame
    owner: str | None,
    features: Sequence[str] | None,
    kinds: Mapping[str, str] | None,
) -> Source:
    ids = _plain(nodes.get(_ID, nodes.index))
    for frame in (nodes, edges):
        twice = frame.columns[frame.columns.duplicated()]
        if len(twice):
            raise DataError(f"a frame has two columns {twice[0]!r}: rename one or leave it out")
    for column in (_LABEL, owner):
        if column and column not in nodes:
            raise DataError(f"the nodes have no column {column!r}: there are {_listed(nodes)}")
    taken = {_ID, _LABEL, _SPLIT, owner}
    columns = [name for name in nodes.columns if name not in taken]
    if features is not None:
        columns = list(features)
    held = _columns(nodes, columns, kinds or {})
    at = _numbered(ids)
    ends = [_places(edges, side, at) for side in ("source", "target")]
    weight = np.ones(len(edges))
    if _WEIGHT in edges:
        weight = _numbers(edges[_WEIGHT], np.float64, "the edges' weight")
    return Source(
        ids=ids,
        labels=_plain(nodes[_LABEL].astype(object)),
        features=held.features,
        feature_names=tuple(map(str, columns)),
        edge_index=np.stack(ends),
        edge_weight=weight,
        masks=_split_column(nodes),
        owners=None if owner is None else _plain(nodes[owner]),
        kinds=held.kinds,
        categories=held.categories,
    )


def _numbered(ids: Sequence[Any]) -> dict[Any, int]:
    """Position of every node."""
    at = {node: place for place, node in enumerate(ids)}
    nameless = next((place for place, node in enumerate(ids) if absent(node)), None)
    if nameless is not None:
        raise DataError(f"node number {nameless + 1} has no id: give it one")
    if len(at) < len(ids):
        twice = next(node for place, node in enumerate(ids) if at[node] != place)
        raise DataError(f"node {twice!r} is listed twice: keep one entry")
    return at


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
        remedy = f', say kinds={{{str(name)!r}: "category"}}, or name others with features=[...]'
        found[:, at] = _numbers(nodes[name], np.float32, f"the feature {name!r}", remedy)
    stacked = np.array(texts, dtype=np.str_).T if texts else None
    return _Held(found, tuple(kinds) if any(kinds) else (), stacked)


def _numbers(column: Any, dtype: type, what: str, remedy: str = "") -> Any:  # noqa: ANN401
    """A column as numbers; dates are none, nobody knows since when they count."""
    try:
        if column.dtype.kind in "mM":
            raise TypeError
        return column.to_numpy(dtype=dtype, na_value=np.nan)
    except (TypeError, ValueError):
        raise DataError(f"{what} does not hold numbers: turn it into numbers{remedy}") from None


def _kind_of(column: Any) -> str:  # noqa: ANN401 - a series
    """A column of text is a category, one of numbers that lacks some is declared so."""
    known = column.dropna()
    if all(isinstance(value, str) for value in known) and column.nunique(dropna=False) > 1:
        return CATEGORY  # one text everywhere tells nothing and is refused as no number
    return NUMBER if len(known) < len(column) else ""


def _places(edges: Any, side: str, at: dict[Any, int]) -> Ints:  # noqa: ANN401 - a frame
    if side not in edges:
        raise DataError(f"the edges have no column {side!r}: there are {_listed(edges)}")
    ends = _plain(edges[side])
    stray = next((node for node in ends if node not in at), None)
    if stray is not None:
        alike = next((node for node in at if str(node) == str(stray)), None)
        add = "add it" if alike is None else f"the nodes call it {alike!r}, use one type for both"
        raise DataError(f"an edge names the node {stray!r}, which is not among the nodes: {add}")
    return np.array([at[node] for node in ends], dtype=np.int64)


def _split_column(nodes: Any) -> Masks | None:  # noqa: ANN401 - a frame
    """Masks of the column split; nothing when no node of it trains."""
    if _SPLIT not in nodes:
        return None
    values = ["" if absent(each) else str(each) for each in nodes[_SPLIT]]
    odd = next((value for value in values if value not in (*_SPLITS, "")), None)
    if odd is not None:
        raise DataError(f"unknown split {odd!r}: write {', '.join(_SPLITS)} or leave it empty")
    texts = np.array(values)
    masks = Masks(*(texts == name for name in _SPLITS))
    return masks if masks.train.any() else None
