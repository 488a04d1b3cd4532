"""A server that lets a run work with the job, or the result, of another one."""

from dataclasses import replace

import numpy as np
import pytest
from flwr.app import ConfigRecord, Message, RecordDict

from client_app.app import app
from fedlap_app.flower.grids.local_grid import InProcessGrid, folder_configs, new_run_id
from fedlap_app.flower.records import to_arrays
from fedlap_app.methods.base import Schema
from fedlap_app.methods.fedlap_plus import FedLapPlus
from fedlap_app.models.parameters import parameters_of
from fedlap_app.store.packing import pack
from fedlap_app.sums.job.messages import Request

from .scene import RefusedError

VICTIM = "bank-01"
OTHER = [{"operator": "laplacian"}, {"vectors": 9}, {"block": 2}, {"layout": "boundary"}]


@pytest.fixture
def finished(scene):
    """The job of a basis that all hold."""
    coordinator = scene.run("h1")
    assert coordinator.done
    return coordinator.roster.job


@pytest.mark.parametrize("changes", OTHER)
def test_a_basis_of_other_settings_is_not_reused(scene, finished, changes):
    cards = [scene.card(name, "h2", **changes) for name in scene.names]
    request = Request("reuse", finished, 0, pack(b"h2", *cards))
    with pytest.raises(RefusedError, match="holds no result of job"):
        scene.ask(VICTIM, request, **changes)
    cards = [scene.card(name, "h3") for name in scene.names]
    scene.ask(VICTIM, Request("reuse", finished, 0, pack(b"h3", *cards)))


@pytest.mark.parametrize("changes", [{}, *OTHER])
def test_no_run_trains_with_a_basis_of_other_settings(scene, finished, changes):
    settings = replace(scene.settings, **{"method": "fedlap+", **changes})
    run = new_run_id()
    configs = folder_configs([scene.folders[VICTIM]])
    grid = InProcessGrid(app, configs, settings.to_config(), run_id=run)

    def ask(kind, content):
        (node,) = grid.get_node_ids()
        (reply,) = grid.send_and_receive([Message(content, node, kind)])
        return reply.content

    shape = ask("query.join", RecordDict({"config": ConfigRecord({"version": "any"})}))["member"]
    schema = Schema(shape["num-features"], shape["num-classes"])
    model = parameters_of(FedLapPlus.of(settings).model(schema, settings.seed))
    task = {"run": run, "stage": 0, "server-round": 1, "found.krylov": finished}
    reply = ask("train", RecordDict({"arrays": to_arrays(model), "config": ConfigRecord(task)}))
    if changes:
        assert "there is no basis of job" in str(reply["refusal"]["reason"])
    else:
        moved = {name: array.numpy() for name, array in reply["arrays"].items()}
        assert any(np.abs(moved[name] - model[name]).max() > 0 for name in model)


@pytest.mark.parametrize("kind", ["cards", "pairs", "sums", "share"])
def test_a_message_of_one_job_is_none_of_another(scene, kind):
    """The same members and settings, so that nothing but the job differs."""
    first, second = scene.run("h1"), scene.run("h2")
    jobs = first.roster.job, second.roster.job
    seen = {r.job: r for n, r, _ in scene.log if (n, r.kind) == (VICTIM, kind)}
    if kind not in {r.kind for r in seen.values()}:
        pytest.skip("the leader alone is told")
    third = scene.run("h3", rounds={"cards": 1, "pairs": 2}.get(kind, 4))
    honest = third.requests[VICTIM]
    for job in jobs:
        altered = replace(seen[job], job=honest.job, step=honest.step)
        with pytest.raises(RefusedError):
            scene.ask(VICTIM, altered)
