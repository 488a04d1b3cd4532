"""The choice of a device."""

import pytest
import torch

from fedlap_app.errors import ConfigError
from fedlap_app.models.device import pick_device


@pytest.mark.parametrize(("name", "available", "kind"), [
    ("auto", True, "cuda"), ("auto", False, "cpu"), ("cuda", True, "cuda"), ("cpu", True, "cpu"),
])  # fmt: skip
def test_choices(monkeypatch, name, available, kind):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    assert pick_device(name).type == kind


def test_cuda_that_is_not_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="no usable CUDA device; choose cpu or auto"):
        pick_device("cuda")


def test_an_unknown_device():
    with pytest.raises(ConfigError, match="'tpu'; choose one of auto, cpu, cuda"):
        pick_device("tpu")
