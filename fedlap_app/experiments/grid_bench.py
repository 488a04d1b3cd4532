"""What the in-process grid costs: a round through Flower's messages against a bare loop."""

import statistics
import time
from collections.abc import Mapping
from typing import Any

from fedlap_app.graphs.federation import load_federation
from fedlap_app.learning.determinism import one_thread
from fedlap_app.learning.device import pick_device
from fedlap_app.learning.evaluation import evaluate
from fedlap_app.learning.models import build_model
from fedlap_app.learning.parameters import load_parameters, parameters_of
from fedlap_app.learning.tensors import GraphTensors
from fedlap_app.learning.training import train_epochs
from fedlap_app.seeds import seed_of
from fedlap_app.settings import Settings


class Stopwatch:
    """Observer that notes when each round ends."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def round_done(self, number: int, rounds: int, totals: Mapping[str, float]) -> None:
        """Note the time."""
        self.times.append(time.perf_counter())

    def per_round(self) -> list[float]:
        """Seconds of each round but the first, which also builds models and tensors."""
        return [after - before for before, after in zip(self.times, self.times[1:], strict=False)]


def bench_grid(settings: Settings, repeats: int) -> dict[str, Any]:
    """Median milliseconds a round on the grid and in a bare PyTorch loop, measured in turns.

    The bare loop does the same training and averages; the grid also scores the model that each
    client received. `scoring_ms` is what those scores cost in the bare loop: part of the overhead.
    """
    grid: list[float] = []
    bare: list[float] = []
    scored: list[float] = []
    for _ in range(repeats):
        grid += grid_rounds(settings)
        bare += bare_rounds(settings, scored=False)
        scored += bare_rounds(settings, scored=True)
    grid_ms, bare_ms, scored_ms = (1000 * statistics.median(each) for each in (grid, bare, scored))
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


def grid_rounds(settings: Settings) -> list[float]:
    """Seconds of the rounds of federated averaging on the in-process grid."""
    from server_app.in_process import run_in_process

    watch = Stopwatch()
    run_in_process(settings, watch)
    return watch.per_round()


def bare_rounds(settings: Settings, *, scored: bool) -> list[float]:
    """Seconds of the same rounds without messages: load, score if asked for, train, average."""
    members = load_federation(settings.data_spec)
    spec = settings.model_spec(members[0].num_features, members[0].num_classes)
    device = pick_device(settings.device)
    seconds: list[float] = []
    with one_thread():
        tensors = [GraphTensors.from_subgraph(member, spec, device) for member in members]
        models = [build_model(spec, settings.seed).to(device) for _ in members]
        parameters = {key: value.copy() for key, value in parameters_of(models[0]).items()}
        total = sum(int(member.train_mask.sum()) for member in members)
        for number in range(settings.rounds):
            started = time.perf_counter()
            average = {key: 0.0 * value for key, value in parameters.items()}
            for member, model, data in zip(members, models, tensors, strict=True):
                load_parameters(model, parameters)
                if scored:
                    evaluate(model, data)
                seed = seed_of(settings.seed, "train", member.name, number + 1)
                report = train_epochs(model, data, settings.train_spec, seed)
                for key, value in parameters_of(model).items():
                    average[key] += value * (report.num_examples / total)
            parameters = average
            seconds.append(time.perf_counter() - started)
    return seconds[1:]
