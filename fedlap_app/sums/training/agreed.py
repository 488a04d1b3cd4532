"""What all members of a training job agree on, and what each of them allows by itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fedlap_app.errors import ConsentError, ProtocolError
from fedlap_app.sums.header import Place
from fedlap_app.sums.kdf import digest
from fedlap_app.sums.training.covers import MASK
from fedlap_app.sums.training.noise import Noise
from fedlap_app.sums.training.shape import SCORE_BITS, SumShape

WEIGHTS = "training weights"
WEIGHT_SUM = SumShape((), 1)
LAST, KEPT = 1, 2
"""Sums of scores after the last round: of the model that it left, and of the one that is kept."""


def weights_place(stage: int, attempt: int) -> Place:
    """Place of the sum of the weights of one member list in a stage."""
    return Place(f"{WEIGHTS} {stage}", attempt)


class Turn(NamedTuple):
    """One sum that the server asks for.

    Attributes
    ----------
    stage, number
        Stage of self-training, and round in it; the numbers after the last round are sums of
        scores only.
    attempt
        Number of the member list: a smaller list is another attempt.
    members
        The list, sorted.
    """

    stage: int
    number: int
    attempt: int
    members: tuple[str, ...]

    @property
    def place(self) -> Place:
        """Place in the protocol."""
        return Place(f"training {self.stage}", self.number, self.attempt)

    @property
    def order(self) -> tuple[int, int, int]:
        """What grows from turn to turn."""
        return self[:3]


@dataclass(frozen=True)
class Agreed:
    """Settings of the job that all members must share.

    Attributes
    ----------
    run
        Digest of all settings of the run.
    shape
        What a round's sum holds.
    stages, rounds
        How many there are at most.
    largest_step
        Norm that no mean change may pass.
    min_clients
        Members without whom nothing is summed.
    noise
        Clipping and noise of every change; None: there is none.
    largest_weight
        What no weight may pass; 0: no limit.
    backend
        What hides sums from the server; the settings of the run have it, too.
    """

    run: str
    shape: SumShape
    stages: int
    rounds: int
    largest_step: float
    min_clients: int = 0
    noise: Noise | None = None
    largest_weight: float = 0.0
    backend: str = MASK

    @property
    def digest(self) -> bytes:
        """Hash of all of it."""
        facts = (self.stages, self.rounds, self.min_clients, repr(self.largest_step))
        noise = () if self.noise is None else (repr(self.noise),)
        capped = (repr(self.largest_weight),) if self.largest_weight else ()
        return digest("training job", self.run, self.shape.digest, *facts, *noise, *capped)

    def shape_of(self, turn: Turn) -> SumShape:
        """What the sum of a turn holds."""
        if turn.number <= self.rounds:  # scales of narrow numbers follow from the sum before
            return self.shape.wide if turn.number == 1 else self.shape
        return self.shape.without_parameters

    def require_weights(self, total: float, own: float, members: Sequence[str]) -> None:
        """Refuse a sum of the weights of some members that cannot be theirs.

        Sums hide single weights: one that is too large shows as far as the others leave no room.
        """
        room = len(members) * 2.0**-SCORE_BITS
        if not total > 0:
            raise ProtocolError("The members have nothing to train on; label some nodes.")
        if total < own - room:
            raise ProtocolError(
                "The weights of all members together are below the own one; they were altered."
            )
        if self.largest_weight and total > len(members) * self.largest_weight + room:
            raise ProtocolError(
                f"The weights of {len(members)} members together are above {len(members)} times "
                f"largest-weight = {self.largest_weight:g}; one of them counts for more than was "
                "agreed, or runs another release: find out who, and start a new run without it."
            )

    def require_planned(self, turn: Turn) -> None:
        """Refuse what was not agreed."""
        if not (0 <= turn.stage < self.stages and 1 <= turn.number <= self.rounds + KEPT):
            raise ProtocolError(
                f"Round {turn.number} of stage {turn.stage} is beyond rounds = {self.rounds} and "
                f"stages = {self.stages} that were agreed; start a new run."
            )


@dataclass(frozen=True)
class Limits:
    """What an organisation allows in any training job.

    Attributes
    ----------
    fewest
        Members without whom nothing is summed: of a sum of two, each learns the other's update.
    list_changes
        How often the member list may become smaller; None: no limit.
    least_published
        Nodes of a split, of all members together, below which its score is not released.
    """

    fewest: int = 3
    list_changes: int | None = 2
    least_published: int = 50

    def require_enough(self, members: Sequence[str], agreed: Agreed) -> None:
        """Refuse a sum of too few."""
        least = max(agreed.min_clients, self.fewest)
        if len(members) >= least:
            return
        remedy = (
            "lower min-clients, or let the policy of every organisation allow two (two-members = "
            "true in [policy])"
        )
        if self.fewest > 3:
            remedy = f"or let it lower least-members = {self.fewest} in its [policy]"
        raise ConsentError(
            f"a training sum of {len(members)} members was asked for and {least} are the fewest: "
            f"wait for the others, {remedy}"
        )

    def require_smaller(self, turn: Turn, last: Sequence[str], number: int, agreed: Agreed) -> None:
        """Refuse a member list that is not a smaller one than the last, or one too many."""
        if self.list_changes is not None and turn.attempt > self.list_changes:
            raise ConsentError(
                f"the member list was to change for the {turn.attempt}th time and the policy "
                f"allows {self.list_changes} (list-changes): start a new run"
            )
        if back := [name for name in turn.members if name not in last]:
            raise ProtocolError(
                f"The member list names {back[0][:100]!r}, which is no member or was left out "
                "before; who was left out contributes no more in this job."
            )
        if turn.attempt <= number or len(turn.members) == len(last):
            raise ProtocolError(
                f"Member list {turn.attempt} with {len(turn.members)} members came after list "
                f"{number} with {len(last)}; a list is only changed for a smaller one."
            )
        self.require_enough(turn.members, agreed)
