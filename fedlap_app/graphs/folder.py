"""The organisation folder: what a real organisation prepares and a benchmark is written as."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs import checks
from fedlap_app.graphs.arrays import Bools, Features, Floats, Ints, Strings
from fedlap_app.graphs.edges import simplify_edges
from fedlap_app.graphs.org_file import (
    FILE,
    OrgFile,
    numbered_names,
    read_org_file,
    write_org_file,
)
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.graphs.tables import FORMATS, Table, find_table, read_table, write_table
from fedlap_app.knobs import nearest

SPLITS = ("train", "val", "test")
_INLINE = 64  # more feature columns than this go to features.npz


def federation_folders(path: Path) -> list[Path]:
    """Organisation folders below a folder, in the order of the organisations' names."""
    if (path / FILE).is_file():
        raise DataError(f"{path} is itself an organisation folder: name the folder that holds it.")
    if not path.is_dir():
        raise DataError(f"{path} is not a folder: name one that holds organisation folders.")
    found = [entry for entry in path.iterdir() if (entry / FILE).is_file()]
    if not found:
        raise DataError(f"{path} holds no organisation folder: each has an {FILE}.")
    return sorted(found, key=lambda entry: (read_org_file(entry).name, entry.name))


def read_federation(path: Path, *, directed: bool = False) -> list[Subgraph]:
    """All organisations below a folder, in the order of their names."""
    return [read_folder(entry, directed=directed) for entry in federation_folders(path)]


def read_folder(path: Path, *, directed: bool = False) -> Subgraph:
    """Read and check one organisation folder.

    Parameters
    ----------
    path : the folder.
    directed : keep the direction of edges; otherwise both directions are filled in.
    """
    org = read_org_file(path)
    nodes = read_table(find_table(path, "nodes"))
    nodes.require(("id", "label", "split"))
    ids = _ids(nodes)
    labels = _labels(nodes, org)
    masks = _masks(nodes, labels)
    edges = read_table(find_table(path, "edges"))
    edges.require(("source", "target", "owner"))
    external, owners, index = _ends(edges, ids, org.name)
    weight = _weights(edges)
    everyone = np.concatenate([ids, external])
    try:
        index, weight = simplify_edges(index, weight, everyone, directed=directed)
        kept = np.unique(index[index >= ids.size]) - ids.size
        renumber = np.concatenate([np.arange(ids.size), np.zeros(external.size, dtype=np.int64)])
        renumber[ids.size + kept] = ids.size + np.arange(kept.size)
        return Subgraph(
            name=org.name,
            classes=org.classes,
            feature_names=org.feature_names,
            ids=ids,
            external_ids=external[kept],
            external_owners=owners[kept],
            edge_index=renumber[index],
            edge_weight=weight,
            features=_features(path, nodes, org),
            labels=labels,
            train_mask=masks[0],
            val_mask=masks[1],
            test_mask=masks[2],
            directed=directed,
        )
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _ids(nodes: Table) -> Strings:
    ids = nodes.text("id")
    if not ids.size:
        raise DataError(f"{nodes.path} lists no node: an organisation holds at least one.")
    empty = np.flatnonzero(ids == "")
    if empty.size:
        raise DataError(f"{nodes.path}, row {empty[0] + 1}: the id is empty: fill it in.")
    try:
        checks.check_unique(ids, "Node")
    except DataError as error:
        raise DataError(f"{nodes.path}: {error}") from None
    return ids


def _labels(nodes: Table, org: OrgFile) -> Ints:
    found, inverse = np.unique(nodes.text("label"), return_inverse=True)
    positions = {name: number for number, name in enumerate(org.classes)}
    codes = np.array([-1 if name == "" else positions.get(str(name), -2) for name in found])
    labels: Ints = codes[inverse].astype(np.int64)
    bad = np.flatnonzero(labels == -2)
    if bad.size:
        value = str(found[inverse[bad[0]]])
        raise DataError(
            f"{nodes.path}, row {bad[0] + 1}: label {value!r} is not one of the classes "
            f"{', '.join(org.classes)}: did you mean {nearest(value, org.classes)!r}?"
        )
    return labels


