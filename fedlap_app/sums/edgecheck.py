"""Do two organisations list the same edges between them? Compared by keyed hashes.

Both first exchange a digest of the whole list under a key that only the two hold: it has one size,
which tells the server nothing. Only when the digests differ, and the run stops anyway, do they
exchange a hash of each edge to count. A partner can test whether an edge that it guesses is in the
other's list, which is no more than it learns from any protocol that compares.
"""

import hmac
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.kdf import derive, encode

_HASH_BYTES = 16

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Edges between two organisations, in a form that both sides arrive at.

    Attributes
    ----------
    first, second
        Ids of the nodes of the organisation whose name comes first and of the other, in order.
    ends
        (2, e) positions of the edges' ends in `first` and in `second`.
    against
        (e,) whether an edge runs from `second` to `first`; never when direction does not count.
    weights
        (e,) weights.
    """

    first: NDArray[np.str_]
    second: NDArray[np.str_]
    ends: Ints
    against: NDArray[np.bool_]
    weights: NDArray[np.float64]

    def digest(self, key: bytes) -> bytes:
        """Digest of the list, whatever its order, under a key that the pair uses for this only."""
        codes = 2 * (self.ends[0] * self.second.size + self.ends[1]) + self.against
        order = np.argsort(codes)
        if (np.diff(codes[order]) == 0).any():  # edges that are listed twice
            order = np.lexsort((self.weights, codes))
        content = encode(
            *_texts(self.first),
            *_texts(self.second),
            codes[order].astype("<i8").tobytes(),
            self.weights[order].astype("<f8").tobytes(),
        )
        return hmac.digest(key, content, "sha256")


def _texts(ids: NDArray[np.str_]) -> tuple[bytes, bytes]:
    """Lengths and letters: together they keep the ids apart."""
    listed = ids.tolist()
    return np.array([*map(len, listed)], dtype="<u4").tobytes(), "".join(listed).encode()


@dataclass(frozen=True)
class EdgeComparison:
    """Outcome of a comparison; `unmatched` are positions in one's own list, for the local log."""

    matched: int
    only_mine: int
    only_theirs: int
    unmatched: tuple[int, ...] = field(repr=False)


class EdgeHashes:
    """Keyed hashes of the edges that one organisation shares with one partner.

    Parameters
    ----------
    key : bytes
        From `KeyRing.pair_secret(partner, "edges")`.
    sources, targets : sequences of str
        Ids of both ends; an undirected edge is listed once, in either direction.
    weights : sequence of float
        Weights.
    directed : bool
        Whether the direction counts (default: False).
    """

    def __init__(
        self,
        key: bytes,
        sources: Sequence[str],
        targets: Sequence[str],
        weights: Sequence[float],
        *,
        directed: bool = False,
    ) -> None:
        secret = derive(key, "edge hashes", int(directed))
        base = blake2b(key=secret, digest_size=32)
        pack = struct.Struct("<d").pack
        self._hashes: list[bytes] = []
        for source, target, weight in zip(sources, targets, weights, strict=True):
            first, second = (source, target) if directed or source <= target else (target, source)
            keyed = base.copy()
            # The length of the first id keeps the two apart.
            keyed.update(f"{len(first)}:{first}{second}".encode() + pack(weight))
            self._hashes.append(keyed.digest())

    def hashes(self) -> bytes:
        """All hashes, sorted, so that their order says nothing about one's own."""
        return b"".join(sorted(each[:_HASH_BYTES] for each in self._hashes))

    def compare(self, theirs: bytes) -> EdgeComparison:
        """Compare with the partner's `hashes()`."""
        if len(theirs) % _HASH_BYTES:
            raise ProtocolError(
                f"A partner's edge hashes have {len(theirs)} bytes, no multiple of {_HASH_BYTES}; "
                "repeat the handshake."
            )
        left = Counter(theirs[i : i + _HASH_BYTES] for i in range(0, len(theirs), _HASH_BYTES))
        unmatched = []
        for position, each in enumerate(self._hashes):
            short = each[:_HASH_BYTES]
            if left[short] > 0:
                left[short] -= 1
            else:
                unmatched.append(position)
        mine = len(self._hashes)
        matched = mine - len(unmatched)
        others = len(theirs) // _HASH_BYTES - matched
        return EdgeComparison(matched, len(unmatched), others, tuple(unmatched))
