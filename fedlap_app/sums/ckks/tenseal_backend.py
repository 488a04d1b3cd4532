"""The profile `tenseal-default` of the back end ckks: `ckks_vector` objects, for comparison.

Keys, pads, check slots and refusals are those of the other profiles, the ciphertexts are not: they
hold 4096 numbers in 336,000 bytes, and no upload is seeded.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.accumulator import Line
from fedlap_app.sums.backend import Sheet, StepWeights
from fedlap_app.sums.ckks import tenseal_contexts, tenseal_vectors, wire
from fedlap_app.sums.ckks.checks import SLOTS
from fedlap_app.sums.ckks.keyed import KeyedAccumulator
from fedlap_app.sums.ckks.pads import ResiduePads
from fedlap_app.sums.ckks.profiles import without_pads
from fedlap_app.sums.ckks.sealing import CiphertextBackend, Floats
from fedlap_app.sums.ckks.tenseal_parameters import TENSEAL_DEFAULT
from fedlap_app.sums.ckks.tenseal_vectors import VECTOR_BYTES
from fedlap_app.sums.header import Header, Place, Sum

_WORD = 8


class TensealBackend(CiphertextBackend):
    """Seal with `ckks_vector`, open with `decrypt`."""

    profiles: ClassVar[tuple[str, ...]] = (
        TENSEAL_DEFAULT.name,
        without_pads(TENSEAL_DEFAULT.name),
    )

    @property
    def weakness(self) -> str:
        """Warning for the start of a run."""
        profile = (
            f"The profile {TENSEAL_DEFAULT.name} is for comparison only: its messages are several "
            "times larger, and the server parses what clients send."
        )
        return " ".join(filter(None, (profile, super().weakness)))

    @classmethod
    def body_bytes(cls, profile: str, this: Sum, *, summed: bool) -> int:
        """Bytes of a sum or of one contribution to it, header not counted."""
        return wire.TAG_BYTES + _count(this) * VECTOR_BYTES

    @classmethod
    def new_public_key(cls, profile: str, seed: bytes) -> bytes:
        """Public key for the block sums of a member, drawn for a secret seed."""
        return tenseal_contexts.new_public_key(seed)

    @classmethod
    def public_key_bytes(cls, profile: str) -> int:
        """Bytes of such a key."""
        return tenseal_contexts.PUBLIC_KEY_BYTES

    def _count(self, this: Sum) -> int:
        return _count(this)

    def _body(self, sheet: Sheet, weights: StepWeights) -> memoryview:
        parts: list[bytes] = []
        place = sheet.header.place
        for this in sheet.header.sums:
            numbers = self._filled(sheet.rooms[this.recipient], this, place, weights)
            parts.append(wire.tag(TENSEAL_DEFAULT, wire.VECTORS, self._key_id(this.recipient)))
            pads = self._pads_of(this.recipient, place, len(numbers), weights.key)
            context = self._context(this.recipient)
            parts += [
                tenseal_vectors.encrypt(row, context, pad)
                for row, pad in zip(numbers, pads, strict=True)
            ]
        return memoryview(b"".join(parts))

    def _context(self, recipient: str) -> Any:  # noqa: ANN401 - tenseal has no types
        if recipient:
            return tenseal_contexts.encrypting(self._public_key(recipient))
        return tenseal_contexts.encrypting_for_all(self._group_seed)

    def _pads_of(
        self, recipient: str, place: Place, count: int, seen: bytes
    ) -> Sequence[NDArray[np.uint64] | None]:
        """Pads (primes, N) of every ciphertext."""
        if not self._padded:
            return [None] * count
        plus, minus = self._signs[recipient]
        degree = TENSEAL_DEFAULT.degree
        drawn = [
            pads.total(count * degree, place, recipient, add=plus, subtract=minus, seen=seen)
            for pads in self._pads
        ]
        return list(np.stack([each.reshape(count, degree) for each in drawn], axis=1))

    @cached_property
    def _pads(self) -> list[ResiduePads]:
        """Pads for each prime."""
        chosen = TENSEAL_DEFAULT
        return [
            ResiduePads(self.keys, modulus, modulus.bit_length(), f"residue pads {index}")
            for index, modulus in enumerate(chosen.moduli)
        ]

    def _open(self, body: memoryview, this: Sum, place: Place, weights: StepWeights) -> Floats:
        key, rooms = _rooms(bytes(body))
        self._require_key(key, this, place)
        context = tenseal_contexts.decrypting(self._secret_seed(this.recipient))
        return self._verified(tenseal_vectors.decrypt(rooms, context), this, weights)


class TensealAccumulator(KeyedAccumulator):
    """Running sums of `ckks_vector` objects in a context without any key."""

    def __init__(self, header: Header, senders: Callable[[str], Sequence[str]]) -> None:
        if header.profile not in TensealBackend.profiles:
            raise ProtocolError(
                f"There is no profile {header.profile!r} of the back end ckks; "
                f"choose one of {', '.join(TensealBackend.profiles)}."
            )
        super().__init__(header, senders)

    def _room(self, this: Sum) -> NDArray[Any]:
        return np.empty(_count(this), dtype=object)

    def _words(self, this: Sum) -> int:
        return TensealBackend.body_bytes("", this, summed=False) // _WORD

    def _read(self, lines: Sequence[Line], parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Vectors of all contributions of a member; anything else is refused."""
        found = []
        for line, words in zip(lines, parts, strict=True):
            key, rooms = _rooms(words.tobytes())
            self._require_key(line, key)
            vectors = np.empty(len(rooms), dtype=object)
            vectors[:] = [tenseal_vectors.read(room) for room in rooms]
            found.append(vectors)
        return found

    def _absorb(self, line: Line, sender: str, words: NDArray[Any]) -> None:
        for index, vector in enumerate(words):
            if line.added:
                line.total[index] += vector
            else:
                line.total[index] = vector
        self._keep_key(line)

    def _sum_body(self, line: Line) -> bytes | memoryview:
        tag = wire.tag(TENSEAL_DEFAULT, wire.VECTORS, self._key_of(line))
        return tag + b"".join(map(tenseal_vectors.write, line.total))


def _count(this: Sum) -> int:
    return TENSEAL_DEFAULT.ciphertexts(this.length + SLOTS)


def _rooms(body: bytes) -> tuple[bytes, list[bytes]]:
    """Key id, and the vectors with what they are filled up with."""
    key = wire.read_tag(body[: wire.TAG_BYTES], TENSEAL_DEFAULT, wire.VECTORS)
    starts = range(wire.TAG_BYTES, len(body), VECTOR_BYTES)
    return key, [body[start : start + VECTOR_BYTES] for start in starts]
