"""One training job at one member: it seals, opens, and goes on after any message.

A round goes: `seal` the change and the scores of the received model, `open` the sum of all, work
out the next state, and `settle` it. What leaves is stored before it leaves; the same question gets
the same bytes, and any other about an earlier turn is refused. Settling puts the sum, the member
list and a digest of the state into the chain under which the next turn is sealed.
"""

import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fedlap_app.errors import ProtocolError
from fedlap_app.store.job_files import JobFiles
from fedlap_app.store.packing import Data
from fedlap_app.sums.kdf import digest
from fedlap_app.sums.keyring import KeyRing
from fedlap_app.sums.lanes import PAIRS
from fedlap_app.sums.training.agreed import WEIGHT_SUM, Agreed, Limits, Turn, weights_place
from fedlap_app.sums.training.publication import Counts, counts_place, counts_shape, part
from fedlap_app.sums.training.records import Listed, Records, Settled
from fedlap_app.sums.training.sealing import Sealer
from fedlap_app.sums.training.shape import NOTHING, Floats, Named, SumShape
from fedlap_app.sums.transcript import Transcript

_hashed: "deque[tuple[Data, bytes]]" = deque(maxlen=2)
_lately: "dict[tuple[object, ...], RoundSum]" = {}


@dataclass(frozen=True, repr=False)
class RoundSum:
    """What the members of a job know after a turn, and nobody else; it is never sent.

    Attributes
    ----------
    mean
        Weighted mean of the changes; empty when the turn was about scores only.
    totals
        Scores of all contributors together.
    """

    mean: dict[str, Floats]
    totals: Floats


