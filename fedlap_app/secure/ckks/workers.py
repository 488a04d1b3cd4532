"""Encryptions of zero in other processes: SEAL holds the interpreter's lock, threads do not help.

The workers get public keys only, never a plaintext; each draws its own randomness from the
operating system. They pay when there are cores to spare and hundreds of ciphertexts a step; a
simulation, whose clients share the cores, does without.
"""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from numpy.typing import NDArray

from fedlap_app.secure.ckks.parameters import Parameters

LEAST = 64
"""Ciphertexts below which the way to another process takes longer than it spares."""

Words = NDArray[np.uint64]
Zeros = Callable[[bytes, Parameters, int], Words]

_processes = 1
_pool: ProcessPoolExecutor | None = None


def use_processes(count: int) -> None:
    """Encrypt in so many processes from now on; 1: in this one."""
    global _processes, _pool
    if count != _processes and _pool is not None:
        _pool.shutdown(cancel_futures=True)
        _pool = None
    _processes = count


def zeros(make: Zeros, public: bytes, parameters: Parameters, count: int) -> Words:
    """What `make` gives, made in all processes."""
    if _processes < 2 or count < LEAST:
        return make(public, parameters, count)
    share = -(-count // _processes)
    sizes = [min(share, count - start) for start in range(0, count, share)]
    found = [_workers().submit(make, public, parameters, size) for size in sizes]
    return np.concatenate([each.result() for each in found])


def _workers() -> ProcessPoolExecutor:
    global _pool
    if _pool is None:
        # Flower's processes have threads, which a fork would not take along.
        context = multiprocessing.get_context("spawn")
        _pool = ProcessPoolExecutor(_processes, mp_context=context)
    return _pool
