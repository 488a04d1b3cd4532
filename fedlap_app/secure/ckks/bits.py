"""Residues of b bits side by side without gaps: SEAL's own form leaves ten bits of 64 unused.

All residues of an array are taken in groups of as many as fill whole words: 32 of 54 bits fill 27
words. Residue i of all groups stands in one row, so that a few shifts of rows pack everything.
"""

import math

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
_WORD = 64


def pack(residues: Words, bits: int) -> Words:
    """Pack all residues, below 2^bits and a multiple of 64 in number."""
    group = _group(bits)
    rows = residues.reshape(group, -1)
    out = np.zeros((group * bits // _WORD, rows.shape[1]), dtype=np.uint64)
    room = np.empty(rows.shape[1], dtype=np.uint64)
    for index, row in enumerate(rows):
        word, shift = divmod(index * bits, _WORD)
        out[word] |= np.left_shift(row, np.uint64(shift), out=room)
        if shift + bits > _WORD:
            np.right_shift(row, np.uint64(_WORD - shift), out=out[word + 1])
    return out.reshape(-1)


def unpack(words: Words, bits: int) -> Words:
    """Residues of what `pack` gave, in one vector."""
    group = _group(bits)
    packed = words.reshape(group * bits // _WORD, -1)
    out = np.empty((group, packed.shape[1]), dtype=np.uint64)
    room = np.empty(packed.shape[1], dtype=np.uint64)
    mask = np.uint64((1 << bits) - 1)
    for index, row in enumerate(out):
        word, shift = divmod(index * bits, _WORD)
        np.right_shift(packed[word], np.uint64(shift), out=row)
        if shift + bits > _WORD:
            row |= np.left_shift(packed[word + 1], np.uint64(_WORD - shift), out=room)
    out &= mask
    return out.reshape(-1)


def _group(bits: int) -> int:
    """Residues that fill whole words."""
    return _WORD // math.gcd(_WORD, bits)
