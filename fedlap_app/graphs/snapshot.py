"""What an organisation's graph was when something was computed from it, and what changed since."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fedlap_app.graphs.arrays import Features, Floats, Ints, Strings
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.store.job_files import pack_arrays, unpack_arrays
from fedlap_app.store.packing import Data, pack, unpack

_GAP = "\0"  # no id holds one
_MIXING = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Changes:
    """How many nodes and edges came and went, and of how many.

    Attributes
    ----------
    nodes, edges : of the graph as it was; an edge without direction counts once.
    nodes_added, nodes_removed, edges_added, edges_removed : since then.
    features_changed : nodes that stayed and have other features now.
    """

    nodes: int
    edges: int
    nodes_added: int
    nodes_removed: int
    edges_added: int
    edges_removed: int
    features_changed: int

    @property
    def share(self) -> float:
        """The largest of the shares of nodes, of edges and of features that changed."""
        nodes = self.nodes_added + self.nodes_removed
        edges = self.edges_added + self.edges_removed
        share = max(nodes, self.features_changed) / max(self.nodes, 1)
        return max(share, edges / max(self.edges, 1))

    def __str__(self) -> str:
        parts = [
            _moves(self.nodes_added, self.nodes_removed, "node"),
            _moves(self.edges_added, self.edges_removed, "edge"),
        ]
        if self.features_changed:
            what = "node has" if self.features_changed == 1 else "nodes have"
            parts.append(f"{self.features_changed} {what} other features")
        said = ", ".join(filter(None, parts))
        return said or "nothing"


def _moves(added: int, removed: int, what: str) -> str:
    words = [
        f"{count} {what}{'' if count == 1 else 's'} {verb}"
        for count, verb in ((added, "came"), (removed, "went"))
        if count
    ]
    return ", ".join(words)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Nodes and edges of an organisation at one time; it stays in the organisation's store.

    Attributes
    ----------
    ids, external_ids : as of `Subgraph`.
    edge_index : (2, E) as of `Subgraph`.
    degrees : (n,) weighted degrees.
    marks : (n,) a number that is another one when a node's features are.
    """

    ids: Strings
    external_ids: Strings
    edge_index: Ints
    degrees: Floats
    marks: Ints

    @classmethod
    def of(cls, part: Subgraph) -> Self:
        """What a part is now."""
        marks = _marks(part.features)
        return cls(part.ids, part.external_ids, part.edge_index, part.degrees(), marks)

    def pack(self) -> bytes:
        """Everything as bytes."""
        texts = [_GAP.join(ids.tolist()).encode() for ids in (self.ids, self.external_ids)]
        kind = np.int32 if self.edge_index.max(initial=0) < 2**31 else np.int64
        arrays: dict[str, NDArray[Any]] = {
            "edge_index": self.edge_index.astype(kind),
            "degrees": self.degrees,
            "marks": self.marks,
        }
        return pack(*texts, pack_arrays(arrays))

    @classmethod
    def unpack(cls, content: Data) -> Self:
        """Read what `pack` wrote."""
        *texts, arrays = unpack(content, len(fields(cls)) - 2)
        ids, external_ids = (np.array(bytes(text).decode().split(_GAP)) for text in texts)
        found: dict[str, NDArray[Any]] = unpack_arrays(arrays)
        index = found["edge_index"].astype(np.int64)
        if not len(texts[1]):
            external_ids = external_ids[:0]
        return cls(ids, external_ids, index, found["degrees"], found["marks"])

    @cached_property
    def _order(self) -> Ints:
        order: Ints = np.argsort(self.ids, kind="stable")
        return order

    def places(self, ids: Strings) -> Ints:
        """Where nodes were among the own ones; -1 where a node was none of them."""
        nearest = np.minimum(np.searchsorted(self.ids, ids, sorter=self._order), self.ids.size - 1)
        place = self._order[nearest]
        return np.where(self.ids[place] == ids, place, -1)

    def shared(self, part: Subgraph) -> int:
        """How many of a part's nodes were there."""
        return int((self.places(part.ids) >= 0).sum())

    def changes(self, part: Subgraph) -> Changes:
        """What changed in a part."""
        place = self.places(part.ids)
        stayed = place >= 0
        before, after = _edges(self.ids, self.external_ids, self.edge_index, part)
        listings = 1 if part.directed else 2
        kept = np.intersect1d(before, after, assume_unique=True).size
        return Changes(
            nodes=self.ids.size,
            edges=before.size // listings,
            nodes_added=int((~stayed).sum()),
            nodes_removed=self.ids.size - int(stayed.sum()),
            edges_added=(after.size - kept) // listings,
            edges_removed=(before.size - kept) // listings,
            features_changed=int((self.marks[place] != _marks(part.features))[stayed].sum()),
        )


def _edges(ids: Strings, external_ids: Strings, index: Ints, part: Subgraph) -> tuple[Ints, Ints]:
    """One number an edge, before and now."""
    old, new = (
        np.concatenate(pair) for pair in ((ids, external_ids), (part.ids, part.external_ids))
    )
    everyone, number = np.unique(np.concatenate([old, new]), return_inverse=True)
    size = np.int64(everyone.size)
    before, after = number[: old.size][index], number[old.size :][part.edge_index]
    return before[0] * size + before[1], after[0] * size + after[1]


def _marks(features: Features) -> Ints:
    """A sum of the bits of every row's entries, each times an odd number of its column."""
    rows, width = features.shape
    columns = np.arange(1, width + 1, dtype=np.uint64) * _MIXING | np.uint64(1)
    with np.errstate(over="ignore"):
        if isinstance(features, np.ndarray):
            marks = np.zeros(rows, dtype=np.uint64)
            for column in range(width):  # the product of all at once would be twice the features
                marks += _bits(features[:, column]) * columns[column]
        else:
            terms = _bits(features.data) * columns[features.indices]
            ends = np.concatenate([[np.uint64(0)], np.cumsum(terms, dtype=np.uint64)])
            marks = ends[features.indptr[1:]] - ends[features.indptr[:-1]]
    return marks.view(np.int64)


def _bits(values: NDArray[np.floating]) -> NDArray[np.uint64]:
    """The bits of numbers in single precision; minus zero is zero."""
    plain = np.ascontiguousarray(values, dtype=np.float32) + np.float32(0.0)
    return plain.view(np.uint32).astype(np.uint64)
