"""What a training job tells the server: whole counts over all members, if all of them agree.

Every member pads the same few words, one puts the counts into them, and the server adds. The pads
cancel only if all have pads of one list and one chain of sums. So a server that showed sums over
different lists to different members, to subtract what they tell, reads nothing of either.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fedlap_app.errors import ProtocolError
from fedlap_app.store.packing import Data
from fedlap_app.sums.header import Header, Place
from fedlap_app.sums.training.shape import SumShape, Words

_WORDS = 4  # of a split: whether it is withheld, in the clear; then one, nodes and hits


class Counts(NamedTuple):
    """Nodes of a split, of all members together, and how many were classified right."""

    nodes: int
    right: int


def counts_place(stage: int, attempt: int) -> Place:
    """Place of what is told at the end of a stage."""
    return Place(f"training counts {stage}", 0, attempt)


def counts_shape(splits: int) -> SumShape:
    """Shape of what is told of so many splits."""
    return SumShape((), _WORDS * splits)


def part(counts: Sequence[Counts | None], *, first: bool) -> tuple[Words, list[slice]]:
    """Words of one member, and where they want pads: a split without pads can be read by nobody.

    Parameters
    ----------
    counts
        Of every split; None: this member withholds them.
    first
        Whether it is the one that puts the counts in.
    """
    words = counts_shape(len(counts)).encode({}, 0.0, [0.0] * (_WORDS * len(counts)), 1)
    told = []
    for start, found in zip(range(0, words.size, _WORDS), counts, strict=False):
        words[start] = found is None
        if found is not None:
            told.append(slice(start + 1, start + _WORDS))
            words[told[-1]] = 1, *(found if first else (0, 0))
    return words, told


def told_splits(data: Data, splits: int) -> int:
    """Of how many splits a member's part tells."""
    _, size = Header.unpack(data)
    return int((np.frombuffer(data, "<u8", offset=size)[: _WORDS * splits : _WORDS] == 0).sum())


def published(total: Data, splits: Sequence[str], members: int) -> dict[str, tuple[int, int]]:
    """Counts of the splits that nobody withholds; parts that do not agree are refused.

    Parameters
    ----------
    total
        Sum of the parts of all members.
    splits
        Their names.
    members
        How many they are.
    """
    _, size = Header.unpack(total)
    words = np.frombuffer(total, "<u8", offset=size).tolist()
    found = {}
    for number, split in enumerate(splits):
        withheld, ones, nodes, right = words[_WORDS * number : _WORDS * (number + 1)]
        if withheld:
            continue
        if ones != members or not 0 <= right <= nodes:
            raise ProtocolError(
                "The members do not tell the same scores: one of them took in other sums, or runs "
                "another release; no score is published."
            )
        found[split] = (nodes, right)
    return found
