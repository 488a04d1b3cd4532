"""Flower's own strategies over known members; evaluation comes folded into the training replies."""

from collections.abc import Iterable, Sequence
from logging import INFO
from typing import Any, Protocol

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import (
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedMedian,
    FedProx,
    FedTrimmedAvg,
    FedYogi,
)

from fedlap_app.flower.grids.member_grid import Member
from fedlap_app.flower.records import number, numbers, read_in_place
from fedlap_app.flower.server.rows import Luggage, NoLuggage
from fedlap_app.methods.scores import total, unpack_all
from fedlap_app.settings import Settings

_CLASSES: dict[str, type[FedAvg]] = {
    "fedavg": FedAvg,
    "fedprox": FedProx,
    "fedavgm": FedAvgM,
    "fedadam": FedAdam,
    "fedadagrad": FedAdagrad,
    "fedyogi": FedYogi,
    "fedmedian": FedMedian,
    "fedtrimmedavg": FedTrimmedAvg,
}


# Adam's usual constants, as a client's own Adam has them; Flower's are others.
ADAM = {"beta_1": 0.9, "beta_2": 0.999, "tau": 1e-8}


class RoundObserver(Protocol):
    """Is told what came back in a round."""

    def replied(self, number: int, sent: ArrayRecord, replies: Sequence[RecordDict]) -> None:
        """Take note of the replies to a round's model; may raise to end the training."""


class _Everyone(FedAvg):
    """Stands between a strategy and FedAvg: the model goes to every member, not to a sample."""

    members: Sequence[Member] = ()
    luggage: Luggage = NoLuggage()

    def summary(self) -> None:
        """Log whom the strategy trains with."""
        log(INFO, "\t└──> %d organisations, all of them in every round", len(self.members))

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send the model to every member."""
        config["server-round"] = server_round
        record = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config})
        return [
            Message(self.luggage.pack(member, record), member.node_id, "train")
            for member in self.members
        ]


class _Observed(FedAvg):
    """Stands before a strategy: tells an observer what came back before it is put together."""

    observer: RoundObserver
    members: Sequence[Member] = ()
    luggage: Luggage = NoLuggage()
    _sent = ArrayRecord()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Remember which model the replies will score."""
        self._sent = arrays
        return super().configure_train(server_round, arrays, config, grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Put the replies, which come sorted by organisation, together.

        A model that was not trained for lack of training nodes does not count.
        """
        replies = list(replies)
        contents = [reply.content for reply in replies]
        self.observer.replied(server_round, self._sent, contents)
        members = {member.node_id: member for member in self.members}
        present = [members[reply.metadata.src_node_id] for reply in replies]
        self.luggage.unpack(present, contents)
        trained = [reply for reply in replies if number(reply.content, self.weighted_by_key)]
        for reply in trained:
            read_in_place(reply.content.array_records[self.arrayrecord_key])
        return super().aggregate_train(server_round, trained)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask for nothing: the replies of the next round carry the scores."""
        return []


def member_strategy(
    settings: Settings, members: Sequence[Member], observer: RoundObserver, luggage: Luggage
) -> FedAvg:
    """Flower's strategy of the settings, in which all members take part in every round."""
    base = strategy_class(settings)
    bases = (_Observed, _Everyone) if base is FedAvg else (_Observed, base, _Everyone)
    strategy: Any = type(base.__name__, bases, {})(
        train_metrics_aggr_fn=_loss_record, **strategy_options(settings)
    )
    strategy.members, strategy.observer, strategy.luggage = members, observer, luggage
    made: FedAvg = strategy
    return made


def strategy_class(settings: Settings) -> type[FedAvg]:
    """Flower's class for the settings."""
    return FedAdam if settings.server_steps else _CLASSES[settings.strategy]


def strategy_options(settings: Settings) -> dict[str, float]:
    """What the strategy takes beyond FedAvg's arguments."""
    rate = settings.server_learning_rate
    if settings.strategy == "fedprox":
        return {"proximal_mu": settings.proximal_mu}
    if settings.strategy == "fedavgm":
        return {"server_momentum": settings.server_momentum, "server_learning_rate": rate or 1.0}
    if settings.server_steps:
        return {"eta": settings.learning_rate, "eta_l": 1.0, **ADAM}
    if settings.strategy in ("fedadam", "fedadagrad", "fedyogi") and rate:
        return {"eta": rate}
    return {}


def _loss_record(replies: list[RecordDict], weight_key: str) -> MetricRecord:
    """Loss of the received model over the training nodes of all clients, for Flower's log."""
    scores = [unpack_all(numbers(reply, "scores"))[0] for reply in replies]
    return MetricRecord({"train-loss": total(scores)["train_loss"]})
