"""Replies of training, looked at where they come in; a wrong one is refused by who sent it."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from flwr.app import RecordDict

from fedlap_app.errors import ProtocolError
from fedlap_app.flower.records import number, numbers, records_in
from fedlap_app.methods.base import MODEL, Parameters
from fedlap_app.methods.scores import Layout
from fedlap_app.models.specs import FEATURE_WEIGHT, FEATURE_WEIGHTS

_MOST = 2.0**53
_EXPECTED = "let all organisations run one release, then start the run again"


@contextmanager
def of(name: str) -> Iterator[None]:
    """Say whose reply is wrong."""
    try:
        yield
    except ProtocolError as error:
        raise ProtocolError(f"{name}: {error}") from error


def require_update(
    content: RecordDict, model: Parameters, layout: Layout, sums: int, largest_weight: float = 0.0
) -> None:
    """Refuse a reply to a round whose model or numbers are not those that were asked for.

    Parameters
    ----------
    content
        The reply.
    model
        What the organisation was sent.
    layout
        How long the scores of a model are.
    sums
        How many numbers are added beside them.
    largest_weight
        What its weight may not pass; 0: no limit.
    """
    weight = number(content, "num-examples")
    _require_numbers("num-examples", [weight], 1)
    if largest_weight and weight > largest_weight:
        raise ProtocolError(
            f"it counts for {weight:g} nodes, above largest-weight = {largest_weight:g}: "
            f"{_EXPECTED}"
        )
    require_scores(content, layout, choices=choices_of(model))
    told = {"num-examples", "scores", *(("sums",) if sums else ())}
    if content["metrics"].keys() != told:
        raise ProtocolError(
            f"it sent {len(content['metrics'])} metrics where {', '.join(sorted(told))} were "
            f"expected: {_EXPECTED}"
        )
    if sums:
        _require_numbers("sums", numbers(content, "sums"), sums, signed=True)
    returned = records_in(content, MODEL)[MODEL]
    if returned.keys() != model.keys():
        raise ProtocolError(
            f"it returned a model of {len(returned)} arrays, and not the {len(model)} that it "
            f"received: {_EXPECTED}"
        )
    for key, value in returned.items():
        if value.shape != model[key].shape or value.dtype.kind != "f":
            raise ProtocolError(
                f"it returned {key!r} as {value.dtype} of shape {value.shape}, where floats of "
                f"shape {model[key].shape} were expected: {_EXPECTED}"
            )
        if not np.isfinite(value).all():
            raise ProtocolError(
                f"it returned {key!r} with values that are not finite numbers: lower the learning "
                "rate, then start a new run"
            )


def require_scores(content: RecordDict, layout: Layout, *, choices: int = 1) -> None:
    """Refuse scores of another length, or that are no counts and losses."""
    _require_numbers("scores", numbers(content, "scores"), choices * layout.size)


def require_alone(content: RecordDict, layout: Layout, stages: int, rounds: int) -> None:
    """Refuse what does not add up to the rounds of every stage that was trained alone."""
    require_rounds(content, stages, rounds)
    counts = numbers(content, "rounds")
    require_scores(content, layout, choices=stages)
    _require_numbers("history", numbers(content, "history"), int(sum(counts)) * layout.size)


def require_rounds(content: RecordDict, stages: int, rounds: int) -> None:
    """Refuse numbers of rounds that nobody asked for."""
    counts = numbers(content, "rounds")
    _require_numbers("rounds", counts, stages)
    if not all(value.is_integer() and 1 <= value <= rounds for value in counts):
        raise ProtocolError(
            f"it trained {counts} rounds where 1 to {rounds} were asked for: {_EXPECTED}"
        )


def choices_of(model: Parameters) -> int:
    """How many scores a model has: one for each weight that it may get."""
    return len(FEATURE_WEIGHTS) if FEATURE_WEIGHT in model else 1


def _require_numbers(
    key: str, values: Sequence[float], count: int, *, signed: bool = False
) -> None:
    least = -_MOST if signed else 0.0
    if len(values) != count or not all(least <= value < _MOST for value in values):
        odd = [value for value in values if not least <= value < _MOST]
        what = f"such as {odd[0]}" if odd else "of these"
        raise ProtocolError(
            f"it sent {len(values)} numbers {key}, {what}, where {count} below 2^"
            f"{math.log2(_MOST):.0f} were expected: {_EXPECTED}"
        )
