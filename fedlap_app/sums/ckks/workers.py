"""Encryptions of zero in other processes: SEAL holds the interpreter's lock, threads do not help.

The workers get keys, never a plaintext; each draws its own randomness from
the operating system. They pay when there are cores to spare and hundreds of ciphertexts a step; a
simulation, whose clients share the cores, does without.
"""

import multiprocessing
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextvars import ContextVar
from typing import TypeVar

from fedlap_app.sums.ckks.parameters import Parameters

LEAST = 64
"""Ciphertexts below which the way to another process takes longer than it spares."""

T = TypeVar("T")

_processes: ContextVar[int] = ContextVar("processes", default=1)
_pools: dict[int, ProcessPoolExecutor] = {}
_making = threading.Lock()


def use_processes(count: int) -> None:
    """Encrypt in so many processes from now on, in this thread; 1: in this process."""
    _processes.set(count)


def shares(
    make: Callable[[Sequence[bytes], Parameters], T], keys: Sequence[bytes], parameters: Parameters
) -> list[T]:
    """What `make` gives for the keys of some ciphertexts, by shares of all processes."""
    processes, count = _processes.get(), len(keys)
    if processes < 2 or count < LEAST:
        return [make(keys, parameters)]
    share = -(-count // processes)
    parts = [keys[start : start + share] for start in range(0, count, share)]
    pool = _workers(processes)
    found = [pool.submit(make, part, parameters) for part in parts]
    return [each.result() for each in found]


def _workers(count: int) -> ProcessPoolExecutor:
    with _making:
        if count not in _pools:
            # Flower's processes have threads, which a fork would not take along.
            context = multiprocessing.get_context("spawn")
            _pools[count] = ProcessPoolExecutor(count, mp_context=context)
        return _pools[count]
