"""Encryptions of zero in other processes: SEAL holds the interpreter's lock, threads do not help.

The workers get the key of one kind of sum, never a plaintext; each draws its own randomness from
the operating system. They pay when there are cores to spare and hundreds of ciphertexts a step; a
simulation, whose clients share the cores, does without.
"""

import multiprocessing
import threading
from collections.abc import Callable
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
    make: Callable[[bytes, Parameters, int], T], key: bytes, parameters: Parameters, count: int
) -> list[T]:
    """What `make` gives for a key and so many ciphertexts, by shares of all processes."""
    processes = _processes.get()
    if processes < 2 or count < LEAST:
        return [make(key, parameters, count)]
    share = -(-count // processes)
    sizes = [min(share, count - start) for start in range(0, count, share)]
    pool = _workers(processes)
    found = [pool.submit(make, key, parameters, size) for size in sizes]
    return [each.result() for each in found]


def _workers(count: int) -> ProcessPoolExecutor:
    with _making:
        if count not in _pools:
            # Flower's processes have threads, which a fork would not take along.
            context = multiprocessing.get_context("spawn")
            _pools[count] = ProcessPoolExecutor(count, mp_context=context)
        return _pools[count]
