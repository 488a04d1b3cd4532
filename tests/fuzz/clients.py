"""Mutated messages to the clients of a run that goes on between them."""

import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from flwr.app import ConfigRecord, Context, Message, RecordDict

from client_app.app import app
from fedlap_app.flower.client.answer import REFUSAL, UNFORESEEN
from fedlap_app.flower.grids.local_grid import InProcessGrid, partition_configs
from fedlap_app.methods.kept import RATION

from .mutations import copy, mutated
from .runs import FIRST_NODE, RUN, Recorded, Snapshot, ending, forget, play, settings_of, silence

SECONDS = 10
HIDDEN = ("its data cannot be used", "its store cannot be used")
"""What an organisation says of its own files; no message may bring it to that."""


class HangError(BaseException):
    """A message took too long; nothing of the app may catch it."""


@contextmanager
def limited(seconds: int = SECONDS):
    """Raise when what follows takes too long."""

    def stop(number, frame):
        raise HangError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Found:
    """What mutated messages did.

    Attributes
    ----------
    outcomes
        How many were answered and how many refused.
    faults
        What went wrong, with a traceback where there is one.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


class Attacker(InProcessGrid):
    """Sends every client some mutated messages before each honest one.

    A refused message must leave nothing behind: the store stays as it is. What was answered may
    well have moved the run on, as a server that asks something else may do; it is undone.
    """

    def __init__(self, settings, known: Sequence[Recorded], count: int, rng: Random) -> None:
        super().__init__(app, partition_configs(settings.clients), settings.to_config(), run_id=RUN)
        self.found = Found()
        self._known, self._rng, self._root = known, rng, Path(settings.store_dir)
        self._number, self._honest = count, 0

    def _deliver(self, message: Message, context: Context) -> Message:
        first, last = (self._number * (self._honest + more) // len(self._known) for more in (0, 1))
        self._honest += 1
        before = Snapshot(self._root) if last > first else None
        for _ in range(first, last):
            with silence():
                answered = self._attack(message, context)
            if answered and before is not None and before.restore():
                forget()
        return super()._deliver(message, context)

    def _attack(self, message: Message, context: Context) -> bool:
        """One message that is not honest; whether it was answered."""
        content, kind = self._other(message)
        sent = Message(content, context.node_id, kind)
        sent.metadata._run_id = RUN  # as Flower's own grid does
        state, rations = copy(context.state), self._rations()
        try:
            with limited():
                reply = super()._deliver(sent, context)
        except HangError:
            self._fault(kind, f"no answer within {SECONDS} s")
            return True
        except Exception as error:
            self._fault(kind, f"{type(error).__name__} left the app: {error}")
            return True
        refusal = reply.content.get(REFUSAL)
        self.found.outcomes["answered" if refusal is None else "refused"] += 1
        if refusal is None:
            context.state = state
            return True
        reason = str(refusal["reason"])
        if UNFORESEEN in refusal or reason.startswith(HIDDEN):
            self._fault(kind, f"{reason}\n{self._details()}")
            return True
        return _tries_a_sum(content) or rations != self._rations()

    def _other(self, message: Message):
        """Content and type of a message that is not the one that comes next."""
        kind, draw = message.metadata.message_type, self._rng.random()
        if draw < 0.75:
            return mutated(message.content, self._rng), kind
        other = self._rng.choice(self._known)
        if draw < 0.85:  # out of order, repeated, or meant for another
            return copy(other.sent), other.kind
        if draw < 0.95:
            return mutated(other.sent, self._rng), other.kind
        return copy(other.sent), kind

    def _rations(self) -> list[bytes]:
        """What the organisations know of the models that they were asked about.

        One that is refused, as it does not fit, was asked about as well.
        """
        return [each.read_bytes() for each in sorted(self._root.rglob(RATION))]

    def _fault(self, kind: str, what: str) -> None:
        self.found.faults.append(f"{kind}: {what}")

    def _details(self) -> str:
        """The last error that the organisation wrote down for itself."""
        files = sorted(self._root.rglob("errors.log"), key=lambda each: each.stat().st_mtime)
        return files[-1].read_text()[-3000:] if files else ""


def _tries_a_sum(content: RecordDict) -> bool:
    """Whether a message holds a sum before training; one that is refused ends the job."""
    own = content.get("own")
    return isinstance(own, ConfigRecord) and str(own.get("asked")).startswith("sums")


def attack_clients(kind: str, folder: Path, known: Sequence[Recorded], count: int, seed: int):
    """Attack a run of some kind; gives what was found and how the run ended nevertheless."""
    settings = settings_of(kind, folder)
    grid = Attacker(settings, known, count, Random(f"{kind} {seed}"))
    summary = play(settings, grid)
    assert FIRST_NODE in grid.get_node_ids()
    return grid.found, ending(settings, summary)
