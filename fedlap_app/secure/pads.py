"""One-time pads of uint64 words, shared by pairs of members or by the whole group.

A pad is the AES-256-CTR key stream at a nonce that encodes (step, attempt, recipient), under a key
derived from (pair key or group key, job, phase). The encoding is one to one, so two different
uses never get the same pad. Of the two senders k < l of a pair, k adds the pad and l subtracts it.
"""

import hashlib
import hmac
import math
import struct
import threading
from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.secure.header import Place
from fedlap_app.secure.keyring import KeyRing

EVERYONE = 0xFFFF
ALL_PAIRS_UP_TO = 20
CHUNK = 4096  # words a step: chunk, key stream and zeros together stay in a core's cache
_ZEROS = memoryview(bytes(8 * CHUNK))
_BLOCK = 16


class Stream:
    """Pseudo-random words under one key, from the start of one nonce on.

    Parameters
    ----------
    key : bytes
        32 bytes.
    buffer : bytearray, optional
        From `Stream.new_buffer`, for streams that take turns (default: a buffer of its own).
    """

    def __init__(self, key: bytes, buffer: bytearray | None = None) -> None:
        self._context: CipherContext = Cipher(
            algorithms.AES(key), modes.CTR(bytes(_BLOCK))
        ).encryptor()
        self._buffer = self.new_buffer() if buffer is None else buffer
        self._words = np.frombuffer(self._buffer, "<u8", CHUNK)

    @staticmethod
    def new_buffer() -> bytearray:
        """Room for one chunk of words."""
        return bytearray(8 * CHUNK + _BLOCK)

    def seek(self, nonce: bytes) -> "Stream":
        """Go to the first word at a nonce of 8 bytes."""
        self._context.reset_nonce(nonce.ljust(_BLOCK, b"\0"))
        return self

    def next(self, count: int) -> NDArray[np.uint64]:
        """Next words, at most `CHUNK`; valid until the buffer is used again."""
        self._context.update_into(_ZEROS[: 8 * count], self._buffer)
        return self._words[:count]


class Pads:
    """Adds the pads of one member's contributions and takes them off sums.

    Parameters
    ----------
    keys : KeyRing
        Keys of the member, the group key included.
    """

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys
        self._streams: dict[tuple[str, str], Stream] = {}
        self._index = {name: index for index, name in enumerate(keys.members)}
        self._buffer = Stream.new_buffer()
        self._lock = threading.Lock()

    def change(
        self,
        words: NDArray[np.uint64],
        place: Place,
        recipient: str,
        *,
        add: Sequence[str] = (),
        subtract: Sequence[str] = (),
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
        """
        target = self._index[recipient] if recipient else EVERYONE
        nonce = struct.pack(">IHH", place.step, place.attempt, target)
        # Streams are kept and have a position, so two threads must not use them at once.
        with self._lock:
            plus = [self._stream(peer, place.phase).seek(nonce) for peer in add]
            minus = [self._stream(peer, place.phase).seek(nonce) for peer in subtract]
            for start in range(0, words.size, CHUNK):
                chunk = words[start : start + CHUNK]
                for stream in plus:
                    np.add(chunk, stream.next(chunk.size), out=chunk)
                for stream in minus:
                    np.subtract(chunk, stream.next(chunk.size), out=chunk)

    def _stream(self, peer: str, phase: str) -> Stream:
        """Stream shared with a peer (or the group) in one phase."""
        if (peer, phase) not in self._streams:
            purpose = f"pads {phase}"
            secret = (
                self._keys.pair_secret(peer, purpose) if peer else self._keys.group_secret(purpose)
            )
            self._streams[peer, phase] = Stream(secret, self._buffer)
        return self._streams[peer, phase]


def pad_partners(me: str, senders: Sequence[str], seed: bytes) -> tuple[str, ...]:
    """Senders with whom `me` shares zero-sum pads in the sum of these senders.

    Up to 20 senders everyone shares a pad with everyone. Beyond, all put themselves on a circle in
    an order that hashes under the seed decide, and share pads with the ceil(log2 K) next on both
    sides: at least 2 log2 K partners each, and a graph that stays connected until as many drop out.

    Parameters
    ----------
    me : str
        One of the senders.
    senders : sequence of str
        All senders of the sum, in any order.
    seed : bytes
        Known to all senders and not to the server.
    """
    if len(senders) <= ALL_PAIRS_UP_TO:
        return tuple(sorted(set(senders) - {me}))
    circle = sorted(senders, key=lambda name: hmac.digest(seed, name.encode(), hashlib.sha256))
    at = circle.index(me)
    reach = math.ceil(math.log2(len(senders) + 1))
    near = {circle[(at + step) % len(circle)] for step in range(-reach, reach + 1)}
    return tuple(sorted(near - {me}))


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
