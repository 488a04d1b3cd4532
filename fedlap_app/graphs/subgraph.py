"""What one organisation holds: its own nodes, and the far ends of the edges it shares."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fedlap_app.errors import DataError
from fedlap_app.graphs import checks
from fedlap_app.graphs.arrays import (
    Bools,
    Features,
    Floats,
    Ints,
    Strings,
    feature_matrix,
    freeze,
    numbers,
    read_only_csr,
    strings,
)
from fedlap_app.graphs.edges import sort_edges
from fedlap_app.graphs.kinds import CATEGORY, Kinds, check_kinds, num_inputs
from fedlap_app.store.arrays import read_arrays, write_arrays


@dataclass(frozen=True, eq=False)
class Subgraph:
    """One organisation's part of the graph; checked when made and read-only afterwards.

    Attributes
    ----------
    name : the organisation.
    classes : names of the classes, the same list and order at every organisation.
    feature_names : names of the feature columns.
    ids : (n,) the organisation's own (internal) nodes.
    external_ids : (m,) foreign ends of edges.
    external_owners : (m,) who holds each of them.
    edge_index : (2, E) source and target, sorted by source and then target; 0 to n - 1 are
        internal, n to n + m - 1 external nodes, and at least one end is internal.
    edge_weight : (E,) positive weights.
    features : (n, d) float32, dense or CSR; d may be 0.
    labels : (n,) position in ``classes``, or -1 without a label.
    train_mask, val_mask, test_mask : (n,) disjoint; a node in a mask has a label.
    directed : whether direction matters; otherwise every edge is there in both directions.
    kinds : kind of each feature, "" where none is declared; empty: none is declared.
    categories : (n, columns of kind category) their texts, "" where missing; None without any.
    """

    name: str
    classes: tuple[str, ...]
    feature_names: tuple[str, ...]
    ids: Strings
    external_ids: Strings
    external_owners: Strings
    edge_index: Ints
    edge_weight: Floats
    features: Features
    labels: Ints
    train_mask: Bools
    val_mask: Bools
    test_mask: Bools
    directed: bool = False
    kinds: Kinds = ()
    categories: Strings | None = None

    def __post_init__(self) -> None:
        checks.check_name(self.name)
        self._adopt(_prepared(self))
        self._check()

    def _adopt(self, values: Mapping[str, Any]) -> None:
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def _check(self) -> None:
        if not self.ids.size:
            raise DataError(f"{self.name!r} has no nodes: an organisation needs at least one.")
        if not self.classes:
            raise DataError(f"{self.name!r} has no classes: name at least one.")
        checks.check_list(self.classes, "classes")
        checks.check_list(self.feature_names, "feature names")
        everyone = np.concatenate([self.ids, self.external_ids])
        checks.check_unique(everyone, f"Node of {self.name!r}")
        self._check_external()
        checks.check_features(self.features, self.ids, self.feature_names, self.kinds)
        check_kinds(self.kinds, self.num_features, self.categories, self.num_nodes)
        checks.check_labels(self.labels, self.ids, self.classes)
        checks.check_masks((self.train_mask, self.val_mask, self.test_mask), self.labels, self.ids)
        checks.check_edges(self.edge_index, self.edge_weight, everyone, directed=self.directed)
        self._check_boundary()

    def _check_external(self) -> None:
        if self.external_owners.shape != self.external_ids.shape:
            raise DataError(
                f"{self.name!r} has {self.external_ids.size} external nodes but "
                f"{self.external_owners.size} owners: name one owner for each."
            )
        for owner in self.partners:
            checks.check_name(owner)
            if owner == self.name:
                own = self.external_ids[self.external_owners == owner][0]
                raise DataError(
                    f"{self.name!r} is named as the owner of the external node {str(own)!r}: "
                    "an external node belongs to another organisation."
                )

    def _check_boundary(self) -> None:
        outside = self.edge_index >= self.num_nodes
        if outside.all(axis=0).any():
            at = int(np.argmax(outside.all(axis=0)))
            first, second = (str(self.external_ids[end]) for end in self._externals_of(at))
            raise DataError(
                f"The edge from {first!r} to {second!r} joins two external nodes: "
                f"{self.name!r} may only list edges with an end of its own."
            )
        used = np.zeros(self.num_external, dtype=bool)
        used[self.edge_index[outside] - self.num_nodes] = True
        if not used.all():
            lonely = str(self.external_ids[int(np.argmin(used))])
            raise DataError(f"The external node {lonely!r} has no edge: leave it out.")

    def _externals_of(self, edge: int) -> list[int]:
        return [int(end) - self.num_nodes for end in self.edge_index[:, edge]]

    @property
    def num_nodes(self) -> int:
        """Number of internal nodes, n."""
        return int(self.ids.size)

    @property
    def num_external(self) -> int:
        """Number of external nodes, m."""
        return int(self.external_ids.size)

    @property
    def num_features(self) -> int:
        """Number of feature columns, d."""
        return len(self.feature_names)

    @property
    def num_inputs(self) -> int:
        """Columns that a model reads of the features."""
        return num_inputs(self.kinds, self.num_features)

    def with_features(self, features: Features, names: tuple[str, ...]) -> "Subgraph":
        """The same graph with numbers that need no kinds; nothing else is looked at again."""
        other = object.__new__(Subgraph)
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        changed = {"features": features, "feature_names": names, "kinds": (), "categories": None}
        other._adopt({**values, **changed})
        checks.check_features(features, self.ids, names)
        return other

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @cached_property
    def partners(self) -> tuple[str, ...]:
        """Sorted names of the organisations that hold an external node."""
        return tuple(np.unique(self.external_owners).tolist())

    @cached_property
    def _is_intra(self) -> Bools:
        inside: Bools = np.less(self.edge_index.max(axis=0), self.num_nodes)
        return inside

    @property
    def intra_edges(self) -> tuple[Ints, Floats]:
        """Index and weight of the edges with both ends internal."""
        return self.edge_index[:, self._is_intra], self.edge_weight[self._is_intra]

    @property
    def inter_edges(self) -> tuple[Ints, Floats]:
        """Index and weight of the edges with one end external."""
        return self.edge_index[:, ~self._is_intra], self.edge_weight[~self._is_intra]

    def out_adjacency(self) -> sp.csr_array:
        """Weights (n, n + m): rows are internal sources, columns their targets."""
        return self._adjacency(*self.edge_index)

    def in_adjacency(self) -> sp.csr_array:
        """Weights (n, n + m): rows are internal targets, columns their sources."""
        return self._adjacency(*self.edge_index[::-1])

    def symmetric_adjacency(self) -> sp.csr_array:
        """Weights (n, n + m), directions ignored: of two opposite edges the larger weight."""
        rows = self.out_adjacency()
        return rows.maximum(self.in_adjacency()).tocsr() if self.directed else rows

    def _adjacency(self, rows: Ints, columns: Ints) -> sp.csr_array:
        own = rows < self.num_nodes
        shape = (self.num_nodes, self.num_nodes + self.num_external)
        return sp.csr_array((self.edge_weight[own], (rows[own], columns[own])), shape=shape)

    def degrees(self) -> Floats:
        """Weighted degree of each internal node over all its edges, direction ignored.

        In a directed graph a pair of opposite edges counts once, with the larger weight.
        """
        totals: Floats = np.asarray(self.symmetric_adjacency().sum(axis=1), dtype=np.float64)
        return totals.reshape(-1)

    def fingerprint(self) -> str:
        """Hexadecimal SHA-256 of everything this object holds."""
        digest = hashlib.sha256()
        meta, arrays = _described(self)
        digest.update(repr(sorted(meta.items())).encode())
        for key, array in sorted(arrays.items()):
            if array.dtype.kind == "U":
                content = "\0".join(array.tolist()).encode()
            else:
                # The width of sparse indices depends on how the matrix was made.
                same = array.astype(np.int64) if array.dtype.kind == "i" else array
                content = np.ascontiguousarray(same).tobytes()
            digest.update(f"{key}:{array.shape}:{len(content)}:".encode())
            digest.update(content)
        return digest.hexdigest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one binary file, atomically."""
        write_arrays(path, *_described(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap: bool = False) -> "Subgraph":
        """Read what `save` wrote; the content was checked before it was written."""
        meta, arrays = read_arrays(path, mmap=mmap)
        if meta.get("kind") != cls.__name__:
            raise DataError(f"{path} does not hold a Subgraph: name a file that save() wrote.")
        subgraph = object.__new__(cls)
        subgraph._adopt(
            {
                "name": meta["name"],
                "classes": tuple(meta["classes"]),
                "feature_names": tuple(meta["feature_names"]),
                "directed": meta["directed"],
                "features": features_from(meta, arrays),
                **kinds_from(meta, arrays),
                **{key: arrays[key] for key in _ARRAYS},
            }
        )
        return subgraph


_META = ("name", "classes", "feature_names", "directed")
_OPTIONAL = ("kinds", "categories")
_OTHERS = (*_META, *_OPTIONAL, "features")
_ARRAYS = tuple(field.name for field in fields(Subgraph) if field.name not in _OTHERS)


def _prepared(given: Subgraph) -> dict[str, Any]:
    """Fields of ``given`` in their canonical read-only form."""
    who = repr(given.name)
    index = numbers(given.edge_index, np.int64, f"The edge index of {who}")
    index = index.reshape(2, -1) if index.size == 0 else index
    weight = numbers(given.edge_weight, np.float64, f"The edge weights of {who}").reshape(-1)
    if index.shape == (2, weight.size):
        index, weight = sort_edges(index, weight, int(index.max(initial=0)) + 1)
        index.flags.writeable = weight.flags.writeable = False
    masks = ("train_mask", "val_mask", "test_mask")
    return {
        "classes": tuple(given.classes),
        "feature_names": tuple(given.feature_names),
        "ids": strings(given.ids, f"The list of nodes of {who}"),
        "external_ids": strings(given.external_ids, f"The list of external nodes of {who}"),
        "external_owners": strings(given.external_owners, f"The list of owners of {who}"),
        "edge_index": index,
        "edge_weight": weight,
        "features": feature_matrix(given.features, f"The feature matrix of {who}"),
        "labels": numbers(given.labels, np.int64, f"The labels of {who}").reshape(-1),
        **{key: numbers(getattr(given, key), np.bool_, f"A split of {who}") for key in masks},
        "directed": bool(given.directed),
        "kinds": tuple(given.kinds),
        "categories": texts(given.categories),
    }


def texts(values: Strings | None) -> Strings | None:
    """Texts of categories, read-only; None without a column of them."""
    if values is None or not values.shape[1]:
        return None
    return freeze(np.ascontiguousarray(values, dtype=np.str_))


def kind_arrays(
    kinds: Kinds, categories: Strings | None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Description and arrays under which kinds are stored; nothing where none is declared."""
    arrays = {} if categories is None else {"categories": categories.reshape(-1)}
    return ({"kinds": kinds} if kinds else {}), arrays


def kinds_from(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Kinds and texts from what `kind_arrays` gave."""
    kinds = tuple(meta.get("kinds", ()))
    found = arrays.get("categories")
    columns = kinds.count(CATEGORY)
    return {"kinds": kinds, "categories": None if found is None else found.reshape(-1, columns)}


def feature_arrays(features: Features) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Description and arrays under which a feature matrix is stored."""
    if isinstance(features, np.ndarray):
        return {"sparse": False}, {"x": features}
    arrays = {"data": features.data, "indices": features.indices, "indptr": features.indptr}
    return {"sparse": True, "shape": list(features.shape)}, {
        f"x_{key}": value for key, value in arrays.items()
    }


def features_from(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Features:
    """Feature matrix from what `feature_arrays` gave."""
    if not meta["sparse"]:
        return arrays["x"]
    rows, columns = meta["shape"]
    return read_only_csr(arrays["x_data"], arrays["x_indices"], arrays["x_indptr"], (rows, columns))


def _described(subgraph: Subgraph) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    meta, arrays = feature_arrays(subgraph.features)
    declared, texts_of = kind_arrays(subgraph.kinds, subgraph.categories)
    meta |= {key: getattr(subgraph, key) for key in _META} | {"kind": "Subgraph"} | declared
    return meta, arrays | texts_of | {key: getattr(subgraph, key) for key in _ARRAYS}
