"""One-time pads of residues modulo q, which lie on the plaintexts inside of ciphertexts.

They cancel in the sum. A lone ciphertext, or any sum that lacks an honest sender, opens to residues
that are uniform, even for the owner of the key.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedlap_app.sums.header import Place
from fedlap_app.sums.keyring import KeyRing
from fedlap_app.sums.pads import CHUNK, EVERYONE, Stream, nonce_of

Words = NDArray[np.uint64]


class ResiduePads:
    """Zero-sum pads of one member.

    Parameters
    ----------
    keys : KeyRing
        Keys of the member.
    modulus, bits : int
        The prime q, and its bits.
    purpose : str
        Pads for different purposes have nothing in common.
    """

    def __init__(
        self, keys: KeyRing, modulus: int, bits: int, purpose: str = "residue pads"
    ) -> None:
        self._keys = keys
        self._purpose = purpose
        self._index = {name: index for index, name in enumerate(keys.members)}
        self._modulus = np.uint64(modulus)
        self._mask = np.uint64((1 << bits) - 1)
        self._at_once = (1 << 64) // modulus - 1
        self._streams: dict[tuple[str, str], Stream] = {}

    def total(
        self,
        count: int,
        place: Place,
        recipient: str,
        *,
        add: Sequence[str] = (),
        subtract: Sequence[str] = (),
        seen: bytes = b"",
    ) -> Words:
        """Sum modulo q of the pads shared with the named peers, those to subtract negated.

        Parameters
        ----------
        count : int
            Residues.
        place : Place
            Where the pads are used, once.
        recipient : str
            Whose sum it is; empty: everyone's.
        add, subtract : sequence of str
            Peers whose pad is added or subtracted.
        seen : bytes
            Mark of what all members have received before (default: nothing).
        """
        nonce = nonce_of(place, self._index[recipient] if recipient else EVERYONE, seen)
        plus = self._sum(count, place.phase, nonce, add)
        minus = self._sum(count, place.phase, nonce, subtract)
        # Both are below q.
        plus += self._modulus - minus
        np.minimum(plus, plus - self._modulus, out=plus)
        return plus

    def _sum(self, count: int, phase: str, nonce: bytes, peers: Sequence[str]) -> Words:
        total = np.zeros(count, dtype=np.uint64)
        for number, peer in enumerate(peers):
            # Sums of a few residues fit a word, so they are reduced seldom.
            if number and number % self._at_once == 0:
                total %= self._modulus
            self._add(total, self._stream(peer, phase, nonce))
        if len(peers) > 1:
            total %= self._modulus
        return total

    def _add(self, total: Words, stream: Stream) -> None:
        room = np.empty(min(total.size, CHUNK), dtype=np.uint64)
        for start in range(0, total.size, CHUNK):
            part = total[start : start + CHUNK]
            drawn = np.bitwise_and(stream.next(part.size), self._mask, out=room[: part.size])
            while drawn.max() >= self._modulus:
                # Drawn again, never reduced: every residue is equally likely.
                above = drawn >= self._modulus
                drawn[above] = stream.next(int(above.sum())) & self._mask
            part += drawn

    def _stream(self, peer: str, phase: str, nonce: bytes) -> Stream:
        """Words shared with a peer for one use."""
        stream = self._streams.get((peer, phase))
        if stream is None:
            stream = Stream(self._keys.pad_secret(peer, f"{self._purpose} {phase}"))
            self._streams[peer, phase] = stream
        stream.restart(nonce)
        return stream