def _masks(nodes: Table, labels: Ints) -> tuple[Bools, Bools, Bools]:
    split = nodes.text("split")
    bad = np.flatnonzero(~np.isin(split, (*SPLITS, "")))
    if bad.size:
        raise DataError(
            f"{nodes.path}, row {bad[0] + 1}: split {str(split[bad[0]])!r} is not one of "
            f"{', '.join(SPLITS)}: use one of them or leave it empty."
        )
    bare = np.flatnonzero((split != "") & (labels < 0))
    if bare.size:
        raise DataError(
            f"{nodes.path}, row {bare[0] + 1}: split {str(split[bare[0]])!r} but no label: leave "
            "the split of nodes without a label empty."
        )
    return split == "train", split == "val", split == "test"


def _ends(edges: Table, ids: Strings, name: str) -> tuple[Strings, Strings, Ints]:
    """External nodes, their owners, and both ends of every edge as positions among all nodes."""
    source, target, owner = (edges.text(column) for column in ("source", "target", "owner"))
    order = np.argsort(ids)
    at_source, at_target = _positions(source, ids, order), _positions(target, ids, order)
    own = (at_source >= 0).astype(int) + (at_target >= 0)
    _check_ownership(edges, source, target, owner, at_source, own, name)
    foreign = owner != ""
    outside = np.where(at_source < 0, source, target)[foreign]
    external, owners = _externals(edges, outside, owner[foreign])
    by_id = np.argsort(external)
    beyond = ids.size
    for at, values in ((at_source, source), (at_target, target)):
        missing = at < 0
        at[missing] = beyond + _positions(values[missing], external, by_id)
    return external, owners, np.stack([at_source, at_target])


def _check_ownership(
    edges: Table,
    source: Strings,
    target: Strings,
    owner: Strings,
    at_source: Ints,
    own: Ints,
    name: str,
) -> None:
    """An edge without an owner has two own ends; one with an owner has exactly one."""
    unknown = np.flatnonzero((owner == "") & (own < 2))
    if unknown.size:
        at = unknown[0]
        stranger = source[at] if at_source[at] < 0 else target[at]
        raise DataError(
            f"{edges.path}, row {at + 1}: {str(stranger)!r} is not in the list of nodes: add it "
            "there, or name the organisation that holds it in the column owner."
        )
    for faulty, what in (
        (owner == name, "the owner is this organisation itself: leave it empty"),
        ((owner != "") & (own == 2), "both ends are own nodes: leave the owner empty"),
        ((owner != "") & (own == 0), "neither end is in the list of nodes: drop the edge"),
    ):
        if faulty.any():
            at = int(np.argmax(faulty))
            raise DataError(
                f"{edges.path}, row {at + 1}, the edge from {str(source[at])!r} to "
                f"{str(target[at])!r}: {what}."
            )


def _externals(edges: Table, outside: Strings, owner: Strings) -> tuple[Strings, Strings]:
    """External nodes with their owners, in the order of owners and then ids."""
    external, first, inverse = np.unique(outside, return_index=True, return_inverse=True)
    owners = owner[first]
    clash = np.flatnonzero(owners[inverse] != owner)
    if clash.size:
        at = clash[0]
        raise DataError(
            f"{edges.path} says that {str(outside[at])!r} is held by {str(owners[inverse[at]])!r} "
            f"and by {str(owner[at])!r}: a node has one owner."
        )
    order = np.lexsort((external, owners))
    return external[order], owners[order]


def _positions(values: Strings, ids: Strings, order: Ints) -> Ints:
    """Position of each value in `ids`, -1 when it is not there."""
    if not ids.size:
        return np.full(values.size, -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(ids, values, sorter=order), ids.size - 1)
    found: Ints = order[place]
    return np.where(ids[found] == values, found, -1)


def _weights(edges: Table) -> Floats:
    if not edges.has("weight"):
        return np.ones(len(edges))
    weight = edges.numbers("weight", default=1.0)
    bad = np.flatnonzero(weight <= 0)
    if bad.size:
        raise DataError(
            f"{edges.path}, row {bad[0] + 1}: the weight {weight[bad[0]]:g} is not positive: "
            "weights are above 0; drop edges that do not count."
        )
    return weight


