"""Methods without exchange: organisations train alone, and only counts and losses come back."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from flwr.app import RecordDict

from fedlap_app.flower.grids.member_grid import Member, MemberGrid
from fedlap_app.flower.records import numbers
from fedlap_app.flower.server.observer import Observer
from fedlap_app.flower.server.outcome import Outcome, StageScores
from fedlap_app.flower.server.replies import of, require_alone, require_rounds
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.flower.server.window import Window
from fedlap_app.flower.task import task_record
from fedlap_app.methods.base import Method
from fedlap_app.methods.scores import Layout, Scores, total, unpack_all
from fedlap_app.methods.task import Task


def train_alone(
    grid: MemberGrid,
    members: Sequence[Member],
    method: Method,
    folder: RunFolder,
    observer: Observer,
) -> Outcome:
    """Ask every member once; each keeps its own best validation round."""
    settings = method.settings
    content = RecordDict({"config": task_record(Task(grid.run.run_id))})
    replies = grid.ask(members, "train.alone", content, settings.step_timeout)
    layout = Layout.of(settings, members[0].classes)
    if settings.sealed:
        window = Window.of(settings, [*replies], grid.run.run_id)
        if window is None:
            for name, reply in replies.items():
                with of(name):
                    require_rounds(reply, settings.self_training + 1, settings.rounds)
            counts = [numbers(reply, "rounds") for reply in replies.values()]
            longest = [int(max(some)) for some in zip(*counts, strict=True)]
            return Outcome([StageScores(None, None, count, {}) for count in longest], None)
        replies = window.alone(replies)
    for name, reply in replies.items():
        with of(name):
            require_alone(reply, layout, settings.self_training + 1, settings.rounds)
    trained = {name: _stages(reply, layout) for name, reply in replies.items()}
    stages: list[StageScores] = []
    for stage in range(settings.self_training + 1):
        histories = [rows[stage].history for rows in trained.values()]
        rounds = max(len(history) for history in histories)
        for number in range(1, rounds + 1):
            # Who ended early keeps the scores of its last round.
            row = total([history[min(number, len(history)) - 1] for history in histories])
            folder.add_round({"stage": stage, "round": number, **row})
            count = (settings.self_training + 1) * settings.rounds
            observer.round_done(stage * settings.rounds + number, count, row)
        clients = {name: rows[stage].scores for name, rows in trained.items()}
        stages.append(StageScores(None, None, rounds, clients))
    return Outcome(stages, None)


@dataclass(frozen=True)
class _Stage:
    """One member's scores in a stage: of its best round and of every round."""

    scores: Scores
    history: Sequence[Scores]


def _stages(reply: RecordDict, layout: Layout) -> list[_Stage]:
    """The flat lists of a reply, cut into stages and rounds."""
    rounds = [int(count) for count in numbers(reply, "rounds")]
    scores, history = numbers(reply, "scores"), numbers(reply, "history")
    best, rows = (unpack_all(flat, layout) for flat in (scores, history))
    ends = list(itertools.accumulate(rounds))
    return [
        _Stage(best[stage], rows[end - count : end])
        for stage, (count, end) in enumerate(zip(rounds, ends, strict=True))
    ]
