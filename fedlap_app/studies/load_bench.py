"""What the server's sums take with many organisations: seconds and memory, at a graph of one size.

Contributions are made up, each as long as a real one, and given to the server's own code one after
the other, as they arrive. What pads take at a member is measured beside it, since every pair of
members shares one.
"""

import multiprocessing
import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedlap_app.errors import ConfigError
from fedlap_app.studies.report_files import Column, lines_of
from fedlap_app.sums.checks import SLOTS
from fedlap_app.sums.choice import names_of
from fedlap_app.sums.header import Header, Place, Sum
from fedlap_app.sums.job.step_sums import Agreed, StepSums
from fedlap_app.sums.kdf import derive
from fedlap_app.sums.keyring import KeyRing
from fedlap_app.sums.pads import Pads, signed_partners
from fedlap_app.sums.training.adder import Adder
from fedlap_app.sums.training.sealing import PROFILE, list_hash
from fedlap_app.sums.training.shape import SumShape, Tensor

_JOB, _MEMBERS, _KEY = "0" * 32, "1" * 32, "2" * 16
_SMALL = 500
_COLUMNS: tuple[Column, ...] = (
    ("organisations", "organisations", "{:>13}"),
    ("step_seconds", "step s", "{:>8}"),
    ("step_megabytes", "MB in", "{:>8}"),
    ("step_peak", "peak MB", "{:>8}"),
    ("round_seconds", "round s", "{:>8}"),
    ("round_megabytes", "MB in", "{:>8}"),
    ("round_peak", "peak MB", "{:>8}"),
    ("pad_seconds", "a member's pads s", "{:>18}"),
)

Say = Callable[[str], None]


@dataclass(frozen=True)
class Load:
    """What the server sums.

    Attributes
    ----------
    nodes, columns
        Of the whole graph, and of the block products of a step.
    parameters
        Of the model.
    """

    nodes: int
    columns: int
    parameters: int


Work = Callable[[Load, tuple[str, ...]], int]


def bench_load(
    load: Load, counts: Sequence[int], say: Say = lambda text: None
) -> list[dict[str, Any]]:
    """A step before training and a sealed round with so many organisations each.

    Parameters
    ----------
    load
        What is summed.
    counts
        Numbers of organisations.
    say
        Is told what is done.
    """
    if any(count < 3 for count in counts):
        raise ConfigError("the sums of fewer than three organisations are no load: give 3 or more")
    rows = []
    for count in counts:
        say(f"{count} organisations")
        names = tuple(f"org-{number:04d}" for number in range(count))
        rows.append(
            {
                "organisations": count,
                **_measured("step", _step, load, names),
                **_measured("round", _round, load, names),
                "pad_seconds": _pads(load, names),
            }
        )
    return rows


def _measured(name: str, work: Work, load: Load, names: tuple[str, ...]) -> dict[str, float]:
    """Seconds, megabytes that came, and the most memory of a process that does nothing else."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        came, seconds, peak = pool.submit(_alone, work, load, names).result()
    values = {"seconds": seconds, "megabytes": came / 1e6, "peak": peak / 1e6}
    return {f"{name}_{key}": value for key, value in values.items()}


def _alone(work: Work, load: Load, names: tuple[str, ...]) -> tuple[int, float, int]:
    """What a fresh process measures: bytes that came, processor seconds, bytes of memory."""
    started = time.process_time()
    came = work(load, names)
    seconds = time.process_time() - started
    return came, seconds, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _step(load: Load, names: tuple[str, ...]) -> int:
    """Every member contributes to the block sums of all others, and to the small one."""
    backend, profile = names_of("mask", "")
    place = Place("krylov", 2)
    agreed = Agreed(backend, profile, _JOB, _MEMBERS, *place[:2])
    sums = StepSums(agreed, lambda name: tuple(each for each in names if each != name))
    length = -(-load.nodes // len(names)) * load.columns
    came = 0
    for sender in names:
        blocks = (Sum(name, length, len(names) - 1) for name in names if name != sender)
        summed = (Sum("", _SMALL, len(names)), *blocks)
        header = Header(backend, profile, _JOB, _MEMBERS, _KEY, *place, 0, summed, sender)
        data = _contribution(header)
        came += len(data)
        sums.add(sender, data)
    for name in names:
        sums.block(name)
    return came


def _round(load: Load, names: tuple[str, ...]) -> int:
    """Every member contributes its change of the model and its scores."""
    shape = SumShape((Tensor("weights", (load.parameters,)),), _SMALL)
    place = Place("training", 1)
    adder = Adder(_JOB, _MEMBERS, place, names, shape)
    listed = list_hash(_MEMBERS, names)
    summed = (shape.summed(len(names)),)
    came = 0
    for sender in names:
        header = Header("mask", PROFILE, _JOB, listed, _KEY, *place, 0, summed, sender)
        data = _contribution(header)
        came += len(data)
        adder.add(sender, data)
    adder.result()
    return came


def _contribution(header: Header) -> bytes:
    """A message as long as a real one; sums of words take the same time whatever they are."""
    words = sum(each.length + SLOTS for each in header.sums)
    return b"".join((header.pack(), np.ones(words, "<u8").data.cast("B")))


def _pads(load: Load, names: tuple[str, ...]) -> float:
    """Seconds that one member spends on the pads of a sealed round, one for every other member."""
    me, *others = names
    roots = {name: derive(b"load", "root", name) for name in others}
    keys = KeyRing(me, names, _JOB, _MEMBERS, roots, group_key=bytes(32))
    words = np.zeros(load.parameters // 2 + _SMALL, dtype=np.uint64)
    plus, minus = signed_partners(me, names)
    started = time.process_time()
    Pads(keys).change(words, Place("training", 1), "", add=plus, subtract=minus)
    return time.process_time() - started


def table_of(load: Load, rows: Sequence[dict[str, Any]]) -> str:
    """The report as text."""
    head = (
        f"{load.nodes:,} nodes, {load.columns} columns a step, {load.parameters:,} parameters, "
        "back end mask; processor seconds and memory of a process"
    )
    return "\n".join([head, *lines_of(_COLUMNS, rows, _cell)])


def _cell(key: str, value: Any) -> str:  # noqa: ANN401 - of any column
    return f"{value:.2f}" if isinstance(value, float) else str(value)
