"""Seals one member's part of a training sum, and opens the sum.

All pads and check weights of a turn come from keys that depend on everything that its contributors
must agree on: the job, the stage, the round and the attempt, the member list, and the chain of all
sums and models so far; the pads between two also on the sum of the weights, by which both scale
their changes. Members that hold different models or were told different things have other pads,
which do not cancel: their sum opens to noise and is refused.
"""

import threading
from collections.abc import Sequence

from fedlap_app.errors import ProtocolError
from fedlap_app.sums import checks
from fedlap_app.sums.backend import StepWeights
from fedlap_app.sums.header import Header, Place, packed_part, require_equal
from fedlap_app.sums.kdf import digest
from fedlap_app.sums.keyring import KeyRing
from fedlap_app.sums.lanes import WHOLE
from fedlap_app.sums.pads import CHUNK, Stream, signed_partners
from fedlap_app.sums.training.covers import MASK, cover_of
from fedlap_app.sums.training.shape import NO_PARAMETERS, SumShape, Words

PROFILE = "training"
_GROUP = ""
_here = threading.local()


def list_hash(job_members: str, members: tuple[str, ...]) -> str:
    """Hash of a member list, which the server can make too.

    Parameters
    ----------
    job_members
        Hash of all members of the job.
    members
        Those on the list.
    """
    return digest("training members", job_members, *members)[:16].hex()


class Sealer:
    """What one member does with the sums of a training job.

    Parameters
    ----------
    keys
        Keys of the member, the group key included.
    backend
        What hides sums from the server.
    """

    def __init__(self, keys: KeyRing, backend: str = MASK) -> None:
        self.keys = keys
        self._backend, self._cover = backend, cover_of(backend)(keys)

    def header(
        self, place: Place, members: tuple[str, ...], shape: SumShape, backend: str = ""
    ) -> Header:
        """Header of a sum."""
        listed = list_hash(self.keys.members_hash, members)
        about = (backend or self._backend, PROFILE, self.keys.job, listed, self.keys.key_id)
        return Header(*about, *place, 0, (shape.summed(len(members)),))

    def seal(
        self,
        words: Words,
        place: Place,
        members: tuple[str, ...],
        shape: SumShape,
        chain: str,
        *,
        told: str = "",
    ) -> bytes:
        """Seal words in place; gives them behind their header.

        `told` is what contributors alone agree on, as who only opens sums may not know it: the pads
        between two of them depend on it.
        """
        header = self.header(place, members, shape)
        context = _context(header, members, chain)
        weights = self._check_weights(context)
        drawn = _drawn(weights.key)
        checks.fill(drawn, weights.ones[_GROUP], words, shape.narrow, shape.lanes)
        plus, minus = signed_partners(self.keys.me, members)
        if self._cover.group_pad and self.keys.me == members[0]:
            plus.append(_GROUP)
        self._pad(words, shape, context, plus, minus, told)
        sealed = self._cover.seal(words, shape, len(members))
        return b"".join((header.of(self.keys.me).pack(), sealed))

    def open(
        self,
        data: bytes | memoryview,
        place: Place,
        members: tuple[str, ...],
        shape: SumShape,
        chain: str,
    ) -> Words:
        """Words of a sum, checked; anything else is refused with its reason."""
        header = self.header(place, members, shape)
        packed = header.pack()
        if packed_part(data) != packed:
            require_equal(Header.unpack(data)[0], header)
        body = memoryview(data)[len(packed) :]
        expected = self._cover.body_bytes(shape, len(members))
        if len(body) != expected:
            raise ProtocolError(
                f"A sum of {len(body)} bytes came where {expected} were expected; "
                "it was cut or altered."
            )
        words = self._cover.open(body, shape, len(members))
        if not shape.lanes.unused(words[: shape.narrow]):
            raise ProtocolError("A sum has bits where no number is; it was altered.")
        context = _context(header, members, chain)
        if self._cover.group_pad:
            self._pad(words, shape, context, [], [_GROUP])
        weights = self._check_weights(context)
        drawn = _drawn(weights.key)
        checks.verify(drawn, weights.ones[_GROUP], words, len(members), shape.narrow, shape.lanes)
        return words

    def share(
        self,
        words: Words,
        told: Sequence[slice],
        place: Place,
        members: tuple[str, ...],
        shape: SumShape,
        chain: str,
    ) -> bytes:
        """Pad some words in place so that whoever adds those of all members reads their sum."""
        header = self.header(place, members, shape, MASK)
        context = _context(header, members, chain)
        plus, minus = signed_partners(self.keys.me, members)
        for part in told:
            self._pad(words[part], NO_PARAMETERS, f"{context} {part.start}", plus, minus)
        return b"".join((header.of(self.keys.me).pack(), words.data))

    def _check_weights(self, context: str) -> StepWeights:
        about = self.keys.group_secret(f"training checks {context}")
        return StepWeights.draw(about, (_GROUP,))

    def _pad(
        self,
        words: Words,
        shape: SumShape,
        context: str,
        plus: list[str],
        minus: list[str],
        told: str = "",
    ) -> None:
        """Add the pads shared with some, and take off those shared with others."""
        purpose = f"training pads {context}"
        streams = [
            (Stream(self.keys.pad_secret(peer, f"{purpose} {told}" if peer else purpose)), signed)
            for peers, signed in ((plus, True), (minus, False))
            for peer in peers
        ]
        for part, lanes in ((words[: shape.narrow], shape.lanes), (words[shape.narrow :], WHOLE)):
            combine = lanes.subtract, lanes.add
            for start in range(0, part.size, CHUNK):
                chunk = part[start : start + CHUNK]
                for stream, signed in streams:
                    combine[signed](chunk, stream.next(chunk.size))


def _drawn(key: bytes) -> checks.Weights:
    """Weights of the values of a sum; members in one process draw the same ones once."""
    found: checks.Weights | None = getattr(_here, "weights", None)
    if found is None:
        found = _here.weights = checks.Weights()
    return found.use(key)


def _context(header: Header, members: tuple[str, ...], chain: str) -> str:
    """Everything that the contributors to a sum must agree on."""
    return digest("training sum", header.pack(), chain, *members).hex()
