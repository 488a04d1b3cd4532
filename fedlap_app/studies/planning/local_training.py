"""What training itself takes: one real round of the largest organisation, here and now.

Its rows of a basis are made up: what a round takes does not depend on their values.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.base import Schema
from fedlap_app.methods.features import own_encoding
from fedlap_app.methods.kept import BASIS
from fedlap_app.methods.registry import method_class
from fedlap_app.settings import Settings
from fedlap_app.spectral.certificate import Certificate
from fedlap_app.sums.job.bases import BasisFacts, FinishedBasis
from fedlap_app.sums.programs import FeatureMoments, Krylov

_MB = 2**20
_ADVICE = {
    "local training": "--jobs uses more cores here, SuperNodes a machine for each organisation, "
    "and device a GPU there",
    "sealing": "a smaller model (hidden), or fewer organisations in a sum",
    "round trips": "more local-epochs with fewer rounds, or patience",
}


def local_price(settings: Settings, parts: Sequence[Subgraph]) -> dict[str, float]:
    """Seconds and memory of a round at the largest organisation, and seconds at all together.

    Empty where a method reads what only other organisations know.

    Parameters
    ----------
    settings
        Settings of the run.
    parts
        What the organisations hold.
    """
    method = method_class(settings.method).of(settings)
    foreign = {*method.needs(settings)} - {Krylov.name, FeatureMoments.name}
    if foreign or method.simulated or method.pooled or not method.exchanges:
        return {}
    sizes = [part.num_nodes + part.edge_index.shape[1] for part in parts]
    part = parts[int(np.argmax(sizes))]
    encoding = own_encoding(part, settings)
    part = part if encoding is None else encoding.apply(part)
    nodes = sum(each.num_nodes for each in parts)
    found = {BASIS: _made_up(part, settings.kept, nodes)} if settings.needs_basis else {}
    seconds, memory = _one_round(method, part, found)
    return {
        "local_seconds_per_round": seconds,
        "local_seconds_per_round_all": seconds * sum(sizes) / max(max(sizes), 1),
        "local_memory_mb": memory,
    }


def with_bottleneck(
    price: dict[str, Any], settings: Settings, round_trip: float, *, together: bool
) -> dict[str, Any]:
    """The price of a training with its seconds and what most of them go to.

    Parameters
    ----------
    price
        What `training_price` and `local_price` gave.
    settings
        Settings of the run, whose `clients` is set.
    round_trip
        Seconds of an exchange with all organisations.
    together
        Whether all compute one after the other in one place.
    """
    local, each = price["local_seconds_per_round"], price.get("sealing_seconds_per_round", 0.0)
    opening = price.get("opening_seconds_per_round", 0.0)
    if together:  # members in one process open a sum once for all
        local, each = price["local_seconds_per_round_all"], settings.clients * each
    parts = {"local training": local, "sealing": each + opening, "round trips": round_trip}
    rounds = (settings.self_training + 1) * settings.rounds
    worst = max(parts, key=lambda name: parts[name])
    return {
        **price,
        "seconds": rounds * sum(parts.values()),
        "rounds": rounds,
        "bottleneck": worst,
        "advice": _ADVICE[worst],
    }


def _one_round(method: Any, part: Subgraph, found: dict[str, Any]) -> tuple[float, float]:  # noqa: ANN401
    """Seconds and megabytes of scoring and training a model once."""
    import torch

    from fedlap_app.methods.fedavg import scored
    from fedlap_app.models.determinism import one_thread
    from fedlap_app.models.training import train_epochs

    settings = method.settings
    spec = settings.server_step_spec if method.server_steps else settings.train_spec
    kept: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with one_thread():
        inputs = method.inputs(part, found)
        model = method.model(Schema(part.num_inputs, part.num_classes), settings.seed)
        model = model.to(inputs.device)
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            method.loss(model, inputs)
        taken = []
        for turn in range(2):  # the first one warms up
            started = time.perf_counter()
            scored(model, inputs)
            train_epochs(model, inputs, spec, turn, objective=method.loss)
            taken.append(time.perf_counter() - started)
    moments = 4 * sum(value.numel() * value.element_size() for value in model.parameters())
    return min(taken), (sum(kept.values()) + moments) / _MB


def _made_up(part: Subgraph, columns: int, nodes: int) -> FinishedBasis:
    """A basis of the right size."""
    draw = np.random.default_rng(0).standard_normal((part.num_nodes, columns))
    stated = Certificate(0.0, 0.0, columns, columns, 1, 1, 1, 1.0)
    facts = BasisFacts("", "", "", "", (), part.num_nodes, columns, 1, nodes=nodes)
    return FinishedBasis(draw / np.sqrt(nodes), np.linspace(0.01, 1.0, columns), stated, facts)
