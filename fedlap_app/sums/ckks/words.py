"""Contributions and sums of words in coefficients, on the wire and at the server that adds them.

A contribution is a tag, the seeds of its ciphertexts and one row of packed residues; a sum has the
seeds of all contributors, in the order of their names. The server adds residues modulo q: it draws
nothing from the seeds and calls no part of SEAL but for the prime.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.accumulator import Line
from fedlap_app.sums.ckks import coefficients, wire
from fedlap_app.sums.ckks.coefficients import Coefficients
from fedlap_app.sums.ckks.keyed import KeyedAccumulator
from fedlap_app.sums.ckks.parameters import Parameters
from fedlap_app.sums.ckks.seal_files import SEED_BYTES, SEED_ROOM
from fedlap_app.sums.header import Header, Sum

Words = NDArray[np.uint64]
_WORD = 8
_lately: "deque[tuple[tuple[object, ...], Words]]" = deque(maxlen=1)


class WordForm(NamedTuple):
    """What some words look like on the wire.

    Attributes
    ----------
    parameters
        The agreed parameters.
    words
        Words.
    contributors
        Whose seeds are there; 1 in a contribution.
    """

    parameters: Parameters
    words: int
    contributors: int = 1

    @property
    def residues(self) -> int:
        """Coefficients that are sent."""
        return Coefficients(self.parameters).room(self.words)

    @property
    def ciphertexts(self) -> int:
        """Ciphertexts that they are of."""
        return self.parameters.ciphertexts(self.residues)

    @property
    def size(self) -> int:
        """Length, a multiple of 8."""
        seeds = self.contributors * self.ciphertexts * SEED_ROOM
        return wire.TAG_BYTES + seeds + self.residues * self.parameters.bits // 8

    def write(self, key: bytes, seeds: Sequence[bytes], packed: Words) -> bytes:
        """All of it, from seeds one after the other and packed residues."""
        drawn = (seed.ljust(SEED_ROOM, b"\0") for seed in seeds)
        return b"".join((wire.tag(self.parameters, wire.WORDS, key), *drawn, packed.tobytes()))

    def read(self, data: Words) -> tuple[bytes, list[bytes], Words]:
        """Key id, seeds and packed residues; anything else is refused."""
        start = wire.TAG_BYTES // _WORD
        key = wire.read_tag(data[:start].tobytes(), self.parameters, wire.WORDS)
        end = start + self.contributors * self.ciphertexts * SEED_ROOM // _WORD
        seeds = [row.tobytes()[:SEED_BYTES] for row in data[start:end].reshape(-1, SEED_ROOM // 8)]
        return key, seeds, data[end:]


class Part(NamedTuple):
    """Words that are sealed.

    Attributes
    ----------
    words
        Of the form's number; their upper bits do not count.
    form
        What they look like on the wire.
    secret
        What the secret key is made of.
    key
        Public name of the keys of the sum.
    """

    words: Words
    form: WordForm
    secret: bytes
    key: bytes


def seal(parts: Sequence[Part], parameters: Parameters) -> list[bytes]:
    """Encrypt some words, each under a key of its own; all at once, which is quicker."""
    counts = [part.form.ciphertexts for part in parts]
    secrets = [part.secret for part, count in zip(parts, counts, strict=True) for _ in range(count)]
    first, seeds = coefficients.zeros(secrets, parameters)
    sizes, ends = [part.form.residues for part in parts], np.cumsum(counts)
    held, room = Coefficients(parameters), np.zeros(sum(sizes), dtype=np.uint64)
    zeros, at = np.empty_like(room), 0
    for part, size, count, end in zip(parts, sizes, counts, ends, strict=True):
        room[at : at + part.form.words] = part.words
        zeros[at : at + size] = first[end - count : end].reshape(-1)[:size]
        at += size
    room &= np.uint64((1 << parameters.word_bits) - 1)
    packed = wire.pack(held.add(held.encode(room), zeros), parameters)
    rows = np.split(packed, np.cumsum([size // wire.STEP for size in sizes])[:-1])
    return [
        part.form.write(part.key, seeds[end - count : end], row)
        for part, row, count, end in zip(parts, rows, counts, ends, strict=True)
    ]


def unseal(
    body: memoryview, form: WordForm, secrets: Sequence[bytes], key: Callable[[bytes], None]
) -> Words:
    """Words of a sum modulo 2^t.

    Parameters
    ----------
    body : memoryview
        Of `form.size` bytes.
    form : WordForm
        What it looks like on the wire.
    secrets : sequence of bytes
        What the secret keys of the contributors are made of, in the order of their names.
    key : callable
        Refuses a public name of keys that are not those of the sum.
    """
    found, seeds, packed = form.read(np.frombuffer(body, "<u8"))
    key(found)
    total = wire.unpack(packed, form.parameters)
    each = form.ciphertexts
    sealed = [
        (secret, seeds[number * each : (number + 1) * each])
        for number, secret in enumerate(secrets)
    ]
    held = Coefficients(form.parameters)
    return held.decode(coefficients.unseal(total, sealed, form.parameters))[: form.words]


def unseal_shared(
    body: memoryview, form: WordForm, secrets: Sequence[bytes], key: Callable[[bytes], None]
) -> Words:
    """The same for a sum that all open: members in one process, who hold one key, do it once."""
    about = (sha256(body).digest(), form, *secrets)
    known = _lately[0] if _lately else None
    if known is None or known[0] != about:
        known = about, unseal(body, form, secrets, key)
        _lately.append(known)
    return known[1].copy()


class WordAccumulator(KeyedAccumulator):
    """Running sums of words in ciphertexts; holds no key and needs none."""

    parameters: Parameters

    def __init__(self, header: Header, senders: Callable[[str], Sequence[str]]) -> None:
        # Residues are summed in 64 bits and reduced when so many are in a sum.
        self._most = (1 << 64) // self.parameters.modulus - 1
        self._seeds: dict[str, dict[str, list[bytes]]] = {}
        self._latest: list[list[bytes]] = []
        super().__init__(header, senders)

    @abstractmethod
    def form(self, this: Sum) -> WordForm:
        """Form of a contribution."""

    def _room(self, this: Sum) -> NDArray[Any]:
        return np.zeros(self.form(this).residues, dtype=np.uint64)

    def _words(self, this: Sum) -> int:
        return self.form(this).size // _WORD

    def _read(self, lines: Sequence[Line], parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        read = [self.form(line.sum).read(words) for line, words in zip(lines, parts, strict=True)]
        for line, (key, _, _) in zip(lines, read, strict=True):
            self._require_key(line, key)
        self._latest = [seeds for _, seeds, _ in read]
        residues = wire.unpack(np.concatenate([packed for _, _, packed in read]), self.parameters)
        ends = np.cumsum([self.form(line.sum).residues for line in lines])
        return np.split(residues, ends[:-1])

    def _absorb(self, line: Line, sender: str, words: NDArray[Any]) -> None:
        if line.added and len(line.added) % self._most == 0:
            line.total %= np.uint64(self.parameters.modulus)
        line.total += words
        self._seeds.setdefault(line.sum.recipient, {})[sender] = self._latest.pop(0)
        self._keep_key(line)

    def _sum_body(self, line: Line) -> bytes | memoryview:
        line.total %= np.uint64(self.parameters.modulus)
        drawn = self._seeds[line.sum.recipient]
        seeds = [seed for name in line.senders for seed in drawn[name]]
        packed = wire.pack(line.total, self.parameters)
        return self.form(line.sum).write(self._key_of(line), seeds, packed)


def require_key(found: bytes, expected: bytes, of: str) -> None:
    """Refuse a sum under other keys than those of its members."""
    if found != expected:
        raise ProtocolError(
            f"A sum of {of} is under other keys than those of the job; it is stale, misrouted or "
            "altered."
        )
