"""The server's half of a method as a pure function, which every member calls by itself.

It is the aggregation of Flower's own strategy class, called with one reply: the mean of all. The
classes compute with + - * / and roots on arrays, which is the same everywhere, but for FedAdam's
`numpy.power`, which is not: here its rates bring their powers along. They get float64, so that the
mean change survives its way through the model, to which Flower adds it only to take it off again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from logging import WARNING
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from flwr.app import Message, MetricRecord, RecordDict
from flwr.common.logger import log
from flwr.serverapp.strategy import FedAvg, FedAvgM
from flwr.serverapp.strategy.fedopt import FedOpt

from fedlap_app.errors import ConfigError
from fedlap_app.flower.records import from_arrays, to_arrays
from fedlap_app.flower.server.strategies import strategy_of
from fedlap_app.knobs import handed
from fedlap_app.methods.base import Method
from fedlap_app.methods.registry import method_class
from fedlap_app.methods.step import MODEL, Floats, Kept, State, kept, moved, power, wide
from fedlap_app.settings import Settings

_NO_MEAN = ("fedmedian", "fedtrimmedavg")
_MOMENTUM, _FIRST, _SECOND = "momentum", "first-moment", "second-moment"
_ALONE = {"num-examples": 1.0}


class Rate(float):
    """A rate of a strategy, whose powers numpy leaves to it."""

    def __array_ufunc__(
        self,
        ufunc: np.ufunc,
        method: str,
        *inputs: Any,  # noqa: ANN401
        **options: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Compute with the plain number, powers by repeated multiplication."""
        plain = [float(each) if isinstance(each, Rate) else each for each in inputs]
        if ufunc is np.power:
            return np.float64(power(plain[0], int(plain[1])))
        return getattr(ufunc, method)(*plain, **options)


class Step:
    """What the strategy of a run makes of the mean change of a round.

    Parameters
    ----------
    method
        What is trained; a strategy that needs single updates is refused.
    """

    def __init__(self, method: Method) -> None:
        _require_mean(method)
        self._method = method

    def start(self, model: Mapping[str, Any]) -> State:
        """State before the first round."""
        return {MODEL: kept(model)}

    def after(self, state: State, mean: Mapping[str, Floats], number: int) -> State:
        """State after a round.

        Parameters
        ----------
        state
            State before it.
        mean
            Weighted mean of what training changed.
        number
            The round, from 1.
        """
        model = wide(state[MODEL])
        strategy: Any = strategy_of(self._method, _nothing)
        # The one reply is known to be right, and nothing is logged.
        strategy._check_and_log_replies = _unchecked
        _remind(strategy, state, model)
        content = RecordDict(
            {"arrays": to_arrays(moved(model, mean)), "metrics": MetricRecord({**_ALONE})}
        )
        reply = cast(Message, SimpleNamespace(content=content))
        arrays, _ = strategy.aggregate_train(number, [reply])
        return {MODEL: kept(from_arrays(arrays)), **_remembered(strategy, [*model])}


def require_sealable(method: Method) -> None:
    """Refuse sealed training of what does not follow from sums."""
    if method.settings.sealed and method.exchanges:
        _require_mean(method)


def unsealed_at_home(settings: Settings) -> Settings:
    """Settings of a simulation: what no sealed sum can train is trained without seals, and says so.

    A simulation hides nothing from whoever runs it. A deployment refuses.
    """
    method = method_class(settings.method).of(settings)
    own = handed("strategy", settings.strategy) is not None
    if not settings.sealed or not (method.needs_updates or own):
        return settings
    log(
        WARNING,
        "%s needs single updates, which a sealed sum has not: this simulation trains with "
        "training-backend = 'plain'; a deployment refuses, unless every policy allows plain",
        "A strategy of one's own" if own else f"Method {settings.method}",
    )
    return replace(settings, training_backend="plain")


def _require_mean(method: Method) -> None:
    strategy = method.settings.strategy
    unknown = strategy in _NO_MEAN or handed("strategy", strategy) is not None
    what = f"strategy = {strategy!r}" if unknown else ""
    if method.needs_updates:
        what = f"method = {method.name!r}"
    if what:
        raise ConfigError(
            f"{what} needs every organisation's own update and a sealed sum has none: set "
            "training-backend = 'plain', which the policy of every organisation must allow "
            "(training-backends), or take another one"
        )


def _remind(strategy: FedAvg, state: State, model: Mapping[str, Floats]) -> None:
    """Give a new strategy what it would remember of earlier rounds."""
    if isinstance(strategy, FedAvgM):
        strategy.current_arrays = to_arrays(model)
        found = state.get(_MOMENTUM)
        strategy.momentum_vector = [*wide(found).values()] if found else None
    if isinstance(strategy, FedOpt):
        strategy.current_arrays = dict(model)
        strategy.m_t = dict(wide(state.get(_FIRST, {})))
        strategy.v_t = dict(wide(state.get(_SECOND, {})))
        strategy.beta_1, strategy.beta_2 = Rate(strategy.beta_1), Rate(strategy.beta_2)


def _remembered(strategy: FedAvg, names: list[str]) -> dict[str, Kept]:
    """What a strategy remembers for the next round."""
    if isinstance(strategy, FedAvgM) and strategy.momentum_vector is not None:
        return {_MOMENTUM: kept(dict(zip(names, strategy.momentum_vector, strict=True)))}
    if isinstance(strategy, FedOpt):
        return {_FIRST: kept(strategy.m_t or {}), _SECOND: kept(strategy.v_t or {})}
    return {}


def _unchecked(
    replies: Iterable[Message], is_train: bool, validate: bool = True
) -> tuple[list[Message], list[Message]]:
    return list(replies), []


def _nothing(replies: list[RecordDict], weight_key: str) -> MetricRecord:
    return MetricRecord()
