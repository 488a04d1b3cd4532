"""The price of sealing a training: bytes from the shape of the model, seconds from one real sum."""

import os
import time
from typing import Any

import numpy as np

from fedlap_app.flower.course import Course
from fedlap_app.methods.base import Schema
from fedlap_app.methods.registry import method_class
from fedlap_app.methods.step import MODEL
from fedlap_app.settings import Settings
from fedlap_app.sums.header import Place
from fedlap_app.sums.keyring import KeyRing
from fedlap_app.sums.training.adder import Adder
from fedlap_app.sums.training.agreed import WEIGHT_SUM
from fedlap_app.sums.training.covers import cover_of
from fedlap_app.sums.training.sealing import Sealer
from fedlap_app.sums.training.shape import SumShape

_CHAIN = "00" * 32


def training_price(settings: Settings, schema: Schema) -> dict[str, Any]:
    """What sealed training sends if all its rounds take place, and what sealing takes.

    Parameters
    ----------
    settings
        Settings of the run, whose `clients` is set.
    schema
        Numbers of features and of classes.
    """
    method = method_class(settings.method).of(settings)
    if not settings.sealed or not method.exchanges or method.needs_updates:
        return {}
    course = Course(method, schema)
    shape, stages = course.agreed.shape, course.agreed.stages
    tail = shape.without_parameters
    seal, members = settings.training_backend, max(settings.clients, 1)

    def of_stage(contributors: int) -> tuple[int, int]:
        """Bytes of a round's sum, and of all sums of a stage."""
        shapes = shape, shape.wide, tail, WEIGHT_SUM
        sizes = [cover_of(seal).body_bytes(each, contributors) for each in shapes]
        whole, first, small, weights = sizes
        return whole, first + (settings.rounds - 1) * whole + 2 * small + weights

    (whole, up), (_, down) = of_stage(1), of_stage(members)
    sealing, opening = _measured(shape, members, seal)
    return {
        "parameters": sum(value.size for value in course.first(0)[MODEL].values()),
        "round_trips": stages * (settings.rounds + 4),
        "bytes_per_round": whole,
        "bytes_up_per_client": stages * up,
        "bytes_down_per_client": stages * down,
        "sealing_seconds_per_round": sealing,
        "opening_seconds_per_round": opening,
    }


def _measured(shape: SumShape, members: int, backend: str) -> tuple[float, float]:
    """Seconds of one member to seal and to open one sum, here and now."""
    names = tuple(f"member-{number:05d}" for number in range(members))
    secret = os.urandom(32)
    keys = KeyRing(names[0], names, "00" * 16, "00" * 16, dict.fromkeys(names[1:], secret), secret)
    sealer, place = Sealer(keys, backend), Place("training 0", 1)
    change = {each.name: np.zeros(each.shape) for each in shape.tensors}
    started = time.perf_counter()
    words = shape.encode(change, 1.0, [0.0] * shape.scores, 1)
    sealer.seal(words, place, names, shape, _CHAIN)
    sealed = time.perf_counter() - started
    alone = names[:1]
    words = shape.encode(change, 1.0, [0.0] * shape.scores, 1)
    adder = Adder(keys.job, keys.members_hash, place, alone, shape, backend)
    adder.add(names[0], sealer.seal(words, place, alone, shape, _CHAIN))
    total = adder.result()
    started = time.perf_counter()
    shape.mean(sealer.open(total, place, alone, shape, _CHAIN))
    return sealed, time.perf_counter() - started
