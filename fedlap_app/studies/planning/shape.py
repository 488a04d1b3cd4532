"""Sizes of a federation: all that the price of an offline phase depends on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.kinds import CATEGORY
from fedlap_app.graphs.partitions import client_names
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.sums.job.borders import boundary_of
from fedlap_app.sums.job.spec import OfflineSpec
from fedlap_app.sums.layout import Frame, make_layout
from fedlap_app.sums.program import Extent

USUAL_DEGREE = 10


@dataclass(frozen=True)
class Part:
    """Sizes of one organisation.

    Attributes
    ----------
    name
        Its name; headers carry it.
    nodes, boundary
        Own nodes, and those of them with a foreign neighbour.
    entries
        Entries of its rows of the adjacency matrix, and of its columns if edges have a direction.
    external
        Foreign nodes that it has edges to.
    shared
        Entries that lead to foreign nodes.
    partners
        Whom it shares edges with.
    data_bytes
        Bytes of its subgraph in memory.
    features
        Columns of features; 0: not known.
    categories, classes
        Those of them that hold categories; classes.
    """

    name: str
    nodes: int
    boundary: int
    entries: int
    external: int
    shared: int
    partners: tuple[str, ...]
    data_bytes: int
    features: int = 0
    categories: int = 0
    classes: int = 0

    def rows(self, spec: OfflineSpec) -> int:
        """Rows that have a slot in block sums."""
        if not spec.program.edges:
            return 0
        return self.boundary if spec.layout == "boundary" else self.nodes

    def frame(self, spec: OfflineSpec) -> Frame:
        """Shape of its layout; which row gets which slot does not matter."""
        rows = self.rows(spec)
        drawn = make_layout(
            rows,
            np.random.default_rng(0),
            columns=spec.program.width,
            multiple=spec.multiple(rows),
            spare=spec.facts.spare,
        )
        return drawn.frame


@dataclass(frozen=True)
class Shape:
    """Sizes of all organisations, sorted by name; `assumed` when there are no data yet."""

    parts: tuple[Part, ...]
    assumed: bool = False

    @property
    def nodes(self) -> int:
        """Nodes of the whole graph."""
        return sum(part.nodes for part in self.parts)

    @property
    def extent(self) -> Extent:
        """What a program's rounds depend on."""
        first = self.parts[0]
        features = max(part.features for part in self.parts)
        return Extent(self.nodes, features, first.categories, first.classes)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all organisations."""
        return tuple(part.name for part in self.parts)

    def senders(self, spec: OfflineSpec) -> dict[str, tuple[str, ...]]:
        """Who contributes to the block sums of each recipient."""
        if spec.hide_topology:
            return {name: tuple(o for o in self.names if o != name) for name in self.names}
        return {part.name: part.partners for part in self.parts}


def shape_of(subgraphs: Sequence[Subgraph]) -> Shape:
    """Sizes of a federation that exists."""
    return Shape(tuple(sorted(map(_part_of, subgraphs), key=lambda part: part.name)))


def _part_of(subgraph: Subgraph) -> Part:
    dense = subgraph.features
    features = dense.nbytes if isinstance(dense, np.ndarray) else 12 * dense.nnz
    indexes = subgraph.edge_index.nbytes + subgraph.edge_weight.nbytes
    sources = subgraph.edge_index[0], subgraph.inter_edges[0][0]
    # An undirected edge to a foreign node is listed in both directions; rows have one of them.
    counted = [
        int(each.size if subgraph.directed else (each < subgraph.num_nodes).sum())
        for each in sources
    ]
    names = subgraph.ids.nbytes + subgraph.external_ids.nbytes + subgraph.external_owners.nbytes
    return Part(
        name=subgraph.name,
        nodes=subgraph.num_nodes,
        boundary=int(boundary_of(subgraph).sum()),
        entries=counted[0],
        external=subgraph.num_external,
        shared=counted[1],
        partners=tuple(subgraph.partners),
        data_bytes=int(features + indexes + names),
        features=subgraph.num_features,
        categories=subgraph.kinds.count(CATEGORY),
        classes=subgraph.num_classes,
    )


def equal_parts(nodes: int, clients: int, edges: int | None = None) -> Shape:
    """Sizes of a federation that does not exist yet: equal parts of a random partition.

    Parameters
    ----------
    nodes, clients
        Nodes of the whole graph and organisations.
    edges
        Undirected edges (default: five times the nodes, a mean degree of ten).
    """
    if clients < 2 or nodes < clients:
        raise ConfigError(
            f"{nodes} nodes cannot be divided among {clients} organisations: "
            "give two organisations or more, and a node to each"
        )
    edges = USUAL_DEGREE * nodes // 2 if edges is None else edges
    names = client_names(clients)
    parts = []
    for index, name in enumerate(names):
        own = nodes // clients + (index < nodes % clients)
        entries = 2 * edges * own // nodes
        shared = entries * (nodes - own) // nodes
        # Ends of random edges fall on the same foreign node by chance.
        external = round((nodes - own) * -math.expm1(-shared / (nodes - own)))
        others = tuple(other for other in names if other != name)
        parts.append(Part(name, own, own, entries, external, shared, others, 24 * entries))
    return Shape(tuple(parts), assumed=True)
