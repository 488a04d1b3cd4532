"""What the columns of all organisations look like together, from a few sums in eight rounds.

Each organisation adds `Moments.contribute`, all take in the sum with `absorb`, and after the last
round `Moments.encoding` is the same everywhere. Every number of a sum stays below 1 for each
organisation, whatever the columns hold, so that any back end of sealed sums carries it:

1. how many organisations hold values of a column, and which category, in hashed slots; a column
   that too few hold has no part in what follows;
2. counts of values and of others than zero, and the mean of log2 |x|, as digits; the training
   nodes of every class;
3. the mean distance from this mean: both bound the values, so that no largest value is told;
4. the mean of the values,
5. and their mean distance from it;
6. both again, as an outlier counts for four such distances only,
7. which gives the centre and the unit of the rest;
8. four moments of the distances from the centre and of their asinh.

A column whose values are multiplied by a positive number and moved has the same encoding up to
rounding: nothing that decides depends on where a column's zero or its unit lies, except for columns
of a few values other than zero. These keep their zero and lose their unit; those of a bag of words
keep both, as long as their size is an ordinary one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.graphs.categories import BUCKETS, buckets_of
from fedlap_app.graphs.distribution import (
    FEW,
    FEW_OF_WORDS,
    Distribution,
    are_words,
    digits_of,
    from_digits,
    logarithms,
    ordinary,
)
from fedlap_app.graphs.encoding import Encoding, Rule, measured, stretched
from fedlap_app.graphs.kinds import CATEGORY, SLOTS
from fedlap_app.graphs.subgraph import Subgraph

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDS = 8
LEAST = 3
"""Organisations without whose values a column has no sums."""

_DIGITS = 3
_COUNTED = 3  # values, others than zero, their logarithms
_LOGS = 320.0  # octaves from the least to the largest number of single precision, with room
_LOWEST = -160.0
_MARGIN = 2.0
_DISTANCES = 6.0
_FAR = 4.0
_CONSTANT = 2.0**-24
_HEAVY = 8.0  # fourth standardised moment; 3 of a normal distribution, 9 of an exponential one
_HELPS = 0.8
_ONE = 1e-6  # octaves
_BLOCK = 64  # columns that are dense at a time


@dataclass(frozen=True)
class Shape:
    """Sizes on which the length of the sums depends.

    Attributes
    ----------
    numbers, categories
        Columns of each kind.
    classes
        Classes whose training nodes are counted; 0: they are not.
    """

    numbers: int
    categories: int = 0
    classes: int = 0

    @classmethod
    def of(cls, subgraph: Subgraph, *, classes: bool = False) -> "Shape":
        """Sizes of an organisation's table, the same at all."""
        categories = subgraph.kinds.count(CATEGORY)
        counted = subgraph.num_classes if classes else 0
        return cls(subgraph.num_features - categories, categories, counted)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Numbers in the sums of each round; no sum is empty."""
        lengths = (
            self.numbers + self.categories * BUCKETS,
            (self.numbers * _COUNTED + self.classes) * _DIGITS,
            *(self.numbers,) * 5,
            8 * self.numbers,
        )
        return tuple(max(length, 1) for length in lengths)


class Moments:
    """One organisation's part of the rounds.

    Parameters
    ----------
    subgraph
        What it holds.
    key
        Secret of the organisations under which categories are hashed.
    members
        How many take part.
    least
        Organisations without whose values a column has no sums.
    classes
        Whether training nodes are counted by class.
    """

    def __init__(
        self,
        subgraph: Subgraph,
        key: bytes,
        *,
        members: int = 1,
        least: int = 1,
        classes: bool = False,
    ) -> None:
        self.subgraph = subgraph
        self.key = key
        self.members = members
        self.least = least
        self.shape = Shape.of(subgraph, classes=classes)
        self.sums: list[Array] = []
        kinds = subgraph.kinds or ("",) * subgraph.num_features
        self.columns: Ints = np.flatnonzero([kind != CATEGORY for kind in kinds])

    @property
    def done(self) -> bool:
        """Whether all sums are there."""
        return len(self.sums) == ROUNDS

    def contribute(self) -> Array:
        """What the organisation adds to the sums of this round."""
        found = self._steps[len(self.sums)][0]()
        return found if found.size else np.zeros(1)

    def absorb(self, sums: Array) -> None:
        """Take in the sums of the round."""
        expected = self.shape.lengths[len(self.sums)]
        if sums.shape != (expected,) or not np.isfinite(sums).all():
            raise ProtocolError(
                f"{sums.size} sums of columns arrived where {expected} finite ones were expected: "
                "the organisations are not in the same round."
            )
        take = self._steps[len(self.sums)][1]
        self.sums.append(sums)
        take(sums)

    @property
    def _steps(self) -> tuple[tuple[Callable[[], Array], Callable[[Array], None]], ...]:
        """What is given in each round, and what is made of its sums."""
        return (
            (self._holds, self._read_holders),
            (self._counts, self._read_counts),
            (self._spreads, self._read_spreads),
            (self._means, self._read_means),
            (self._distances, self._read_distances),
            (self._near_means, self._read_near_means),
            (self._near_distances, self._read_near_distances),
            (self._powers, self._read_powers),
        )

    def _read_holders(self, sums: Array) -> None:
        holders, marks = np.split(sums[: self.shape.lengths[0]], [self.shape.numbers])
        self.heard = np.rint(holders) >= self.least
        used = marks[: self.shape.categories * BUCKETS].reshape(-1, BUCKETS)
        self.dictionaries = [self._dictionary(each) for each in used]

    def _values(self) -> "list[tuple[slice, Array]]":
        """Dense blocks of the number columns, missing values as nan."""
        blocks = []
        features = self.subgraph.features
        for start in range(0, self.columns.size, _BLOCK):
            part = features[:, self.columns[start : start + _BLOCK]]
            dense = part if isinstance(part, np.ndarray) else part.toarray()
            blocks.append((slice(start, start + dense.shape[1]), dense.astype(np.float64)))
        return blocks

    def _holds(self) -> Array:
        """One for each column of which it has a value; then its categories."""
        holders = np.zeros(self.shape.numbers)
        for block, x in self._values():
            holders[block] = np.isfinite(x).any(axis=0)
        return np.concatenate([holders, *self._marks()])

    def _counts(self) -> Array:
        totals = np.zeros((_COUNTED, self.shape.numbers))
        for block, x in self._values():
            held = np.isfinite(x) & (x != 0)
            totals[0, block] = np.isfinite(x).sum(axis=0)
            totals[1, block] = held.sum(axis=0)
            totals[2, block] = np.where(held, (logarithms(x) - _LOWEST) / _LOGS, 0.0).sum(axis=0)
        totals[:, ~self.heard] = 0.0
        labels = self.subgraph.labels[self.subgraph.train_mask]
        classes = np.bincount(labels, minlength=self.shape.classes)[: self.shape.classes]
        return digits_of(np.concatenate([totals.ravel(), classes])).ravel()

    def _marks(self) -> list[Array]:
        """One for every category that it holds, and a little more for a frequent one."""
        found = []
        for column in range(self.shape.categories):
            places = buckets_of(self.subgraph, column, self.key)
            counts = np.bincount(places[places >= 0], minlength=BUCKETS)
            share = counts / max(int(counts.sum()), 1)
            found.append((counts > 0) + share * self._share_unit)
        return found

    @property
    def _share_unit(self) -> float:
        """So little that the shares of all do not reach one half."""
        return 0.5 ** (2 + math.ceil(math.log2(self.members)))

    def _read_counts(self, sums: Array) -> None:
        ends = _COUNTED * self.shape.numbers, _COUNTED * self.shape.numbers + self.shape.classes
        digits = sums[: ends[1] * _DIGITS].reshape(-1, _DIGITS)
        counted, classes = np.split(from_digits(digits), ends[:1])
        totals = counted.reshape(_COUNTED, -1)
        self.present = np.maximum(np.rint(totals[0]), 1.0)
        self.nonzero = np.rint(totals[1])
        logarithm = _LOGS * totals[2] / np.maximum(self.nonzero, 1.0) + _LOWEST
        self.logarithm = np.where(self.nonzero > 0, logarithm, 0.0)
        self.class_counts = np.rint(classes)

    def _spreads(self) -> Array:
        sums = np.zeros(self.shape.numbers)
        for block, x in self._values():
            far = np.abs(logarithms(x) - self.logarithm[block]) / _LOGS
            sums[block] = np.where(np.isfinite(x) & (x != 0), far, 0.0).sum(axis=0)
        return self._summed(sums)

    def _read_spreads(self, sums: Array) -> None:
        spread = _LOGS * self._own(sums) * self.present / np.maximum(self.nonzero, 1.0)
        octaves = np.ceil(self.logarithm + _DISTANCES * spread + _MARGIN)
        self.bound = np.exp2(np.clip(octaves, -140, 128))

    def _dictionary(self, marks: Array) -> Ints:
        """Buckets of the categories that get a column, the most frequent ones first."""
        holders = np.floor(marks + 0.25)
        share = np.rint((marks - holders) * 2.0**20)
        known = np.flatnonzero(holders >= min(2, self.members))
        order = np.lexsort((known, -share[known]))
        return known[order][: SLOTS - 2]

    def _cut(self, block: slice, x: Array) -> Array:
        """Distances from the mean, of values cut at the bound; missing ones are 0."""
        bound = self.bound[block]
        return np.where(np.isfinite(x), np.clip(x, -bound, bound) - self.mean[block], 0.0)

    def _summed(self, rows: Array) -> Array:
        """Sums as shares of all values, without those of columns that too few hold."""
        return np.where(self.heard, rows / self.present, 0.0)

    def _means(self) -> Array:
        sums = np.zeros(self.shape.numbers)
        for block, x in self._values():
            bound = self.bound[block]
            sums[block] = np.nansum(np.clip(x, -bound, bound) / bound, axis=0)
        return self._summed(sums)

    def _distances(self) -> Array:
        sums = np.zeros(self.shape.numbers)
        for block, x in self._values():
            # A mean lies between the bounds, so that a distance may be twice as large.
            sums[block] = np.abs(self._cut(block, x) / self.bound[block]).sum(axis=0) / 2
        return self._summed(sums)

    def _own(self, sums: Array) -> Array:
        """Sums of the columns of numbers; without any there is one that means nothing."""
        return sums[: self.shape.numbers]

    def _read_means(self, sums: Array) -> None:
        self.mean = self.bound * self._own(sums)

    def _read_distances(self, sums: Array) -> None:
        self.constant = self._own(sums) < _CONSTANT
        self.unit = 2 * self.bound * np.maximum(self._own(sums), _CONSTANT)

    def _near_means(self) -> Array:
        sums = np.zeros(self.shape.numbers)
        for block, x in self._values():
            far = self._cut(block, x) / (_FAR * self.unit[block])
            sums[block] = np.clip(far, -1.0, 1.0).sum(axis=0)
        return self._summed(sums)

    def _read_near_means(self, sums: Array) -> None:
        self.mean = self.mean + _FAR * self.unit * self._own(sums)

    def _near_distances(self) -> Array:
        sums = np.zeros(self.shape.numbers)
        for block, x in self._values():
            far = self._cut(block, x) / (_FAR * self.unit[block])
            sums[block] = np.minimum(np.abs(far), 1.0).sum(axis=0)
        return self._summed(sums)

    def _read_near_distances(self, sums: Array) -> None:
        self.unit = _FAR * self.unit * np.maximum(self._own(sums), _CONSTANT)

    def _powers(self) -> Array:
        sums = np.zeros((2, 4, self.shape.numbers))
        for block, x in self._values():
            for way, values in enumerate(self._scaled(block, x)):
                power = np.ones_like(values)
                for degree in range(4):
                    power = power * values
                    sums[way, degree, block] = power.sum(axis=0)
        return self._summed(sums).ravel()

    def _scaled(self, block: slice, x: Array) -> tuple[Array, Array]:
        """Distances in their two units, below 1."""
        far = self._cut(block, x) / self.unit[block]
        return measured(far), stretched(far)

    def _read_powers(self, sums: Array) -> None:
        powers = sums[: 8 * self.shape.numbers].reshape(2, 4, -1)
        self.plain, self.heavy = map(Distribution, powers)

    def encoding(self) -> Encoding:
        """How every column becomes what a model reads."""
        plain, heavy = self.plain, self.heavy
        tailed = (plain.kurtosis > _HEAVY) & (heavy.kurtosis < _HELPS * plain.kurtosis)
        best = [np.where(tailed, b, a) for a, b in zip(plain.moments, heavy.moments, strict=True)]
        rule = np.where(tailed, Rule.ASINH, Rule.LINEAR)
        # Of values far apart the asinh keeps more digits, and it takes two values to two.
        rule[heavy.two_valued] = Rule.TWO_VALUES
        rule[self.constant | plain.flat] = Rule.ZERO
        few, words = self._few()
        rule[few] = np.where(self._as_it_is(words)[few], Rule.KEEP, Rule.SIZED)
        rule[~self.heard] = Rule.UNKNOWN
        mean, deviation, kurtosis = best
        # What is rare lies far out in units of the deviation, and would outweigh the other columns.
        deviation = deviation * np.sqrt(np.maximum(kurtosis / 9.0, 1.0))
        return Encoding(
            columns=self.columns,
            rule=rule.astype(np.int64),
            bound=self.bound,
            centre=self.mean,
            unit=np.where(rule == Rule.SIZED, np.exp2(self.logarithm), self.unit),
            mean=np.where(heavy.two_valued, heavy.middle, mean),
            deviation=np.where(deviation > 0, deviation, 1.0),
            key=self.key,
            dictionaries=tuple(self.dictionaries),
            class_counts=self.class_counts,
        )

    def _few(self) -> tuple[NDArray[np.bool_], bool]:
        """Columns with few values other than zero, or none, and whether they are words."""
        share = self.nonzero / self.present
        words = are_words(share[self.heard])
        few: NDArray[np.bool_] = share <= (FEW_OF_WORDS if words else FEW)
        if words:  # what is no count and no frequency is no word
            few &= ordinary(np.exp2(self.logarithm))
        return few, words

    def _as_it_is(self, words: bool) -> NDArray[np.bool_]:
        """Columns that lose no unit: of words, or of ones."""
        found: NDArray[np.bool_] = np.abs(self.logarithm) < _ONE
        return found | words
