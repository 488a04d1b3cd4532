"""A member's own step against Flower's strategy, and on processors of different kinds."""

import hashlib
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict

from fedlap_app.errors import ConfigError
from fedlap_app.flower.server.strategies import strategy_of
from fedlap_app.flower.steps import Step
from fedlap_app.methods.fedavg import FedAvg
from fedlap_app.methods.step import MODEL, pack_state
from fedlap_app.settings import Settings
from fedlap_app.sums.training.shape import SumShape, Tensor

STRATEGIES = ("fedavg", "fedprox", "fedavgm", "fedadam", "fedadagrad", "fedyogi")
WEIGHTS = np.array([3.0, 5.0, 12.0])
SHARES = WEIGHTS / WEIGHTS.sum()
SHAPE = SumShape((Tensor("A", (4, 30)), Tensor("b", (7,))), 0)


def settings_of(strategy):
    momentum = 0.9 if strategy == "fedavgm" else 0.0
    return Settings(strategy=strategy, server_momentum=momentum, server_learning_rate=0.5)


def first_model():
    rng = np.random.default_rng(0)
    return {t.name: rng.normal(size=t.shape).astype(np.float32) for t in SHAPE.tensors}


def changes(number, size):
    """What training changes at each of three members."""
    rng = np.random.default_rng(number)
    return [{t.name: rng.normal(size=t.shape) * size for t in SHAPE.tensors} for _ in WEIGHTS]


def sealed_mean(drawn, shape=SHAPE):
    """The mean as a sum of 32 bits gives it."""
    parts = [shape.encode(*each, [], 3) for each in zip(drawn, SHARES, strict=True)]
    words = sum(part.view("<u4") for part in parts).view("<u8")
    return shape.mean(words)


def flowers_own(settings, rounds, size):
    """The model that Flower's strategy makes of the trained models in float32."""
    strategy = strategy_of(FedAvg.of(settings), lambda replies, key: MetricRecord())
    model = first_model()
    for number in range(1, rounds + 1):
        is_momentum = settings.strategy == "fedavgm"
        strategy.current_arrays = (
            ArrayRecord({n: Array(v) for n, v in model.items()}) if is_momentum else model
        )
        replies = []
        for weight, change in zip(WEIGHTS, changes(number, size), strict=True):
            trained = {n: Array((v + change[n]).astype(np.float32)) for n, v in model.items()}
            metrics = MetricRecord({"num-examples": float(weight)})
            content = RecordDict({"arrays": ArrayRecord(trained), "metrics": metrics})
            replies.append(SimpleNamespace(content=content, has_error=lambda: False))
        arrays, _ = strategy.aggregate_train(number, replies)
        model = {n: a.numpy().astype(np.float32) for n, a in arrays.items()}
    return model


def stepped(settings, rounds, size):
    """The state that a member works out from the means."""
    step = Step(FedAvg.of(settings))
    state = step.start(first_model())
    for number in range(1, rounds + 1):
        state = step.after(state, sealed_mean(changes(number, size)), number)
    return state


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_step_is_that_of_flowers_own_strategy(strategy):
    settings = settings_of(strategy)
    own = stepped(settings, 1, 0.05)[MODEL]
    for name, value in flowers_own(settings, 1, 0.05).items():
        # Adaptive steps divide by what they multiply with, so float32 is what differs there.
        resolution = 1.5 * 2.0**-24 + np.spacing(np.float32(4.0)) / 2
        near = 2e-5 if strategy in ("fedadam", "fedadagrad", "fedyogi") else resolution
        assert np.abs(own[name] - value).max() <= near


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_it_stays_so_over_rounds(strategy):
    settings = settings_of(strategy)
    own = stepped(settings, 6, 0.05)[MODEL]
    for name, value in flowers_own(settings, 6, 0.05).items():
        np.testing.assert_allclose(own[name], value, atol=5e-4)


