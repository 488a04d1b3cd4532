"""First weights that are the same on every machine.

torch's own `uniform_` and `randn` round differently where a processor multiplies and adds at once,
or has other instructions for logarithms and angles. Here the numbers of torch's generator, which
are whole multiples of 2^-24, go through + - * / and roots in float64, in a fixed order. The same
seed gives what torch gives, to the last digit or two of float32.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Floats = NDArray[np.float64]

_LANES = 8  # torch makes normal numbers in groups of 16: 8 radii, 8 angles
_LOG_2 = 0.6931471805599453
_TERMS = 12


def uniform(bound: float, *shape: int) -> Tensor:
    """Numbers between -bound and bound."""
    return _tensor(_draw(*shape) * (2 * bound) - bound)


def normal(spread: float, *shape: int) -> Tensor:
    """Normal numbers with a standard deviation."""
    count = int(np.prod(shape))
    groups = -(-count // (2 * _LANES))
    drawn = _draw(groups, 2, _LANES)
    radius = np.sqrt(-2.0 * _log(1.0 - drawn[:, 0]))
    cosine, sine = _angle(drawn[:, 1])
    pairs = np.stack([radius * cosine, radius * sine], axis=1)
    return _tensor((pairs.reshape(-1)[:count] * spread).reshape(shape))


class _Unset(nn.Linear):
    """A linear layer that draws nothing; torch's own way imports its compiler, 0.4 s a process."""

    def reset_parameters(self) -> None:
        """Leave the memory as it is."""


def linear(inputs: int, outputs: int) -> nn.Linear:
    """A linear layer with torch's usual first weights."""
    layer = _Unset(inputs, outputs)
    bound = 1.0 / float(np.sqrt(inputs))
    layer.weight = nn.Parameter(uniform(bound, outputs, inputs))
    layer.bias = nn.Parameter(uniform(bound, outputs))
    return layer


def _draw(*shape: int) -> Floats:
    """Numbers of torch's generator in [0, 1)."""
    drawn: Floats = torch.rand(shape).numpy().astype(np.float64)
    return drawn


def _tensor(values: Floats) -> Tensor:
    return torch.from_numpy(values.astype(np.float32))


def _log(values: Floats) -> Floats:
    """Natural logarithms of numbers in (0, 1]: of m 2^e by the series of atanh((m - 1)/(m + 1))."""
    parts, exponents = np.frexp(values)
    ratio = (parts - 1.0) / (parts + 1.0)  # from -1/3 to 0
    square, total = ratio * ratio, np.zeros_like(values)
    for odd in range(4 * _TERMS + 1, 0, -2):
        total = total * square + 1.0 / odd
    return 2.0 * ratio * total + exponents * _LOG_2


def _angle(turns: Floats) -> tuple[Floats, Floats]:
    """Cosine and sine of whole turns in [0, 1), by their series within an eighth of a turn."""
    quarter = np.rint(4.0 * turns)
    angle = (turns - quarter / 4.0) * (2.0 * np.pi)
    square, cosine, sine = angle * angle, np.zeros_like(turns), np.zeros_like(turns)
    for term in range(_TERMS, 0, -1):
        cosine = 1.0 - cosine * square / ((2 * term) * (2 * term - 1))
        sine = 1.0 - sine * square / ((2 * term) * (2 * term + 1))
    sine = sine * angle
    which = quarter.astype(np.int64) % 4
    return (
        np.choose(which, [cosine, -sine, -cosine, sine]),
        np.choose(which, [sine, cosine, -sine, -cosine]),
    )