class TrainingJob:
    """One training job at one member.

    Parameters
    ----------
    keys
        Keys from the handshake of the job, the group key included.
    agreed
        What all members agree on.
    limits
        What this one allows.
    files
        Where the job is kept; the caller holds the lock of the store.
    data
        Fingerprint of what the member trains on. Training repeats itself on the same data, so that
        even a store that was set back seals no other content under the same pads.
    """

    def __init__(
        self, keys: KeyRing, agreed: Agreed, limits: Limits, files: JobFiles, data: str
    ) -> None:
        limits.require_enough(keys.members, agreed)
        self.keys, self.agreed, self.limits, self.data = keys, agreed, limits, data
        self._records = Records(files)
        self._sealer = Sealer(keys, agreed.backend)
        self._opened: tuple[Turn, bytes, RoundSum] | None = None

    @property
    def settled(self) -> Settled | None:
        """The last sum that was taken in; None: no stage has begun."""
        return self._records.settled

    @property
    def state(self) -> Data:
        """What was settled last."""
        return self._records.state

    def unchanged(self) -> bool:
        """Whether nobody else has written to the job since it was looked at."""
        return self._records.unchanged()

    @property
    def listed(self) -> Listed | None:
        """The member list in force."""
        return self._records.listed

    @property
    def last(self) -> Turn | None:
        """The turn that was sealed last."""
        return self._records.last

    @property
    def mark(self) -> bytes:
        """The same at all who have taken in the same sums and hold the same state.

        Nobody without the group key learns anything from it, but for who differs.
        """
        return self.keys.group_secret(f"training mark {self._settled.chain}")[:16]

    def begin(self, stage: int, state: Data) -> None:
        """Begin a stage from a state that all members have worked out alike."""
        self.agreed.require_planned(Turn(stage, 1, 0, ()))
        last = self.settled
        if last is not None and stage == last.stage:
            return
        following = 0 if last is None else last.stage + 1
        if stage != following:
            raise ProtocolError(
                f"Stage {stage} was to begin where stage {following} comes next; a message is "
                "stale or out of order."
            )
        before = self._settled.chain if last else digest(self.keys.job, self.agreed.digest).hex()
        chain = digest("training stage", stage, before, _sha(state))
        self._records.settle(Settled(stage, 0, chain.hex(), self.data), state)

    def weigh(self, attempt: int, members: Sequence[str], weight: float) -> Data:
        """Seal the own weight for the sum over a member list, which is in force from now on.

        Parameters
        ----------
        attempt
            Number of the list.
        members
            Who is on it.
        weight
            What the own change is weighted by.
        """
        settled, listed = self._settled, self._records.listed
        turn = Turn(settled.stage, 1, attempt, tuple(members))
        known = listed is not None and listed.is_of(turn)
        if known and listed is not None and listed.stage == turn.stage:
            return self._records.weighed
        if not known:
            self._require_listable(turn)
        self._require_on(turn)
        words = WEIGHT_SUM.encode({}, 0.0, [weight], len(turn.members))
        reply = self._sealer.seal(
            words, weights_place(turn.stage, attempt), turn.members, WEIGHT_SUM, settled.chain
        )
        listed = Listed(attempt, turn.members, turn.stage, weight, settled.chain)
        self._records.keep_list(listed, reply)
        return reply

    def take_weights(self, data: Data) -> None:
        """Open the sum of the weights of the list in force."""
        listed = self._listed
        place = weights_place(listed.stage, listed.number)
        words = self._sealer.open(data, place, listed.members, WEIGHT_SUM, listed.chain)
        total = float(WEIGHT_SUM.totals(words)[0])
        self.agreed.require_weights(total, listed.weight, listed.members)
        if not listed.total:
            self._records.keep_list(replace(listed, total=total), self._records.weighed)

    def stored(self, turn: Turn) -> Data | None:
        """The reply to a turn that was sealed before; None: it comes next, and it may."""
        self.agreed.require_planned(turn)
        if (reply := self._records.reply(turn)) is not None:
            return reply
        last = self._records.last
        if last is not None and turn.order <= last.order:
            raise ProtocolError(
                f"Attempt {turn.attempt} at round {turn.number} of stage {turn.stage} is stale or "
                f"was answered for other members: the last was attempt {last.attempt} at round "
                f"{last.number} of stage {last.stage}; go on from there."
            )
        self._require_next(turn)
        self._require_on(turn)
        listed = self._listed
        is_weighed = listed.total and listed.stage == turn.stage
        if not listed.is_of(turn) or not is_weighed:
            raise ProtocolError(
                f"Round {turn.number} came with member list {turn.attempt} where list "
                f"{listed.number} is in force, or before its weights were summed; sum them "
                "first."
            )
        return None

    def seal(
        self, turn: Turn, change: Named, scores: Sequence[float], before: Named = NOTHING
    ) -> Data:
        """Seal the own part of a turn; the same turn gets the same bytes.

        Parameters
        ----------
        turn
            What the server asks for.
        change
            What training did to every parameter; not looked at after the last round.
        scores
            Counts and losses of the received model.
        before
            The received model, if `change` is the trained one.
        """
        if (reply := self.stored(turn)) is not None:
            return reply
        shape, listed, chain = self._shape(turn), self._listed, self._settled.chain
        share, count = listed.weight / listed.total, len(turn.members)
        # Rounding follows from the turn, so that a process that is new rounds alike.
        lot = self.keys.group_secret(f"training lot {turn.order} {chain} {self.keys.me}")
        noise = self.agreed.noise if shape.tensors else None
        if noise is not None:
            share = noise.share(listed.weight, listed.total, count)
            change, before = noise.bounded(change, before, shape.tensors, share)
        words = shape.encode(change, share, scores, count, before, int.from_bytes(lot[:16]))
        if noise is not None:
            noise.add(words, shape, count, listed.total)
        total = repr(listed.total)
        sealed = self._sealer.seal(words, turn.place, turn.members, shape, chain, told=total)
        self._records.keep_reply(turn, sealed)
        return sealed

    def open(self, turn: Turn, data: Data) -> RoundSum:
        """Open the sum of a turn, also as one who was left out of it; `settle` follows.

        Members in one process unseal a sum once for all: the same words of the same job after the
        same chain hold the same.
        """
        self.agreed.require_planned(turn)
        self._require_next(turn)
        is_left_out, listed = self.keys.me not in turn.members, self._records.listed
        is_new = is_left_out and not (listed is not None and listed.is_of(turn))
        if is_new:
            self._require_listable(turn)
        elif not is_left_out and self._records.last != turn:
            raise ProtocolError(
                f"The sum of attempt {turn.attempt} at round {turn.number} came where another turn "
                "was sealed last; it is stale or misrouted."
            )
        received = _sha(data)
        key = (self.keys.job, self.keys.key_id, turn, self._settled.chain, received)
        found = _lately.get(key)
        if found is None:
            found = self._unsealed(turn, data)
            _lately.clear()
            _lately[key] = found
        if is_new:
            self._records.keep_list(Listed(turn.attempt, turn.members, turn.stage, 0.0, ""), b"")
        self._opened = turn, received, found
        return found

    def _shape(self, turn: Turn) -> SumShape:
        """Shape of the sum of a turn, with the scales that the sum before has left."""
        shape, scales = self.agreed.shape_of(turn), self._settled.scales
        is_narrow = shape.tensors and shape.lanes != PAIRS
        return shape.scaled(bytes.fromhex(scales)) if is_narrow else shape

    def _unsealed(self, turn: Turn, data: Data) -> RoundSum:
        shape = self._shape(turn)
        words = self._sealer.open(data, turn.place, turn.members, shape, self._settled.chain)
        shape.require_small(words, self.agreed.largest_step)
        return RoundSum(shape.mean(words), shape.totals(words))

    def tell(self, counts: Sequence[Counts | None]) -> Data:
        """The own part of what the server reads at the end of a stage, if all agree on it."""
        settled, listed = self._settled, self._listed
        words, told = part(counts, first=self.keys.me == listed.members[0])
        place, shape = counts_place(settled.stage, listed.number), counts_shape(len(counts))
        return self._sealer.share(words, told, place, listed.members, shape, settled.chain)

    @property
    def received(self) -> bytes:
        """Hash of the sum that was opened last and is not settled yet."""
        return self._opened[1] if self._opened else b""

    def is_settled(self, turn: Turn, data: Data) -> bool:
        """Whether just this sum was taken in last."""
        last = self.settled
        return last is not None and (last.stage, last.number, last.received) == (
            turn.stage,
            turn.number,
            _sha(data).hex(),
        )

    def settle(self, state: Data | None = None) -> None:
        """Take in the sum that was opened last, with the state after it (default: unchanged)."""
        if self._opened is None:
            raise ProtocolError("No sum was opened since the last was taken in.")
        turn, received, opened = self._opened
        kept = self.state if state is None else state
        told = Transcript(bytes.fromhex(self._settled.chain)).extend(received).digest
        chain = digest("training state", told, _sha(kept), *turn.members).hex()
        is_narrow = opened.mean and self.agreed.shape.lanes != PAIRS
        scales = self.agreed.shape.scales_after(opened.mean).hex() if is_narrow else ""
        after = Settled(turn.stage, turn.number, chain, self.data, received.hex(), scales)
        self._records.settle(after, kept)
        self._opened = None

    @property
    def _settled(self) -> Settled:
        if (found := self._records.settled) is None:
            raise ProtocolError("No stage of training has begun; begin the first.")
        if found.data != self.data:
            raise ProtocolError(
                f"The data of {self.keys.me!r} changed during job {self.keys.job}; start a new one."
            )
        return found

    @property
    def _listed(self) -> Listed:
        if (found := self._records.listed) is None:
            raise ProtocolError("The weights of no member list were summed; sum them first.")
        return found

    def _require_on(self, turn: Turn) -> None:
        if self.keys.me not in turn.members:
            raise ProtocolError(
                f"{self.keys.me!r} was left out of the member list, so it contributes no more in "
                "this job; it still takes the sums."
            )

    def _require_listable(self, turn: Turn) -> None:
        """Refuse a new member list that the rules do not allow."""
        if turn.members != tuple(sorted(set(turn.members))):
            raise ProtocolError("A member list is not sorted or names somebody twice.")
        listed = self._records.listed
        if listed is None and (turn.attempt, turn.members) == (0, self.keys.members):
            return
        last = (listed.members, listed.number) if listed else (self.keys.members, 0)
        self.limits.require_smaller(turn, *last, self.agreed)

    def _require_next(self, turn: Turn) -> None:
        """Refuse a turn that does not follow the one that was settled last."""
        last = self._settled
        scored = turn.number > max(self.agreed.rounds, last.number)
        if turn.stage == last.stage and (scored or turn.number == last.number + 1):
            return
        is_ahead = (turn.stage, turn.number) > (last.stage, last.number)
        reason = (
            "the message is out of order, or the store was set back: start a new run with "
            "resume = false"
            if is_ahead
            else "the message is stale or out of order"
        )
        raise ProtocolError(
            f"Round {turn.number} of stage {turn.stage} came where round {last.number} of "
            f"stage {last.stage} was settled last; {reason}."
        )


def _sha(data: Data) -> bytes:
    """Hash of some bytes; members in one process are handed the same ones."""
    for known, found in tuple(_hashed):
        if known is data and isinstance(data, bytes):
            return found
    found = hashlib.sha256(data).digest()
    _hashed.append((data, found))
    return found
