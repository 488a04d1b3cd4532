"""Settings that are restored."""

import subprocess
import sys
from contextlib import suppress

import torch

from fedlap_app.models.determinism import one_thread, seeded


def test_one_thread_is_undone_after_an_error():
    torch.set_num_threads(2)
    torch.set_deterministic_debug_mode("default")
    with suppress(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    with one_thread():
        inside = [torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()]
    assert inside == [1, True]
    assert torch.get_num_threads() == 2
    assert not torch.are_deterministic_algorithms_enabled()


def test_seeded_draws_leave_the_global_state():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    with seeded(5):
        first = torch.rand(3)
    assert torch.equal(torch.rand(3), expected)
    with seeded(5):
        assert torch.equal(torch.rand(3), first)


def test_a_new_process_does_not_import_the_compiler_or_torch_geometric():
    script = """
import sys
from fedlap_app.models import determinism, device, evaluation, optimizer, training
from fedlap_app.models import networks as models, specs, structure
import torch
with determinism.one_thread():
    model = models.build_model(models.ModelSpec("sage", 4, 2), 0)
    rule = optimizer.Optimizer(model.parameters(), training.TrainSpec())
    rule.step([torch.ones_like(value) for value in model.parameters()])
    structure.build_structure(specs.StructureSpec(2, 3, 2), 0)
print({"torch._dynamo", "sympy", "torch_geometric", "pandas", "flwr"} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