@pytest.mark.parametrize("strategy", ["fedmedian", "fedtrimmedavg"])
def test_a_strategy_that_needs_single_updates_is_refused(strategy):
    with pytest.raises(ConfigError, match="training-backend = 'plain'"):
        Step(FedAvg.of(Settings(strategy=strategy)))


def adam(gradients, dtype):
    """Steps of Adam as Kingma and Ba have it, with the server's own constants."""
    x = m = v = np.zeros_like(gradients[0], dtype=dtype)
    for t, gradient in enumerate(gradients, 1):
        g = gradient.astype(dtype)
        m, v = dtype(0.9) * m + dtype(0.1) * g, dtype(0.999) * v + dtype(0.001) * g * g
        rate = dtype(0.01 * np.sqrt(1 - 0.999 ** (t + 1)) / (1 - 0.9 ** (t + 1)))
        x = x + rate * m / (np.sqrt(v) + dtype(1e-8))
    return x


@pytest.mark.parametrize("bits", [24, 30])
@pytest.mark.parametrize("size", [1e-3, 1e-5, 1e-6])
def test_adam_with_tiny_gradients_is_as_good_as_in_float32(size, bits):
    settings = Settings(
        method="fedlap+", optimizer_at="server", local_epochs=1, learning_rate=0.01,
        training_bits=bits,
    )  # fmt: skip
    step = Step(FedAvg.of(settings))
    shape = SumShape((Tensor("x", (500,), settings.training_bits),), 0)
    rng = np.random.default_rng(2)
    centre = rng.normal(size=500) * size
    drawn = [[centre + rng.normal(size=500) * size for _ in WEIGHTS] for _ in range(10)]
    state = step.start({"x": np.zeros(500, np.float32)})
    for number, parts in enumerate(drawn, 1):
        state = step.after(state, sealed_mean([{"x": part} for part in parts], shape), number)
    means = [SHARES @ np.stack(parts) for parts in drawn]
    # What the sum rounds is known, so the step itself can be held against float32.
    whole = [np.rint(np.stack(p) * SHARES[:, None] * 2.0**bits).sum(axis=0) for p in drawn]
    rounded = [each * 2.0**-bits for each in whole]
    exact, single = adam(rounded, np.float64), adam(rounded, np.float32)
    error = np.abs(state[MODEL]["x"] - exact)
    assert error.max() <= 2 * np.abs(single - exact).max() + 1e-7
    # Adam divides by the root of the mean square so far, and so enlarges what the sum rounds off.
    counts = np.arange(1, len(means) + 1)[:, None]
    roots = np.sqrt(np.cumsum(np.square(means), axis=0) / counts)
    enlarged = (0.01 * 4 * 1.5 * 2.0**-bits / roots).sum(axis=0)
    off = np.abs(state[MODEL]["x"] - adam(means, np.float64))
    assert (off <= 2 * np.abs(single - exact).max() + enlarged).all()


def digests():
    """Hashes of the states after some rounds, and of a new model."""
    from fedlap_app.methods.base import Schema
    from fedlap_app.methods.fedlap_plus import FedLapPlus
    from fedlap_app.models.parameters import parameters_of

    found = []
    for strategy in STRATEGIES:
        state = stepped(settings_of(strategy), 20, 1e-3)
        found.append(hashlib.sha256(pack_state(state)).hexdigest())
    model = FedLapPlus.of(Settings()).model(Schema(37, 5), 0)
    for value in parameters_of(model).values():
        found.append(hashlib.sha256(np.ascontiguousarray(value)).hexdigest())
    return found


def test_states_are_equal_bit_for_bit_on_other_processors():
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    there = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    assert there
    plain = {"NPY_DISABLE_CPU_FEATURES": " ".join(there), "ATEN_CPU_CAPABILITY": "default"}
    command = "from tests.flower.test_steps import digests; print(*digests(), sep='\\n')"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", command],
            env={**os.environ, **environment, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for environment in ({}, plain)
    ]
    one, other = (process.communicate()[0].split() for process in running)
    assert len(one) > len(STRATEGIES)
    assert one == other
