"""Flower's own strategies, by the names and settings of a run."""

import copy
from collections.abc import Callable
from typing import Any

from flwr.app import MetricRecord, RecordDict
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

from fedlap_app.errors import ConfigError
from fedlap_app.flower.records import numbers
from fedlap_app.knobs import hand_over, handed
from fedlap_app.methods.base import Method
from fedlap_app.methods.scores import train_loss
from fedlap_app.settings import Settings

_ALL = (FedAvg, FedProx, FedAvgM, FedAdam, FedAdagrad, FedYogi, FedMedian, FedTrimmedAvg)
_CLASSES: dict[str, type[FedAvg]] = {kind.__name__.lower(): kind for kind in _ALL}
# Adam's usual constants, as a client's own Adam has them; Flower's are others.
ADAM = {"beta_1": 0.9, "beta_2": 0.999, "tau": 1e-8}


Metrics = Callable[[list[RecordDict], str], MetricRecord]


def strategy_of(method: Method, metrics: Metrics | None = None) -> FedAvg:
    """The strategy of a run; all members take part in every round, however few they are.

    Parameters
    ----------
    method
        What is trained.
    metrics
        What is told of the replies of a round (default: the loss of the received model).
    """
    given = handed("strategy", method.settings.strategy)
    if given is not None:
        return _own_strategy(given, metrics)
    kind: Any = FedAdam if method.server_steps else _CLASSES[method.settings.strategy]
    made: FedAvg = kind(
        min_train_nodes=1,
        min_available_nodes=1,
        train_metrics_aggr_fn=metrics or _loss_record,
        **_options(method.settings, server_steps=method.server_steps),
    )
    return made


def object_of(strategy: Any) -> dict[str, object]:  # noqa: ANN401 - whatever the caller has
    """Settings of a run with a strategy of Flower's, or one derived from it, as an object."""
    if not isinstance(strategy, FedAvg | type) or not issubclass(type_of(strategy), FedAvg):
        raise ConfigError(
            f"strategy = {strategy!r} is no strategy: give a name, or an object of a class "
            "derived from flwr.serverapp.strategy.FedAvg"
        )
    # What a strategy wants of the clients is a setting here; Flower's sends it along.
    if issubclass(type_of(strategy), FedProx):
        if type(strategy) is not FedProx:
            raise ConfigError(
                f"strategy = {strategy!r} is derived from FedProx, whose pull the clients compute: "
                "give an object of FedProx itself, or strategy = 'fedprox' with proximal_mu"
            )
        return {"strategy": "fedprox", "proximal-mu": float(strategy.proximal_mu)}
    return {"strategy": hand_over("strategy", strategy)}


def type_of(thing: Any) -> type:  # noqa: ANN401 - whatever the caller has
    """A class, or that of an object."""
    return thing if isinstance(thing, type) else type(thing)


def _own_strategy(given: Any, metrics: Metrics | None) -> FedAvg:  # noqa: ANN401 - see `object_of`
    """A strategy that was handed over, fresh for this run."""
    made: FedAvg = given() if isinstance(given, type) else copy.deepcopy(given)
    made.min_train_nodes = made.min_available_nodes = 1
    made.train_metrics_aggr_fn = metrics or _loss_record
    return made


def _options(settings: Settings, *, server_steps: bool) -> dict[str, float]:
    """What the strategy takes beyond FedAvg's arguments."""
    rate = settings.server_learning_rate
    if server_steps:
        return {"eta": settings.learning_rate, "eta_l": 1.0, **ADAM}
    if settings.strategy == "fedprox":
        return {"proximal_mu": settings.proximal_mu}
    if settings.strategy == "fedavgm":
        return {"server_momentum": settings.server_momentum, "server_learning_rate": rate or 1.0}
    if settings.strategy in ("fedadam", "fedadagrad", "fedyogi") and rate:
        return {"eta": rate}
    return {}


def _loss_record(replies: list[RecordDict], weight_key: str) -> MetricRecord:
    """Loss of the received model over the training nodes of all clients, for Flower's log."""
    return MetricRecord({"train-loss": train_loss([numbers(reply, "scores") for reply in replies])})
