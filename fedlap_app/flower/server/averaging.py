"""Training together: Flower's strategy, the best validation round kept, stages of self-training."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from flwr.app import ArrayRecord, RecordDict

from fedlap_app.flower.grids.member_grid import Member, MemberGrid, Quorum
from fedlap_app.flower.records import from_arrays, numbers, to_arrays
from fedlap_app.flower.server.observer import Observer
from fedlap_app.flower.server.outcome import Outcome, StageScores
from fedlap_app.flower.server.rows import Luggage, NoLuggage
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.flower.server.strategies import member_strategy
from fedlap_app.flower.task import Task
from fedlap_app.methods.scores import Best, is_better, total, unpack, unpack_all
from fedlap_app.models.specs import FEATURE_WEIGHT, FEATURE_WEIGHTS
from fedlap_app.seeds import stage_seed
from fedlap_app.settings import Settings


class EnoughRounds(Exception):  # noqa: N818 - not an error
    """No round was better than the best one for too long."""


@dataclass
class Progress:
    """Scores of the rounds of one stage so far and the model of the best one.

    The replies of round r score the model that round r received, which is the global model of
    round r - 1: one round trip a round instead of two.
    """

    settings: Settings
    stage: int
    folder: RunFolder
    observer: Observer
    luggage: Luggage
    best: Best
    best_arrays: ArrayRecord = field(default_factory=ArrayRecord)
    best_luggage: object = None
    rounds: int = 0
    started: float = field(default_factory=time.perf_counter)

    def replied(self, number: int, sent: ArrayRecord, replies: Sequence[RecordDict]) -> None:
        """Take in the scores of the model that was sent; end the training when it is enough."""
        if number > 1:
            self.scored(number - 1, sent, replies)
            if self.best.is_enough(number - 1):
                raise EnoughRounds

    def scored(self, number: int, arrays: ArrayRecord, replies: Sequence[RecordDict]) -> None:
        """Take in how the global model of a round scored at the clients."""
        weight, totals = _best_weight(replies)
        if self.best.takes(number, totals):
            self.best_arrays, self.best_luggage = arrays, self.luggage.snapshot()
            if self.settings.weighted and FEATURE_WEIGHT in arrays:
                self.best_arrays = with_weight(arrays, weight)
        self.rounds = number
        row = {"stage": self.stage, "round": number, **totals}
        if self.settings.weighted:
            row["feature_weight"] = weight
        self.folder.add_round({**row, "seconds": time.perf_counter() - self.started})
        stages, rounds = self.settings.self_training + 1, self.settings.rounds
        self.observer.round_done(self.stage * rounds + number, stages * rounds, totals)


def _best_weight(replies: Sequence[RecordDict]) -> tuple[float, dict[str, float]]:
    """The weight of the feature model that validates best, and the totals with it."""
    clients = [unpack_all(numbers(reply, "scores")) for reply in replies]
    choices = [total(scores) for scores in zip(*clients, strict=True)]
    chosen = 0
    for number, totals in enumerate(choices):
        # Without validation nodes nothing speaks for another weight than the first.
        if not math.isnan(totals["val_accuracy"]) and is_better(totals, choices[chosen]):
            chosen = number
    return FEATURE_WEIGHTS[chosen], choices[chosen]


def with_weight(arrays: ArrayRecord, weight: float) -> ArrayRecord:
    """The same model with a weight of its feature model."""
    chosen = to_arrays({FEATURE_WEIGHT: np.array([weight], dtype=np.float32)})
    return ArrayRecord({**arrays, **chosen})


def run_fedavg(
    grid: MemberGrid,
    members: Sequence[Member],
    settings: Settings,
    folder: RunFolder,
    observer: Observer,
    basis: str,
    luggage: Luggage | None = None,
) -> Outcome:
    """Train together in every stage and leave the best model so far with every member.

    A stage that validates worse than an earlier one changes nothing but the scores of its rounds.
    """
    luggage = luggage or NoLuggage()
    if settings.min_clients:
        grid.quorum = Quorum(settings.min_clients, settings.straggler_timeout)
    stages: list[StageScores] = []
    kept: Progress | None = None
    for stage in range(settings.self_training + 1):
        task = Task(grid.run.run_id, stage, basis)
        luggage.restart(stage_seed(settings.seed, stage))
        progress = Progress(settings, stage, folder, observer, luggage, Best(settings.patience))
        _train(grid, members, settings, task, progress)
        if kept is None or progress.best.is_ahead_of(kept.best):
            kept = progress
        clients = _leave_best(grid, members, settings, task, kept)
        stages.append(StageScores(kept.stage, kept.best.round, progress.rounds, clients))
    assert kept is not None
    return Outcome(stages, from_arrays(kept.best_arrays), basis)


def initial_model(member: Member, settings: Settings) -> ArrayRecord:
    """The first global model, the same for the same seed."""
    from fedlap_app.methods.fedlap_plus import method_model
    from fedlap_app.methods.fedlap_rows import without_rows
    from fedlap_app.models.parameters import parameters_of

    model = method_model(settings, member.features, member.classes)
    return to_arrays(without_rows(parameters_of(model)))


def _train(
    grid: MemberGrid,
    members: Sequence[Member],
    settings: Settings,
    task: Task,
    progress: Progress,
) -> None:
    """Run the rounds of one stage and score the last model."""
    seeded = replace(settings, seed=stage_seed(settings.seed, task.stage))
    strategy = member_strategy(settings, members, progress, progress.luggage)
    try:
        result = strategy.start(
            grid=grid,
            initial_arrays=initial_model(members[0], seeded),
            num_rounds=settings.rounds,
            timeout=settings.step_timeout,
            train_config=task.to_config(),
        )
    except EnoughRounds:
        return
    last = RecordDict({"arrays": result.arrays, "config": task.to_config()})
    replies = _ask(grid, members, "evaluate", last, settings, progress.luggage)
    progress.scored(settings.rounds, result.arrays, list(replies.values()))


def _leave_best(
    grid: MemberGrid,
    members: Sequence[Member],
    settings: Settings,
    task: Task,
    progress: Progress,
) -> dict[str, dict[str, float]]:
    """Send the model of the best validation round so far to everyone and score it there."""
    content = RecordDict({"arrays": progress.best_arrays, "config": task.to_config()})
    progress.luggage.restore(progress.best_luggage)
    replies = _ask(grid, members, "evaluate.keep", content, settings, progress.luggage)
    return {name: unpack(numbers(reply, "scores")) for name, reply in replies.items()}


def _ask(
    grid: MemberGrid,
    members: Sequence[Member],
    message_type: str,
    content: RecordDict,
    settings: Settings,
    luggage: Luggage,
) -> dict[str, RecordDict]:
    """Replies of the members to a model, each with what else is for it."""

    def packed(member: Member) -> RecordDict:
        return luggage.pack(member, content)

    return grid.ask(members, message_type, packed, settings.step_timeout)
