"""Mutated replies to a server whose clients are a recording."""

import os
import resource
import shutil
import signal
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from flwr.app import ConfigRecord, Context, Message, RecordDict

from client_app.app import app
from fedlap_app.errors import FedLapError
from fedlap_app.flower.client.answer import REFUSAL
from fedlap_app.flower.grids.local_grid import InProcessGrid, partition_configs
from fedlap_app.store import places

from .clients import SECONDS, Found
from .mutations import copy, mutated
from .runs import RUN, Recorded, play, settings_of

MEGABYTES = 500
_WENT_ON, _REFUSED, _FAULT = 0, 1, 2
Key = tuple[int, str, str]


def key_of(node: int, kind: str, content: RecordDict) -> Key:
    """What a message asks whom for."""
    named = content.get("own") or content.get("config") or {}
    facts = {key: value for key, value in named.items() if not isinstance(value, bytes)}
    facts.pop("version", None)
    return node, kind, repr(sorted(facts.items()))


class Replayed(InProcessGrid):
    """Gives the replies that clients gave once; before each it lets children take other ones."""

    def __init__(self, settings, known: Sequence[Recorded], count: int, rng: Random) -> None:
        super().__init__(app, partition_configs(settings.clients), settings.to_config(), run_id=RUN)
        self.found, self.settings = Found(), settings
        self._replies: dict[Key, list[RecordDict]] = {}
        for each in known:
            key = key_of(each.node, each.kind, each.sent)
            self._replies.setdefault(key, []).append(each.answered)
        self._known, self._rng = known, rng
        self._number, self._honest = count, 0
        self.is_child = False

    def _deliver(self, message: Message, context: Context) -> Message:
        kind = message.metadata.message_type
        left = self._replies.get(key_of(context.node_id, kind, message.content), [])
        if not left:  # the run has left the ways that were recorded
            refusal = ConfigRecord({"who": "nobody", "reason": "this was never asked"})
            return Message(RecordDict({REFUSAL: refusal}), reply_to=message)
        answered = left.pop(0) if len(left) > 1 else left[0]
        first, last = (self._number * (self._honest + more) // len(self._known) for more in (0, 1))
        self._honest += 1
        for _ in range(0 if self.is_child else last - first):
            other = self._other(answered)
            pid, told = _fork()
            if not pid:
                self.is_child = True
                return Message(other, reply_to=message)
            self._wait(pid, told, kind)
        return Message(copy(answered), reply_to=message)

    def _other(self, answered: RecordDict) -> RecordDict:
        draw = self._rng.random()
        if draw < 0.85:
            return mutated(answered, self._rng)
        other = self._rng.choice(self._known).answered
        return copy(other) if draw < 0.93 else mutated(other, self._rng)

    def _wait(self, pid: int, told: int, kind: str) -> None:
        """What became of a child."""
        with os.fdopen(told, "rb") as pipe:
            said = pipe.read().decode(errors="replace")
        _, status, usage = os.wait4(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        more = usage.ru_maxrss - resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if code == -signal.SIGALRM:
            said = f"no end within {SECONDS} s"
        elif more > 1024 * MEGABYTES:
            said = f"{more / 1024:.0f} MB more memory"
        elif code in (_WENT_ON, _REFUSED):
            self.found.outcomes["refused" if code == _REFUSED else "went on"] += 1
            return
        self.found.faults.append(f"reply to {kind}: {said or f'exit code {code}'}")


_pipe = -1


def _fork() -> tuple[int, int]:
    """A child that has ten seconds; its number and where it says what was wrong."""
    global _pipe
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, read
    os.close(read)
    _pipe = write
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS)
    return 0, -1


def attack_server(kind: str, folder: Path, known: Sequence[Recorded], count: int, seed: int):
    """Attack the server of a run of some kind; gives what was found."""
    # In the same second as the recording a folder of runs would have its name.
    settings = replace(settings_of(kind, folder), run_dir=str(folder / "replayed"))
    # What the server keeps for a run that goes on would be taken up by the next one.
    shutil.rmtree(places.home() / "checkpoints", ignore_errors=True)
    grid = Replayed(settings, known, count, Random(f"{kind} {seed}"))
    try:
        summary = play(settings, grid)
    except BaseException as error:
        if not grid.is_child:
            raise
        _leave(error)
    if grid.is_child:
        _leave(None)
    return grid.found, summary


def _leave(error: BaseException | None) -> None:
    """End a child."""
    if error is None or isinstance(error, FedLapError):
        os._exit(_WENT_ON if error is None else _REFUSED)
    told = "".join(traceback.format_exception(error))
    os.write(_pipe, f"{type(error).__name__} ended the run\n{told[-4000:]}".encode())
    os._exit(_FAULT)
