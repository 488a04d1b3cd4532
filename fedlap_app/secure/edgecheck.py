"""Do two organisations list the same edges between them? Compared by keyed hashes.

Both hash each edge under a key that only the two hold. They first exchange a digest of constant
size, which tells the server nothing; only when the digests differ, and the run stops anyway, do
they exchange the hashes themselves to count. A partner can test whether an edge that it guesses is
in the other's list, which is no more than it learns from any protocol that compares.
"""

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from fedlap_app.errors import ProtocolError
from fedlap_app.secure.kdf import derive

_HASH_BYTES = 16
_MODULUS = 1 << 256


@dataclass(frozen=True)
class EdgeComparison:
    """Outcome of a comparison; `unmatched` are positions in one's own list, for the local log."""

    matched: int
    only_mine: int
    only_theirs: int
    unmatched: tuple[int, ...] = field(repr=False)

    @property
    def agrees(self) -> bool:
        """Whether both lists are the same."""
        return not self.only_mine and not self.only_theirs


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

    def digest(self) -> bytes:
        """Digest of the multiset, of one size whatever the number of edges."""
        total = sum(int.from_bytes(each, "little") for each in self._hashes) % _MODULUS
        return total.to_bytes(32, "little") + len(self._hashes).to_bytes(8, "little")

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