def _features(path: Path, nodes: Table, org: OrgFile) -> Features:
    """Features from the columns of the nodes or from ``features.npz``."""
    file = path / "features.npz"
    if org.inline and (nodes.has(*org.feature_names) or not file.exists()):
        nodes.require(("id", "label", "split", *org.feature_names))
        columns = [nodes.numbers(name).astype(np.float32) for name in org.feature_names]
        return np.stack(columns, axis=1) if columns else np.zeros((len(nodes), 0), np.float32)
    if not org.feature_names:
        return np.zeros((len(nodes), 0), np.float32)
    matrix = _read_npz(file)
    if matrix.shape != (len(nodes), len(org.feature_names)):
        raise DataError(
            f"{file} has the shape {matrix.shape} but there are {len(nodes)} nodes and "
            f"{len(org.feature_names)} features: write one row a node, in the order of the nodes."
        )
    return matrix


def _read_npz(file: Path) -> Any:  # noqa: ANN401 - dense or sparse
    try:
        with np.load(file, allow_pickle=False) as content:
            if "x" in content.files:
                return content["x"]
        return sp.csr_array(sp.load_npz(file))
    except FileNotFoundError:
        raise DataError(f"{file} is missing: {FILE} gives only the number of features.") from None
    except Exception as error:  # both readers raise many kinds of errors on junk
        raise DataError(
            f"{file} is not readable ({type(error).__name__}): write it with scipy.sparse.save_npz "
            "or with numpy.savez(..., x=features)."
        ) from None


def write_folder(subgraph: Subgraph, path: Path, fmt: str = "csv") -> None:
    """Write an organisation folder that `read_folder` reads back as the same subgraph.

    Parameters
    ----------
    subgraph : what the organisation holds.
    path : the folder, made if it is not there.
    fmt : csv or parquet.
    """
    if fmt not in FORMATS:
        raise ConfigError(f"The format {fmt!r} is not one of {', '.join(FORMATS)}.")
    path.mkdir(parents=True, exist_ok=True)
    names = subgraph.feature_names
    few = isinstance(subgraph.features, np.ndarray) and len(names) <= _INLINE
    numbered = names == numbered_names(len(names))
    write_org_file(path, OrgFile(subgraph.name, subgraph.classes, names, few or not numbered))
    split = np.select(
        [subgraph.train_mask, subgraph.val_mask, subgraph.test_mask], SPLITS, default=""
    )
    classes = np.array([*subgraph.classes, ""])
    columns: dict[str, Any] = {
        "id": subgraph.ids,
        "label": classes[subgraph.labels],
        "split": split,
    }
    if few:
        columns |= {name: subgraph.features[:, at] for at, name in enumerate(names)}
    elif isinstance(subgraph.features, np.ndarray):
        np.savez_compressed(path / "features.npz", x=subgraph.features)
    else:
        sp.save_npz(path / "features.npz", sp.csr_matrix(subgraph.features))
    write_table(path, "nodes", columns, fmt)
    write_table(path, "edges", _edge_columns(subgraph), fmt)


def _edge_columns(subgraph: Subgraph) -> dict[str, Any]:
    """Edges as they are listed: an undirected one once, from the smaller id to the larger."""
    everyone = np.concatenate([subgraph.ids, subgraph.external_ids])
    blank = np.full(subgraph.num_nodes, "")
    owner_of = np.concatenate([blank, subgraph.external_owners])
    index, weight = subgraph.edge_index, subgraph.edge_weight
    if not subgraph.directed:
        once = everyone[index[0]] < everyone[index[1]]
        index, weight = index[:, once], weight[once]
    owner = np.where(index[0] >= subgraph.num_nodes, owner_of[index[0]], owner_of[index[1]])
    columns = {"source": everyone[index[0]], "target": everyone[index[1]], "owner": owner}
    return columns if (weight == 1).all() else columns | {"weight": weight}
