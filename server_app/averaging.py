"""Federated averaging: Flower's own strategy over known members, with the best round kept."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from logging import INFO
from math import nan

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from client_app.records import from_arrays, number, numbers, read_in_place, to_arrays
from fedlap_app.methods.scores import is_better, total, unpack
from fedlap_app.settings import Settings
from server_app.member_grid import Member, MemberGrid
from server_app.observer import Observer
from server_app.outcome import Outcome
from server_app.run_folder import RunFolder


@dataclass
class Progress:
    """Scores of the rounds so far and the model of the best one."""

    folder: RunFolder
    rounds: int
    observer: Observer
    best_round: int = 0
    best: Mapping[str, float] | None = None
    best_arrays: ArrayRecord = field(default_factory=ArrayRecord)
    train_losses: dict[int, float] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)

    def scored(self, number: int, arrays: ArrayRecord, replies: Sequence[RecordDict]) -> None:
        """Take in how the global model of a round scored at the clients."""
        totals = total([unpack(numbers(reply, "scores")) for reply in replies])
        if is_better(totals, self.best):
            self.best_round, self.best, self.best_arrays = number, totals, arrays
        seconds = time.perf_counter() - self.started
        row = {"round": number, "train_loss": self.train_losses.get(number), **totals}
        self.folder.add_round({**row, "seconds": seconds})
        self.observer.round_done(number, self.rounds, totals)


class MemberFedAvg(FedAvg):
    """Flower's FedAvg over all members; evaluation comes folded into the training replies.

    The reply of round r carries the scores of the model that round r received, which is the
    global model of round r - 1: one round trip a round instead of two.
    """

    def __init__(self, members: Sequence[Member], progress: Progress) -> None:
        super().__init__(train_metrics_aggr_fn=_mean_loss)
        self._members = members
        self._progress = progress
        self._sent = ArrayRecord()

    def summary(self) -> None:
        """Log whom the strategy trains with."""
        log(INFO, "\t└──> %d organisations, all of them in every round", len(self._members))

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send the model to every member."""
        self._sent = arrays
        config["server-round"] = server_round
        record = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config})
        nodes = [member.node_id for member in self._members]
        return self._construct_messages(record, nodes, "train")

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Average the replies, which come sorted by organisation, and note the scores."""
        replies = list(replies)
        contents = [reply.content for reply in replies]
        if server_round > 1:
            self._progress.scored(server_round - 1, self._sent, contents)
        for content in contents:
            read_in_place(content.array_records[self.arrayrecord_key])
        arrays, metrics = super().aggregate_train(server_round, replies)
        if metrics is not None:
            loss = metrics["train-loss"]
            self._progress.train_losses[server_round] = loss if isinstance(loss, float) else nan
        return arrays, metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask for nothing: see `aggregate_train`."""
        return []


def run_fedavg(
    grid: MemberGrid,
    members: Sequence[Member],
    settings: Settings,
    folder: RunFolder,
    observer: Observer,
    basis: str,
) -> Outcome:
    """Train together, score the last model and leave the best one with every member."""
    progress = Progress(folder, settings.rounds, observer)
    result = MemberFedAvg(members, progress).start(
        grid=grid,
        initial_arrays=initial_model(members[0], settings),
        num_rounds=settings.rounds,
        timeout=settings.step_timeout,
        train_config=_config(basis),
    )
    last = RecordDict({"arrays": result.arrays, "config": _config(basis)})
    replies = grid.ask(members, "evaluate", last, settings.step_timeout)
    progress.scored(settings.rounds, result.arrays, replies)
    return _leave_best(grid, members, settings, progress, basis)


def initial_model(member: Member, settings: Settings) -> ArrayRecord:
    """The first global model, the same for the same seed."""
    from fedlap_app.learning.parameters import parameters_of
    from fedlap_app.methods.fedlap_plus import method_model

    return to_arrays(parameters_of(method_model(settings, member.features, member.classes)))


def _leave_best(
    grid: MemberGrid,
    members: Sequence[Member],
    settings: Settings,
    progress: Progress,
    basis: str,
) -> Outcome:
    """Send the model of the best validation round to everyone and score it there."""
    config = _config(basis)
    config["run"] = grid.run.run_id
    content = RecordDict({"arrays": progress.best_arrays, "config": config})
    replies = grid.ask(members, "evaluate.keep", content, settings.step_timeout)
    return Outcome(
        best_round=progress.best_round,
        rounds=settings.rounds,
        clients={
            member.name: unpack(numbers(reply, "scores"))
            for member, reply in zip(members, replies, strict=True)
        },
        parameters=from_arrays(progress.best_arrays),
        basis=basis,
    )


def _config(basis: str) -> ConfigRecord:
    """What every message says about the basis; Flower cannot count an empty value."""
    return ConfigRecord({"basis": basis} if basis else {})


def _mean_loss(replies: list[RecordDict], weight_key: str) -> MetricRecord:
    """Training loss over the training nodes of all clients."""
    rows = [(number(reply, weight_key), number(reply, "train-loss")) for reply in replies]
    weight = sum(nodes for nodes, _ in rows)
    return MetricRecord({"train-loss": sum(nodes * loss for nodes, loss in rows if nodes) / weight})
