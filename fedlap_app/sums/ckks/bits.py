"""Residues of b bits side by side without gaps: SEAL's own form leaves ten bits of 64 unused.

The residues of each vector are taken in groups of as many as fill whole words: 32 of 54 bits fill
27 words. Residue i of all groups stands in one row, so that a few shifts of rows, of all vectors at
once, pack everything.
"""

import math

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
_WORD = 64
_AT_ONCE = 64  # vectors: what is worked on stays in a core's cache


def pack(residues: Words, bits: int) -> Words:
    """Pack vectors (count, length) of residues below 2^bits; the length is a multiple of 64."""
    out = np.zeros((len(residues), residues.shape[1] * bits // _WORD), dtype=np.uint64)
    for start in range(0, len(residues), _AT_ONCE):
        _pack(residues[start : start + _AT_ONCE], bits, out[start : start + _AT_ONCE])
    return out


def _pack(residues: Words, bits: int, into: Words) -> None:
    group = _group(bits)
    rows = residues.reshape(len(residues), group, -1)
    out = into.reshape(len(rows), group * bits // _WORD, -1)
    room = np.empty((len(rows), rows.shape[2]), dtype=np.uint64)
    for index in range(group):
        word, shift = divmod(index * bits, _WORD)
        np.left_shift(rows[:, index], np.uint64(shift), out=room)
        np.bitwise_or(out[:, word], room, out=out[:, word])
        if shift + bits > _WORD:
            np.right_shift(rows[:, index], np.uint64(_WORD - shift), out=out[:, word + 1])


def unpack(words: Words, bits: int) -> Words:
    """Vectors of residues of what `pack` gave."""
    out = np.empty((len(words), words.shape[1] * _WORD // bits), dtype=np.uint64)
    for start in range(0, len(words), _AT_ONCE):
        _unpack(words[start : start + _AT_ONCE], bits, out[start : start + _AT_ONCE])
    return out


def _unpack(words: Words, bits: int, into: Words) -> None:
    group = _group(bits)
    packed = words.reshape(len(words), group * bits // _WORD, -1)
    out = into.reshape(len(words), group, -1)
    room = np.empty((len(words), packed.shape[2]), dtype=np.uint64)
    for index in range(group):
        word, shift = divmod(index * bits, _WORD)
        row = out[:, index]
        np.right_shift(packed[:, word], np.uint64(shift), out=row)
        if shift + bits > _WORD:
            np.left_shift(packed[:, word + 1], np.uint64(_WORD - shift), out=room)
            np.bitwise_or(row, room, out=row)
    out &= np.uint64((1 << bits) - 1)


def _group(bits: int) -> int:
    """Residues that fill whole words."""
    return _WORD // math.gcd(_WORD, bits)
