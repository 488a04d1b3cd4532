"""A client process lives for one message: what it need not import costs seconds every time."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HEAVY = (
    "torch",
    "torch_geometric",
    "pandas",
    "sklearn",
    "matplotlib",
    "networkx",
    "ray",
    "sqlalchemy",
)

_PHASE = """
import sys

HEAVY = {heavy!r}

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HEAVY:
            raise ImportError(f"{{name}} was imported in the offline phase")

sys.meta_path.insert(0, Refuse())

import server_app.app
from client_app.app import app
from fedlap_app.settings import parse_settings
from fedlap_app.flower.server.federation import gather
from fedlap_app.flower.grids.local_grid import InProcessGrid, new_run_id, partition_configs
from fedlap_app.flower.grids.member_grid import MemberGrid
from fedlap_app.flower.server.offline import run_offline

settings = parse_settings({{"clients": 3, "accounts": 240, "vectors": 10, "backend": {backend!r}}})
grid = InProcessGrid(app, partition_configs(3), settings.to_config(), run_id=new_run_id())
members = gather(MemberGrid(grid), settings)
wrapped = MemberGrid(grid)
wrapped.introduce(members)
outcome = run_offline(wrapped, members, settings)
assert not set(HEAVY) & set(sys.modules), set(HEAVY) & set(sys.modules)
print("finished", outcome.job)
"""


@pytest.mark.parametrize("backend", ["mask", "plain", "ckks"])
def test_the_offline_phase_imports_nothing_heavy(backend, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", _PHASE.format(heavy=HEAVY, backend=backend)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("finished ")


_MODELS = """
import sys
from fedlap_app.methods.base import Schema
from fedlap_app.methods.registry import BUILT_IN, method_class
from fedlap_app.settings import parse_settings

for name in BUILT_IN:
    method = method_class(name).of(parse_settings({"method": name}))
    method.model(Schema(4, 2, 5), 0, held=5)
assert not {"sympy", "torch._dynamo"} & set(sys.modules)
print("made")
"""


def test_no_network_needs_the_compiler_of_torch():
    done = subprocess.run(
        [sys.executable, "-c", _MODELS],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=300,
    )  # fmt: skip
    assert done.stdout == "made\n", done.stderr
