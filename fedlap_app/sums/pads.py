"""One-time pads of uint64 words, shared by pairs of members or by the whole group.

A pad is the AES-256-CTR key stream at a nonce that encodes (step, attempt, recipient) and what the
members have received before, under a key derived from (pair key, group key, job, phase). The
encoding of the place is one to one, so two different uses never get the same pad; a member that
goes through a step again after other sums, from a backup of its store, draws another one. Of the
two senders k < l of a pair, k adds the pad and l subtracts it.
"""

import struct
import threading
from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.header import Place
from fedlap_app.sums.keyring import KeyRing

EVERYONE = 0xFFFF
CHUNK = 8192  # words a step: chunk, key stream and zeros together stay in a core's cache
_ZEROS = memoryview(bytes(8 * CHUNK))
_BLOCK = 16
_SEEN_BYTES = 4


def nonce_of(place: Place, target: int, seen: bytes) -> bytes:
    """Start of a pad's key stream, which counts in its last 4 bytes.

    Parameters
    ----------
    place : Place
        Where the pad is used.
    target : int
        Number of the recipient.
    seen : bytes
        Mark of what all members have received before; its first 4 bytes count.
    """
    mark = seen[:_SEEN_BYTES]
    return struct.pack(f">IHH{_SEEN_BYTES}sI", place.step, place.attempt, target, mark, 0)


class Stream:
    """Pseudo-random words under one key.

    Parameters
    ----------
    key : bytes
        32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = _counter_mode(key)
        self._buffer = _new_buffer()

    def restart(self, nonce: bytes) -> None:
        """Go to the words of a nonce of 16 bytes, whose last four count and must be 0."""
        self._cipher.reset_nonce(nonce)

    def next(self, count: int) -> NDArray[np.uint64]:
        """Next words, at most `CHUNK`; valid until the next call."""
        self._cipher.update_into(_ZEROS[: 8 * count], self._buffer)
        return np.frombuffer(self._buffer, "<u8", count)


def _counter_mode(key: bytes) -> CipherContext:
    return Cipher(algorithms.AES(key), modes.CTR(bytes(_BLOCK))).encryptor()


def _new_buffer() -> bytearray:
    """Room for one chunk of words, and what the cipher wants behind it."""
    return bytearray(8 * CHUNK + _BLOCK)


class Pads:
    """Adds the pads of one member's contributions and takes them off sums.

    Parameters
    ----------
    keys : KeyRing
        Keys of the member, the group key included.
    """

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys
        self._ciphers: dict[tuple[str, str], CipherContext] = {}
        self._index = {name: index for index, name in enumerate(keys.members)}
        self._buffer = _new_buffer()
        self._words = np.frombuffer(self._buffer, "<u8", CHUNK)
        self._lock = threading.Lock()

    def change(
        self,
        words: NDArray[np.uint64],
        place: Place,
        recipient: str,
        *,
        add: Sequence[str] = (),
        subtract: Sequence[str] = (),
        seen: bytes = b"",
    ) -> None:
        """Add and subtract in place the pads shared with the named peers; "" is the group.

        Parameters
        ----------
        words : array of uint64
            Numbers modulo 2^64.
        place : Place
            Where the pads are used, once.
        recipient : str
            Whose sum it is; empty: everyone's.
        add, subtract : sequence of str
            Peers whose pad is added or subtracted.
        seen : bytes
            Mark of what all members have received before (default: nothing).
        """
        target = self._index[recipient] if recipient else EVERYONE
        nonce = nonce_of(place, target, seen)
        # Ciphers are kept and have a position, so two threads must not use them at once.
        with self._lock:
            plus = [self._cipher(peer, place.phase, nonce) for peer in add]
            minus = [self._cipher(peer, place.phase, nonce) for peer in subtract]
            for start in range(0, words.size, CHUNK):
                chunk = words[start : start + CHUNK]
                zeros, pad = _ZEROS[: chunk.nbytes], self._words[: chunk.size]
                for cipher in plus:
                    cipher.update_into(zeros, self._buffer)
                    np.add(chunk, pad, out=chunk)
                for cipher in minus:
                    cipher.update_into(zeros, self._buffer)
                    np.subtract(chunk, pad, out=chunk)

    def _cipher(self, peer: str, phase: str, nonce: bytes) -> CipherContext:
        """Key stream shared with a peer (or the group) in one phase, at a nonce."""
        cipher = self._ciphers.get((peer, phase))
        if cipher is None:
            secret = self._keys.pad_secret(peer, f"pads {phase}")
            cipher = self._ciphers[peer, phase] = _counter_mode(secret)
        cipher.reset_nonce(nonce)
        return cipher


def signed_partners(me: str, senders: Sequence[str]) -> tuple[list[str], list[str]]:
    """Senders of a sum whose pad `me` adds, and those whose pad it subtracts.

    Every pair shares a pad, so that a sum that lacks one honest member shows nothing of the others
    as long as two are left, whoever else took part.
    """
    return [peer for peer in senders if me < peer], [peer for peer in senders if peer < me]


class PadLedger:
    """Remembers what each pad was used for in this process and refuses a second use.

    Sealing the same content again is allowed, since it gives the same bytes. What outlives the
    process is the store's part: a reply is stored before it leaves, and sent again as it was.
    """

    def __init__(self) -> None:
        self._used: dict[tuple[Place, str], bytes] = {}

    def claim(self, place: Place, recipient: str, content: bytes) -> None:
        """Note the use of the pads of a place for a recipient.

        Parameters
        ----------
        place : Place
            Where the pads are used.
        recipient : str
            Whose sum it is.
        content : bytes
            A digest of what is sealed.
        """
        if self._used.setdefault((place, recipient), content) != content:
            raise ProtocolError(
                f"The pads of {place} for {recipient or 'all'!r} were used for other content; "
                "a pad is used once, so raise the attempt or start a new job."
            )
