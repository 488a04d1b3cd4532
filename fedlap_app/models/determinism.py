"""The same seed and the same inputs give the same bits.

Torch has one random generator and one set of switches for all threads of a process: a lock keeps
two runs side by side from drawing each other's numbers.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils.deterministic

# Its attribute is made at run time, unseen by a type checker.
_options: Any = torch.utils.deterministic
_turn = threading.RLock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread with deterministic kernels only, then restore the settings.

    One thread is also the fastest for graphs of some thousand nodes.
    """
    with _turn:
        threads = torch.get_num_threads()
        mode = torch.get_deterministic_debug_mode()
        fill = _options.fill_uninitialized_memory
        torch.set_num_threads(1)
        # Same as use_deterministic_algorithms(True), which imports the compiler: 1.4 s a process.
        torch.set_deterministic_debug_mode("error")
        # No kernel used here reads memory before it is written; to fill it takes a quarter longer.
        _options.fill_uninitialized_memory = False
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            torch.set_deterministic_debug_mode(mode)
            _options.fill_uninitialized_memory = fill


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed torch's draws inside the block and leave its global state as it was."""
    device = torch.device(device)
    on_cuda = device.type == "cuda"
    with _turn, torch.random.fork_rng(devices=[device] if on_cuda else []):
        # torch.manual_seed would reach every CUDA device as well.
        torch.default_generator.manual_seed(seed)
        if on_cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
