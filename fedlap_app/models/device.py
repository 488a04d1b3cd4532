"""Where to compute."""

import os

import torch

from fedlap_app.errors import ConfigError


def pick_device(name: str) -> torch.device:
    """Turn "auto", "cpu" or "cuda" into a device."""
    if name not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"The device is {name!r}; choose one of auto, cpu, cuda.")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ConfigError(
            "The device is 'cuda' and this machine has no usable CUDA device; choose cpu or auto."
        )
    if name == "cpu" or not available:
        return torch.device("cpu")
    # cuBLAS is deterministic only with a fixed workspace, which it reads from here.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    return torch.device("cuda")
