"""The phase with ciphertexts over Flower's messages: clients that die, and what the server sees."""

from dataclasses import replace

import numpy as np
import pytest

from client_app.app import app
from fedlap_app.flower.grids.local_grid import (
    InProcessGrid,
    ProcessGrid,
    new_run_id,
    partition_configs,
)
from fedlap_app.sums.job.live import forget as forget_live

from .conftest import bases, phase
from .test_deaths import KillingGrid, MortalGrid

OFFLINE = "query.offline"


@pytest.fixture(params=["auto", "tenseal-default"])
def sealed(request, settings):
    return replace(settings, backend="ckks", profile=request.param)


def close(first, second):
    """Whether two phases span the same space up to the noise of ciphertexts."""
    assert first.keys() == second.keys()
    one, other = (np.vstack([found[name] for name in sorted(found)]) for found in (first, second))
    return np.linalg.norm(one @ one.T - other @ other.T, 2) < 1e-6


def body(reply):
    return reply.content["reply"].get("body", b"")


class TwiceGrid:
    """Asks every client twice, each time a new one; both answers must be the same bytes."""

    asked = 0

    def _deliver(self, message, context):
        forget_live()
        first = super()._deliver(message, context)
        if message.metadata.message_type != OFFLINE:
            return first
        forget_live()
        again = super()._deliver(message, context)
        assert body(first) == body(again)
        self.asked += bool(body(first))
        return again


class TwiceInProcess(TwiceGrid, InProcessGrid):
    """In one process that forgets."""


class TwiceInProcesses(TwiceGrid, ProcessGrid):
    """In processes of their own."""


def test_a_new_client_for_every_message_repeats_the_stored_bytes(sealed, undisturbed):
    grid = TwiceInProcess(app, partition_configs(3), sealed.to_config(), run_id=new_run_id())
    phase(grid, sealed)
    assert grid.asked == 3 * 8
    assert close(bases(sealed), undisturbed)


@pytest.mark.slow
def test_a_new_process_for_every_message_repeats_the_stored_bytes(sealed, undisturbed):
    grid = TwiceInProcesses(partition_configs(3), sealed.to_config(), run_id=new_run_id())
    phase(grid, sealed)
    assert grid.asked == 3 * 8
    assert close(bases(sealed), undisturbed)


@pytest.mark.parametrize("death", ["before", "after"])
def test_a_client_that_dies_is_asked_again(sealed, undisturbed, death):
    deaths = dict.fromkeys(range(1, 40, 5), death)
    config = sealed.to_config()
    grid = MortalGrid(app, partition_configs(3), config, run_id=new_run_id(), deaths=deaths)
    phase(grid, sealed)
    assert not {number for number in grid.deaths if number <= 24}
    assert close(bases(sealed), undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "within", "after"])
def test_killed_processes_change_nothing(settings, undisturbed, moment):
    sealed = replace(settings, backend="ckks")
    config = sealed.to_config()
    grid = KillingGrid(partition_configs(3), config, run_id=new_run_id(), moment=moment)
    phase(grid, sealed)
    assert grid.killed == 8
    assert close(bases(sealed), undisturbed)


def view(grid):
    """What the server sees of every message: who, what kind, and how long each part is."""
    seen = []
    for message, reply in grid.seen:
        for each in (message, reply):
            parts = {
                (record, key): len(value) if isinstance(value, bytes | str | list) else value
                for record, content in each.content.items()
                for key, value in content.items()
            }
            seen.append((message.metadata.dst_node_id, each.metadata.message_type, parts))
    return seen


def test_other_edges_give_the_server_the_same_view(sealed, make_grid, tmp_path):
    views = []
    for neighbours in (3, 9):
        chosen = replace(
            sealed,
            dataset="digits",
            partition="random",
            neighbours=neighbours,
            store_dir=str(tmp_path / str(neighbours)),
        )
        grid = make_grid(chosen)
        phase(grid, chosen)
        views.append([each for each in view(grid) if each[1] == OFFLINE])
    assert len(views[0]) == 2 * 3 * 8
    assert views[0] == views[1]
