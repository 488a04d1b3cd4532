"""What a client says before the first round, and when it refuses to take part."""

from dataclasses import replace

import pytest

import fedlap_app
from client_app.app import app
from fedlap_app.deploy.demo import make_demo
from fedlap_app.errors import RunError
from fedlap_app.flower.grids.local_grid import InProcessGrid, new_run_id
from fedlap_app.flower.grids.member_grid import MemberGrid
from fedlap_app.flower.server.federation import gather
from fedlap_app.graphs.federation import DataSpec
from fedlap_app.settings import Settings

BANKS = DataSpec(dataset="banks", clients=3, accounts=240)


@pytest.fixture
def demo(tmp_path):
    return make_demo(tmp_path / "demo", BANKS)


def join(demo):
    """Names of the members over a grid of clients that each have their own folder."""
    settings = replace(Settings(), clients=3)
    configs = [
        {
            "data-dir": str(demo.organisation(name) / "data"),
            "federation": str(demo.organisation(name) / "federation.toml"),
        }
        for name in sorted(demo.federation.pins)
    ]
    grid = InProcessGrid(app, configs, settings.to_config(), run_id=new_run_id())
    return [member.name for member in gather(MemberGrid(grid), settings)]


def test_members_of_the_agreed_version_join(demo):
    assert join(demo) == ["bank-00", "bank-01", "bank-02"]


def test_an_organisation_that_agreed_on_another_version_is_named(demo):
    file = demo.organisation("bank-01") / "federation.toml"
    ours = f'version = "{fedlap_app.__version__}"'
    text = file.read_text(encoding="utf-8")
    assert ours in text
    file.write_text(text.replace(ours, 'version = "99.0"'), encoding="utf-8")
    with pytest.raises(RunError, match=r"^bank-01: its federation file asks for version 99\.0"):
        join(demo)
