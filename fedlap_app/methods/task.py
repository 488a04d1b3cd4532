"""What a message of the training phase asks an organisation to work on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

_STAGE = 1_000_000  # more than the rounds of a stage


class Late(IntEnum):
    """Messages of a stage that come after its rounds, by their places among the steps."""

    EVALUATE = _STAGE - 2
    KEEP = _STAGE - 1


@dataclass(frozen=True)
class Task:
    """Run and stage of a message, and what the model reads.

    Attributes
    ----------
    run : int
        Number of the run, under which the organisation keeps what it needs later.
    stage : int
        0, or the number of guessed label sets that the organisation has made so far.
    found : mapping of str to str
        Programs that ran before training, and the job in which each did.
    """

    run: int
    stage: int = 0
    found: Mapping[str, str] = field(default_factory=dict)

    def step(self, number: int) -> int:
        """Place among all messages of the run: of a round of the stage, or of a `Late` one."""
        return self.stage * _STAGE + number
