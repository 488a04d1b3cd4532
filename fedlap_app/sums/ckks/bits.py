"""Residues of b bits side by side without gaps: SEAL's own form leaves ten bits of 64 unused.

The residues of each vector are taken in groups of as many as fill whole words: 32 of 54 bits fill
27 words. Residue i of all groups of all vectors stands in one row while they are worked on, so that
a few shifts of rows pack everything.
"""

import math

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
_WORD = 64
_AT_ONCE = 16_384  # residues: what is worked on stays in a core's cache


def pack(residues: Words, bits: int) -> Words:
    """Pack vectors (count, length) of residues below 2^bits; the length is a multiple of 64."""
    out = np.empty((len(residues), residues.shape[1] * bits // _WORD), dtype=np.uint64)
    step = max(1, _AT_ONCE // residues.shape[1])
    for start in range(0, len(residues), step):
        _pack(residues[start : start + step], bits, out[start : start + step])
    return out


def _pack(residues: Words, bits: int, into: Words) -> None:
    group = _group(bits)
    rows = _rows(residues, group)
    out = np.zeros((group * bits // _WORD, rows.shape[1]), dtype=np.uint64)
    room = np.empty(rows.shape[1], dtype=np.uint64)
    for index in range(group):
        word, shift = divmod(index * bits, _WORD)
        np.left_shift(rows[index], np.uint64(shift), out=room)
        np.bitwise_or(out[word], room, out=out[word])
        if shift + bits > _WORD:
            np.right_shift(rows[index], np.uint64(_WORD - shift), out=out[word + 1])
    _put(out, into)


def unpack(words: Words, bits: int) -> Words:
    """Vectors of residues of what `pack` gave."""
    out = np.empty((len(words), words.shape[1] * _WORD // bits), dtype=np.uint64)
    step = max(1, _AT_ONCE // out.shape[1])
    for start in range(0, len(words), step):
        _unpack(words[start : start + step], bits, out[start : start + step])
    return out


def _unpack(words: Words, bits: int, into: Words) -> None:
    group = _group(bits)
    packed = _rows(words, group * bits // _WORD)
    out = np.empty((group, packed.shape[1]), dtype=np.uint64)
    room = np.empty(packed.shape[1], dtype=np.uint64)
    for index in range(group):
        word, shift = divmod(index * bits, _WORD)
        np.right_shift(packed[word], np.uint64(shift), out=out[index])
        if shift + bits > _WORD:
            np.left_shift(packed[word + 1], np.uint64(_WORD - shift), out=room)
            np.bitwise_or(out[index], room, out=out[index])
    out &= np.uint64((1 << bits) - 1)
    _put(out, into)


def _rows(vectors: Words, count: int) -> Words:
    """So many rows, each with one item of all groups of all vectors."""
    apart = vectors.reshape(len(vectors), count, -1).transpose(1, 0, 2)
    return np.ascontiguousarray(apart).reshape(count, -1)


def _put(rows: Words, into: Words) -> None:
    """Write rows back to where `_rows` would take them from."""
    apart = rows.reshape(len(rows), len(into), -1).transpose(1, 0, 2)
    into.reshape(len(into), len(rows), -1)[:] = apart


def _group(bits: int) -> int:
    """Residues that fill whole words."""
    return _WORD // math.gcd(_WORD, bits)
