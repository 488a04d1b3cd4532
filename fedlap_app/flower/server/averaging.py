"""Training together: the best validation round kept, stages of self-training."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import RecordDict

from fedlap_app.flower.first_model import begun_with, earlier_model
from fedlap_app.flower.grids.member_grid import Member, MemberGrid, Quorum, schema_of
from fedlap_app.flower.records import numbers
from fedlap_app.flower.server.observer import Observer
from fedlap_app.flower.server.outcome import Outcome, StageScores
from fedlap_app.flower.server.price import OfflineOutcome
from fedlap_app.flower.server.replies import choices_of
from fedlap_app.flower.server.rounds import Rounds
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.methods import weighing
from fedlap_app.methods.base import Method, State
from fedlap_app.methods.kept import BASIS
from fedlap_app.methods.scores import Best, Layout, best_of, total, unpack, unpack_all
from fedlap_app.methods.task import Task
from fedlap_app.models.specs import BRANCH_WEIGHTS, FEATURE_WEIGHT, FEATURE_WEIGHTS
from fedlap_app.seeds import stage_seed
from fedlap_app.sums.programs import FeatureMoments


@dataclass
class Progress:
    """Scores of the rounds of one stage so far and the state of the best one.

    The replies of round r score the model that round r received, which is the global model of
    round r - 1: one round trip a round instead of two.
    """

    method: Method
    stage: int
    folder: RunFolder
    observer: Observer
    best: Best
    layout: Layout
    state: State = field(default_factory=lambda: State({}))
    rounds: int = 0
    started: float = field(default_factory=time.perf_counter)

    def scored(self, number: int, state: State, replies: Sequence[RecordDict]) -> bool:
        """Take in how the state after a round scored; whether the training goes on."""
        settings = self.method.settings
        weight, totals = _best_weight(replies, self.layout, settings.metric)
        if self.best.takes(number, totals):
            self.state = state
            if FEATURE_WEIGHT in state.model:
                self.state = with_weight(state, weight)
        self.rounds = number
        row: dict[str, Any] = {"stage": self.stage, "round": number, **totals}
        if FEATURE_WEIGHT in state.model:
            row["feature_weight"] = weight
        if BRANCH_WEIGHTS in state.model:
            row |= weighing.columns(state.model[BRANCH_WEIGHTS])
        self.folder.add_round({**row, "seconds": time.perf_counter() - self.started})
        stages, rounds = settings.self_training + 1, settings.rounds
        self.observer.round_done(self.stage * rounds + number, stages * rounds, totals)
        return not self.best.is_enough(number)


def _best_weight(
    replies: Sequence[RecordDict], layout: Layout, metric: str
) -> tuple[float, dict[str, float]]:
    """The weight of the feature model that validates best, and the totals with it."""
    clients = [unpack_all(numbers(reply, "scores"), layout) for reply in replies]
    choices = [total(scores) for scores in zip(*clients, strict=True)]
    chosen = best_of(choices, metric)
    return FEATURE_WEIGHTS[chosen], choices[chosen]


def _summed(replies: Sequence[RecordDict]) -> list[float]:
    """The sums of those that answered, added."""
    return weighing.total([numbers(reply, "sums") for reply in replies])


def with_weight(state: State, weight: float) -> State:
    """The same model with a weight of its feature model."""
    chosen = {FEATURE_WEIGHT: np.array([weight], dtype=np.float32)}
    return replace(state, model={**state.model, **chosen})


def train_together(
    grid: MemberGrid,
    members: Sequence[Member],
    method: Method,
    folder: RunFolder,
    observer: Observer,
    found: Mapping[str, OfflineOutcome],
) -> Outcome:
    """Train together in every stage and leave the best model so far with every member.

    A stage that validates worse than an earlier one changes nothing but the scores of its rounds.

    Parameters
    ----------
    grid, members, method
        Who trains, and what.
    folder, observer
        Where the scores of rounds go.
    found
        What the programs before training left at the server.
    """
    settings = method.settings
    if settings.min_clients:
        grid.quorum = Quorum(settings.min_clients, settings.straggler_timeout)
    jobs = {program: outcome.job for program, outcome in found.items()}
    schema = schema_of(members)
    layout = Layout.of(settings, schema.classes)
    stages: list[StageScores] = []
    kept: Progress | None = None
    earlier = earlier_model(Path(settings.start_model)) if settings.start_model else {}
    for stage in range(settings.self_training + 1):
        rounds = Rounds(grid, members, method, Task(grid.run.run_id, stage, jobs), layout)
        fresh = method.start(schema, stage_seed(settings.seed, stage), found)
        start = begun_with(fresh, earlier)
        best = Best.of(method)
        progress = Progress(method, stage, folder, observer, best, layout)
        _train(rounds, start, progress)
        if kept is None or progress.best.is_ahead_of(kept.best):
            kept = progress
        replies = rounds.ask("evaluate.keep", kept.state)
        clients = {
            name: unpack(numbers(reply, "scores"), layout) for name, reply in replies.items()
        }
        stages.append(StageScores(kept.stage, kept.best.round, progress.rounds, clients))
    assert kept is not None
    features = jobs.get(FeatureMoments.name, "")
    return Outcome(stages, kept.state.model, jobs.get(BASIS, ""), features)


def _train(rounds: Rounds, state: State, progress: Progress) -> None:
    """Run the rounds of one stage and score the last model."""
    count = progress.method.settings.rounds
    for number in range(1, count + 1):
        replies = rounds.exchange(number, state)
        scores = list(replies.values())
        if number > 1 and not progress.scored(number - 1, state, scores):
            return
        summed = _summed(scores) if progress.method.num_sums(state.model) else []
        state = progress.method.weigh(rounds.join(number, state, replies), state, summed)
    progress.scored(
        count, state, list(rounds.ask("evaluate", state, choices_of(state.model)).values())
    )
