"""How feature columns become what a model reads: numbers standardised, categories as columns."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fedlap_app.errors import DataError
from fedlap_app.graphs.arrays import Features
from fedlap_app.graphs.categories import one_hot
from fedlap_app.graphs.kinds import CATEGORY, NUMBER, SLOTS
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.store.job_files import pack_arrays, unpack_arrays
from fedlap_app.store.packing import Data

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

_SPAN = 64.0  # units from the centre beyond which values are cut
_STRETCH = 8.0  # the same of their asinh
FARTHEST = 8.0
"""Deviations from the mean beyond which standardised values are cut."""


class Rule(IntEnum):
    """What becomes of a column of numbers."""

    KEEP = 0
    ZERO = 1
    TWO_VALUES = 2
    LINEAR = 3
    ASINH = 4
    UNKNOWN = 5
    SIZED = 6


SAYS = {
    Rule.KEEP: "left alone",
    Rule.ZERO: "constant, so it tells nothing and becomes 0",
    Rule.TWO_VALUES: "two values, which become 0 and 1",
    Rule.LINEAR: "standardised",
    Rule.ASINH: "heavy tails, standardised after asinh (a logarithm of both signs)",
    Rule.SIZED: "mostly empty, divided by its usual size",
    Rule.UNKNOWN: "held by too few organisations, each standardises its own",
}


@dataclass(frozen=True, eq=False)
class Encoding:
    """How the columns of a table are read, learned from the tables of all organisations.

    Attributes
    ----------
    columns
        Which columns hold numbers; the following arrays have an entry for each of them.
    rule
        What becomes of it, a `Rule`.
    bound, centre, unit
        Values are cut at plus and minus the bound, and measured from the centre in units; of a
        column that is mostly empty the unit is the geometric mean of its sizes.
    mean, deviation
        Of the measured values, or of their asinh; for two values what lies between theirs.
    key, dictionaries
        Secret under which categories are hashed, and for each column of them the slots of those
        that have a column.
    class_counts
        Training nodes of every class; empty: they were not counted.
    """

    columns: Ints
    rule: Ints
    bound: Array
    centre: Array
    unit: Array
    mean: Array
    deviation: Array
    key: bytes
    dictionaries: tuple[Ints, ...]
    class_counts: Array

    @property
    def changes(self) -> bool:
        """Whether any column does not stay as it is."""
        return bool(self.dictionaries) or bool((self.rule != Rule.KEEP).any())

    def filled_by(self, own: "Encoding") -> "Encoding":
        """The same with an organisation's own rule where too few organisations hold a column."""
        alone = self.rule == Rule.UNKNOWN
        if not alone.any():
            return self
        names = ("rule", "bound", "centre", "unit", "mean", "deviation")
        mixed = {n: np.where(alone, getattr(own, n), getattr(self, n)) for n in names}
        return Encoding(
            columns=self.columns,
            key=self.key,
            dictionaries=self.dictionaries,
            class_counts=self.class_counts,
            **mixed,
        )

    def apply(self, subgraph: Subgraph) -> Subgraph:
        """The same graph with features as a model reads them."""
        if not self.changes and not any(subgraph.kinds):
            return subgraph
        categories = subgraph.kinds.count(CATEGORY)
        if self.columns.size + categories != subgraph.num_features:
            raise DataError(
                f"{subgraph.name} has {subgraph.num_features} features and the model was trained "
                f"with {self.columns.size + len(self.dictionaries)}: use the table it was made for"
            )
        if not any(subgraph.kinds):
            return subgraph.with_features(self._numbers(subgraph.features), subgraph.feature_names)
        return self._with_kinds(subgraph)

    def _numbers(self, features: Features) -> Features:
        """The columns of numbers; a sparse matrix stays one."""
        changed = np.flatnonzero(self.rule != Rule.KEEP)
        if isinstance(features, np.ndarray):
            found = features[:, self.columns].astype(np.float32)
            for at in changed.tolist():
                found[:, at] = self._column(at, found[:, at].astype(np.float64))
            return found
        columns = sp.csc_array(features)
        pieces = [columns[:, [at]] for at in range(features.shape[1])]
        for at in changed.tolist():
            dense = pieces[at].toarray()[:, 0].astype(np.float64)
            pieces[at] = sp.csc_array(self._column(at, dense)[:, None])
        return sp.csr_array(sp.hstack(pieces, format="csr"), dtype=np.float32)

    def _column(self, at: int, x: Array) -> Array:
        rule = Rule(int(self.rule[at]))
        if rule is Rule.KEEP:
            return np.nan_to_num(x)
        if rule in (Rule.ZERO, Rule.UNKNOWN):
            return np.zeros_like(x)
        known = np.isfinite(x)
        if rule is Rule.SIZED:
            return np.clip(np.where(known, x / self.unit[at], 0.0), -FARTHEST, FARTHEST)
        far = np.clip(np.where(known, x, 0.0), -self.bound[at], self.bound[at]) - self.centre[at]
        far = far / self.unit[at]
        scaled = measured(far) if rule is Rule.LINEAR else stretched(far)
        if rule is Rule.TWO_VALUES:
            return np.where(known & (scaled > self.mean[at]), 1.0, 0.0)
        standard = (scaled - self.mean[at]) / self.deviation[at]
        return np.where(known, np.clip(standard, -FARTHEST, FARTHEST), 0.0)

    def _with_kinds(self, subgraph: Subgraph) -> Subgraph:
        """Values, where they are missing, and categories, in the order of the columns."""
        dense = subgraph.features
        dense = dense if isinstance(dense, np.ndarray) else dense.toarray()
        numbers, pieces, names = 0, [], []
        categories = 0
        for at, (name, kind) in enumerate(zip(subgraph.feature_names, subgraph.kinds, strict=True)):
            if kind == CATEGORY:
                slots = self.dictionaries[categories]
                pieces.append(one_hot(subgraph, categories, self.key, slots))
                names += [f"{name} {slot}" for slot in range(SLOTS)]
                categories += 1
                continue
            x = dense[:, at].astype(np.float64)
            pieces.append(self._column(numbers, x)[:, None])
            names.append(name)
            numbers += 1
            if kind == NUMBER:
                pieces.append(np.isnan(x).astype(np.float64)[:, None])
                names.append(f"{name} missing")
        read = np.concatenate(pieces, axis=1).astype(np.float32)
        return subgraph.with_features(read, tuple(names))

    def to_bytes(self) -> bytes:
        """For the organisation's own store."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        arrays["key"] = np.frombuffer(self.key, np.uint8)
        arrays |= {f"dictionary {n}": each for n, each in enumerate(self.dictionaries)}
        return pack_arrays(arrays)

    @classmethod
    def from_bytes(cls, content: Data) -> "Encoding":
        """Read what `to_bytes` wrote."""
        arrays: dict[str, Any] = unpack_arrays(content)
        found = [arrays[name] for name in sorted(arrays, key=_number) if " " in name]
        return cls(
            key=arrays["key"].tobytes(),
            dictionaries=tuple(found),
            **{name: arrays[name] for name in _ARRAYS},
        )


_ARRAYS = ("columns", "rule", "bound", "centre", "unit", "mean", "deviation", "class_counts")


def _number(name: str) -> int:
    return int(name.partition(" ")[2] or -1)


def unchanged(subgraph: Subgraph) -> Encoding:
    """The encoding that leaves numbers as they are; categories are all other ones."""
    kinds = subgraph.kinds or ("",) * subgraph.num_features
    columns = np.flatnonzero([kind != CATEGORY for kind in kinds])
    zeros, ones = np.zeros(columns.size), np.ones(columns.size)
    none = np.zeros(0, dtype=np.int64)
    return Encoding(
        columns=columns,
        rule=np.full(columns.size, int(Rule.KEEP)),
        bound=ones,
        centre=zeros,
        unit=ones,
        mean=zeros,
        deviation=ones,
        key=bytes(32),
        dictionaries=(none,) * kinds.count(CATEGORY),
        class_counts=np.zeros(0),
    )


def measured(far: Array) -> Array:
    """Distances from the centre in units, from -1 to 1."""
    return np.clip(far / _SPAN, -1.0, 1.0)


def stretched(far: Array) -> Array:
    """Their asinh, a logarithm of both signs, from -1 to 1."""
    return np.clip(np.arcsinh(far) / _STRETCH, -1.0, 1.0)
