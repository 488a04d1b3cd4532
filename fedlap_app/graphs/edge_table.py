"""The table ``edges`` of an organisation folder."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedlap_app.errors import DataError
from fedlap_app.graphs.arrays import Bools, Floats, Ints, Strings
from fedlap_app.graphs.edges import simplify_edges
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.graphs.tables import Table, column_names, read_table, write_table

_COLUMNS = ("source", "target", "owner")


@dataclass(frozen=True)
class EdgeList:
    """Simple edges and the external nodes that they reach, sorted by owner and id."""

    index: Ints
    weight: Floats
    external_ids: Strings
    external_owners: Strings


def read_edges(path: Path, name: str, ids: Strings, *, directed: bool) -> EdgeList:
    """Read and check the edges of the organisation ``name`` that holds ``ids``."""
    weighted = "weight" in column_names(path)
    table = read_table(path, _COLUMNS, ("weight",) if weighted else ())
    weight = table.numbers[:, 0] if weighted else np.ones(table.lines.size)
    _check_weights(table, weight)
    lookup = {node: place for place, node in enumerate(ids.tolist())}
    ends = np.array(
        [[lookup.get(node, -1) for node in table.text[side].tolist()] for side in _COLUMNS[:2]],
        dtype=np.int64,
    ).reshape(2, -1)
    _check_ends(table, ends)
    _check_owner(table, name)
    foreign = ends < 0
    nodes = np.where(foreign[0], table.text["source"], table.text["target"])
    outside = foreign[0] | foreign[1]
    external_ids, external_owners, place = _externals(table, nodes, outside)
    ends[:, outside] = np.where(foreign[:, outside], ids.size + place, ends[:, outside])
    try:
        index, weight = simplify_edges(
            ends, weight, np.concatenate([ids, external_ids]), directed=directed
        )
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    return EdgeList(index, weight, external_ids, external_owners)


_LARGEST = 1e30  # single precision ends at 3e38, and weights are added up


def _check_weights(table: Table, weight: Floats) -> None:
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight > 0)))
    if bad.size:
        raise DataError(
            f"{table.where(bad[0])}: the weight {weight[bad[0]]:g} is not a positive number: "
            "correct it or leave the edge out."
        )
    extreme = np.flatnonzero((weight < 1 / _LARGEST) | (weight > _LARGEST))
    if extreme.size:
        raise DataError(
            f"{table.where(extreme[0])}: the weight {weight[extreme[0]]:g} is out of range: take "
            f"{1 / _LARGEST:g} to {_LARGEST:g}, for example by choosing another unit."
        )


def _check_ends(table: Table, ends: Ints) -> None:
    """An edge has an own end, and names an owner exactly when the other end is foreign."""
    own, owned = (ends >= 0).sum(axis=0), table.text["owner"] != ""
    rules = (
        (table.text["source"] == "", "the source is empty: name both ends of an edge"),
        (table.text["target"] == "", "the target is empty: name both ends of an edge"),
        (
            (own == 2) & owned,
            "both ends are this organisation's own but the owner {owner!r} is named: leave the "
            "owner empty",
        ),
        (
            (own == 0) & owned,
            "neither {source!r} nor {target!r} is in the table of nodes: an edge needs an own end",
        ),
        (
            (own < 2) & ~owned,
            "{stranger!r} is not in the table of nodes: add it, or name the owner who holds it",
        ),
    )
    for bad, why in rules:
        if bad.any():
            row = int(np.argmax(bad))
            facts = {column: str(table.text[column][row]) for column in _COLUMNS}
            facts["stranger"] = facts["source" if ends[0, row] < 0 else "target"]
            raise DataError(f"{table.where(row)}: {why.format(**facts)}.")


def _check_owner(table: Table, name: str) -> None:
    own = np.flatnonzero(table.text["owner"] == name)
    if own.size:
        raise DataError(
            f"{table.where(own[0])}: the organisation {name!r} names itself as the owner of a node "
            "that is not in its table of nodes: add the node or name who holds it."
        )


def _externals(table: Table, nodes: Strings, outside: Bools) -> tuple[Strings, Strings, Ints]:
    """External nodes with their owners, and the place of each row's external node."""
    nodes, owners = nodes[outside], table.text["owner"][outside]
    order = np.lexsort((nodes, owners))
    by_node = np.lexsort((owners, nodes))
    same = nodes[by_node][1:] == nodes[by_node][:-1]
    clash = np.flatnonzero(same & (owners[by_node][1:] != owners[by_node][:-1]))
    if clash.size:
        first, second = by_node[clash[0]], by_node[clash[0] + 1]
        raise DataError(
            f"{table.path}: the node {str(nodes[first])!r} is said to be held by both "
            f"{str(owners[first])!r} and {str(owners[second])!r}: name its one owner."
        )
    ordered = nodes[order]
    new = np.ones(ordered.size, dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    place = np.empty(ordered.size, dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return ordered[new], owners[order][new], place


def write_edges(subgraph: Subgraph, folder: Path, fmt: str) -> None:
    """Write each edge once; without direction, from the smaller id to the larger."""
    ids = np.concatenate([subgraph.ids, subgraph.external_ids])
    source, target = subgraph.edge_index
    listed = np.ones(source.size, dtype=bool)
    if not subgraph.directed:
        listed = ids[source] < ids[target]
    source, target = source[listed], target[listed]
    outer = np.maximum(source, target) - subgraph.num_nodes
    owners = np.concatenate([subgraph.external_owners, [""]])
    columns = {
        "source": ids[source],
        "target": ids[target],
        "owner": owners[np.where(outer >= 0, outer, subgraph.num_external)],
    }
    weight = subgraph.edge_weight[listed]
    if (weight != 1).any():
        columns["weight"] = weight
    write_table(folder, "edges", columns, fmt)
