"""Offline phases on grids whose clients and servers die."""

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from flwr.common.serde import message_to_proto

from client_app.app import app
from fedlap_app.flower.grids.local_grid import (
    InProcessGrid,
    ProcessGrid,
    new_run_id,
    partition_configs,
)
from fedlap_app.graphs.federation import load_federation
from fedlap_app.sums.job.live import forget as forget_live

from .conftest import bases, phase, same


class MortalGrid(InProcessGrid):
    """A client's process dies at some messages: before it works, or before its reply leaves."""

    def __init__(self, *arguments, deaths, **options):
        super().__init__(*arguments, **options)
        self.deaths = dict(deaths)
        self.number = 0

    def _deliver(self, message, context):
        if message.metadata.message_type == "query.offline":
            self.number += 1
            death = self.deaths.pop(self.number, "")
            if death == "before":
                forget_live()
                raise RuntimeError("killed")
            if death == "after":
                super()._deliver(message, context)
                forget_live()
                raise RuntimeError("killed")
        return super()._deliver(message, context)


@pytest.mark.parametrize("death", ["before", "after"])
def test_a_client_that_dies_is_asked_again(settings, undisturbed, death):
    deaths = dict.fromkeys(range(1, 40, 6), death)
    config = settings.to_config()
    grid = MortalGrid(app, partition_configs(3), config, run_id=new_run_id(), deaths=deaths)
    phase(grid, settings)
    assert not {number for number in grid.deaths if number <= 24}
    assert same(bases(settings), undisturbed)


class CrashingGrid(InProcessGrid):
    """The server dies after some messages."""

    def __init__(self, *arguments, after, **options):
        super().__init__(*arguments, **options)
        self.left = after

    def _deliver(self, message, context):
        if message.metadata.message_type == "query.offline":
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        return super()._deliver(message, context)


@pytest.mark.parametrize("after", [4, 8, 13, 16, 20, 23])
@pytest.mark.parametrize("backend", ["mask", "plain"])
def test_a_server_that_dies_goes_on_in_a_new_run(settings, make_grid, tmp_path, after, backend):
    settings = replace(settings, backend=backend)
    elsewhere = replace(settings, store_dir=str(tmp_path / "undisturbed"))
    phase(make_grid(elsewhere), elsewhere)
    config = settings.to_config()
    grid = CrashingGrid(app, partition_configs(3), config, run_id=new_run_id(), after=after)
    with pytest.raises(KeyboardInterrupt):
        phase(grid, settings)
    forget_live()
    outcome = phase(make_grid(settings), settings)
    assert outcome.resumed == (after >= 6)
    assert same(bases(settings), bases(elsewhere))
    if outcome.resumed:
        assert outcome.price.round_trips == 5


def test_the_server_holds_only_ciphertexts_and_counters(settings, make_grid, own_home):
    config = settings.to_config()
    grid = CrashingGrid(app, partition_configs(3), config, run_id=new_run_id(), after=16)
    with pytest.raises(KeyboardInterrupt):
        phase(grid, settings)
    files = [path for path in (own_home / "checkpoints").rglob("*") if path.is_file()]
    assert len(files) == 2
    content = b"".join(path.read_bytes() for path in files)
    for subgraph in load_federation(settings.data_spec):
        assert not any(str(node).encode() in content for node in subgraph.ids)
    phase(make_grid(settings), settings)
    assert not [path for path in (own_home / "checkpoints").rglob("*") if path.is_file()]


@pytest.mark.slow
def test_a_process_for_every_message_gives_the_same_bits(settings, undisturbed):
    grid = ProcessGrid(partition_configs(3), settings.to_config(), run_id=new_run_id())
    phase(grid, settings)
    assert same(bases(settings), undisturbed)


class KillingGrid(ProcessGrid):
    """Kills the first process of every message of one client, early or late in its work."""

    def __init__(self, *arguments, moment, **options):
        super().__init__(*arguments, **options)
        self.moment = moment
        self.killed = 0
        self.answered = set()

    def _deliver(self, message, context):
        own = message.content.get("own")
        place = own and str(own["asked"])
        if place and message.metadata.dst_node_id == 102 and place not in self.answered:
            self.answered.add(place)
            self._kill(message, context)
            self.killed += 1
            raise RuntimeError("killed")
        return super()._deliver(message, context)

    def _kill(self, message, context):
        """Run the message in a process that kills itself where a reply is written."""
        from flwr.common.serde import context_to_proto

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            (path / "message").write_bytes(message_to_proto(message).SerializeToString())
            (path / "context").write_bytes(context_to_proto(context).SerializeToString())
            code = KILLING.format(moment=self.moment, folder=folder)
            done = subprocess.run([sys.executable, "-c", code], check=False, timeout=120)
            assert done.returncode in (-signal.SIGKILL, 0), done.returncode
            assert not (path / "reply").exists() or done.returncode == 0


KILLING = """
import os, signal
from pathlib import Path
from fedlap_app.flower.client.once import main
from fedlap_app.store.job_files import JobFiles
from fedlap_app.store.newest import Newest
def kill_at(owner, name):
    write = getattr(owner, name)
    def deadly(self, *arguments):
        if "{moment}" != "after":
            os.kill(os.getpid(), signal.SIGKILL)
        write(self, *arguments)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(owner, name, deadly)
if "{moment}" == "within":
    kill_at(Newest, "_declare")
else:
    kill_at(JobFiles, "write")
    kill_at(Newest, "write")
main(Path("{folder}"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "within", "after"])
def test_killed_processes_change_nothing(settings, undisturbed, moment):
    config = settings.to_config()
    grid = KillingGrid(partition_configs(3), config, run_id=new_run_id(), moment=moment)
    phase(grid, settings)
    assert grid.killed == 8
    assert same(bases(settings), undisturbed)


@pytest.mark.slow
def test_a_killed_server_process_goes_on(settings, undisturbed, own_home):
    """Three server processes are killed at different places; a fourth one finishes."""
    for after in (7, 6, 7):
        code = SERVER.format(config=settings.to_config(), after=after)
        done = subprocess.run(
            [sys.executable, "-c", code], check=False, timeout=120, env={**os.environ}
        )
        assert done.returncode == -signal.SIGKILL
    code = SERVER.format(config=settings.to_config(), after=10_000)
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=120)
    assert done.returncode == 0
    assert same(bases(settings), undisturbed)


SERVER = """
import os, signal
from client_app.app import app
from fedlap_app.settings import parse_settings
from fedlap_app.flower.server.federation import gather
from fedlap_app.flower.grids.local_grid import InProcessGrid, new_run_id, partition_configs
from fedlap_app.flower.grids.member_grid import MemberGrid
from fedlap_app.flower.server.offline import run_offline

class Grid(InProcessGrid):
    left = {after}
    def _deliver(self, message, context):
        if message.metadata.message_type == "query.offline":
            Grid.left -= 1
            if Grid.left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return super()._deliver(message, context)

config = {config}
settings = parse_settings(config)
grid = MemberGrid(Grid(app, partition_configs(3), config, run_id=new_run_id()))
run_offline(grid, gather(grid, settings), settings)
"""
