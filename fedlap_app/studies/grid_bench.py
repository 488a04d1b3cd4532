"""What the in-process grid costs: a round through Flower's messages against a bare loop."""

import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fedlap_app.api.training import conduct
from fedlap_app.graphs.federation import load_federation
from fedlap_app.methods.base import Schema
from fedlap_app.methods.fedavg import FedAvg
from fedlap_app.methods.fedavg import scored as scored_with_sums
from fedlap_app.models.determinism import one_thread
from fedlap_app.models.device import pick_device
from fedlap_app.models.parameters import load_parameters, parameters_of
from fedlap_app.models.training import train_epochs
from fedlap_app.seeds import seed_of
from fedlap_app.settings import Settings


class BareLoop:
    """The same rounds without messages: load, score if asked for, train, average."""

    def __init__(self, settings: Settings) -> None:
        members = load_federation(settings.data_spec)
        shape = Schema(members[0].num_features, members[0].num_classes)
        device = pick_device(settings.device)
        self._method = FedAvg.of(settings)
        self._settings = settings
        self._names = [member.name for member in members]
        self._tensors = [self._method.inputs(member, {}) for member in members]
        self._models = [self._method.model(shape, settings.seed).to(device) for _ in members]
        self._nodes = sum(int(member.train_mask.sum()) for member in members)
        self.parameters = {
            key: value.copy() for key, value in parameters_of(self._models[0]).items()
        }

    def round(self, number: int, *, scored: bool) -> float:
        """Run one round and return its seconds."""
        started = time.perf_counter()
        average = {key: 0.0 * value for key, value in self.parameters.items()}
        with one_thread():
            for name, model, data in zip(self._names, self._models, self._tensors, strict=True):
                load_parameters(model, self.parameters)
                if scored:
                    scored_with_sums(model, data)
                seed = seed_of(self._settings.seed, "train", name, number)
                spec, loss = self._settings.train_spec, self._method.loss
                nodes = train_epochs(model, data, spec, seed, objective=loss)
                for key, value in parameters_of(model).items():
                    average[key] += value * (nodes / self._nodes)
        self.parameters = average
        return time.perf_counter() - started


class Pacer:
    """Observer that times each round of the grid and runs a bare one right after it.

    Taking turns round by round, both meet the same noise of the machine. The first round, which
    builds models and tensors, is left out.
    """

    def __init__(self, bare: BareLoop, scored: BareLoop) -> None:
        self._bare = bare
        self._scored = scored
        self._started: float | None = None
        self.grid: list[float] = []
        self.bare: list[float] = []
        self.scored: list[float] = []

    def step_done(self, number: int, steps: int) -> None:
        """Only rounds are compared."""

    def round_done(self, number: int, rounds: int, totals: Mapping[str, float]) -> None:
        """Note the time of the grid's round, then run the bare ones."""
        now = time.perf_counter()
        bare = self._bare.round(number, scored=False)
        scored = self._scored.round(number, scored=True)
        if self._started is not None:
            self.grid.append(now - self._started)
            self.bare.append(bare)
            self.scored.append(scored)
        self._started = time.perf_counter()


def bench_grid(settings: Settings, repeats: int) -> dict[str, Any]:
    """Median milliseconds a round on the grid and in a bare PyTorch loop, taken in turns.

    There is one training without guesses, and it has all its rounds. The bare loop does the same
    training and averages; the grid also scores the model that each client received. `scoring_ms` is
    what those scores cost in the bare loop: part of the overhead.
    """
    settings = replace(
        settings, self_training=0, patience=0, training_backend="plain", standardise="none"
    )
    pacers = [_paced(settings) for _ in range(repeats)]
    grid_ms, bare_ms, scored_ms = (
        1000 * statistics.median(seconds for pacer in pacers for seconds in getattr(pacer, kind))
        for kind in ("grid", "bare", "scored")
    )
    return {
        "dataset": settings.dataset,
        "clients": settings.clients,
        "model": settings.model,
        "local_epochs": settings.local_epochs,
        "rounds": settings.rounds * repeats,
        "grid_ms": grid_ms,
        "bare_ms": bare_ms,
        "scoring_ms": scored_ms - bare_ms,
        "overhead_ms": grid_ms - bare_ms,
    }


def _paced(settings: Settings) -> Pacer:
    pacer = Pacer(BareLoop(settings), BareLoop(settings))
    conduct(settings, pacer)
    return pacer
