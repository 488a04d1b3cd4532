"""A server of sealed training that wants the gradient, or the update, of one organisation alone.

It puts its questions between the messages of an honest run, which ends all the same.
"""

import copy
from dataclasses import replace

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict

from client_app.app import app
from fedlap_app.errors import RunError
from fedlap_app.flower.asked import MESSAGE_TYPE
from fedlap_app.flower.grids.local_grid import InProcessGrid, folder_configs, new_run_id
from fedlap_app.flower.records import to_arrays
from fedlap_app.flower.server.observer import Unwatched
from fedlap_app.flower.server.run import run

from .scene import Scene

SINGLE = [
    {"optimizer": "sgd", "local_epochs": 1},
    {"optimizer_at": "server"},
    {"method": "fedsgd"},
]


@pytest.fixture
def sealed(small):
    return replace(
        small, training_backend="mask", spectral=False, clients=4, rounds=1, standardise="alone",
        publish_scores=False,
    )  # fmt: skip


class Asking(InProcessGrid):
    """Asks the victim questions of its own before the first honest message of each kind."""

    def __init__(self, scene, *, asked=4, **changed):
        self.settings = replace(scene.settings, **changed)
        configs = folder_configs([*scene.folders.values()][:asked])
        super().__init__(app, configs, self.settings.to_config(), run_id=new_run_id())
        self.answers, self.replies = {}, []

    def train(self):
        run(self, self.settings, Unwatched())
        return self

    def _deliver(self, message, context):
        honest = copy.deepcopy(message.content)
        step = honest.get("config", {}).get("kind")
        if step in ("weigh", "turn") and context.node_id == min(self.get_node_ids()):
            for what, (kind, content) in {**lists(honest), **models(honest)}.items():
                if (step, what) not in self.answers:
                    reply = super()._deliver(Message(content, context.node_id, kind), context)
                    self.answers[step, what] = reply.content
        reply = super()._deliver(message, context)
        self.replies.append(reply.content)
        return reply


def about(honest, **changed):
    """The honest message with another config."""
    config = ConfigRecord({**honest["config"], **changed})
    return MESSAGE_TYPE, RecordDict({**honest, "config": config})


def lists(honest):
    """The honest message about other members than those of the job."""
    names, found = honest["config"]["members"], {}
    few = names[:1], names[:2], names[::3], names[:1] * 3
    for listed in (*few, [*names[:2], "own"], names[1:]):
        for attempt in (0, 1):
            found[*listed, attempt] = about(honest, members=listed, attempt=attempt)
    return found


def models(honest):
    """The honest message with a model beside it or in place of a sum, and plain messages."""
    crafted = to_arrays({"weight": np.full((8, 8), 3.0, np.float32)})
    config, found = honest["config"], {}
    for name in ("arrays", "model", "config", "sum", "weights"):
        found[f"arrays as {name}"] = MESSAGE_TYPE, RecordDict({**honest, name: crafted})
    named = {**config, "number": 1, "data": crafted["weight"].data}
    found["a sum of its own"] = MESSAGE_TYPE, RecordDict({**honest, "sum": ConfigRecord(named)})
    if "weights" in honest:
        found["weights"] = MESSAGE_TYPE, RecordDict({**honest, "weights": ConfigRecord(named)})
    plain = ConfigRecord({"run": config["run"], "stage": 0, "server-round": 1})
    for kind in ("train", "evaluate", "evaluate.keep"):
        found[kind] = kind, RecordDict({"arrays": crafted, "config": plain})
    return found


@pytest.mark.parametrize("changed", SINGLE)
def test_no_single_gradient_is_asked_for_under_the_defaults(sealed, tmp_path, changed):
    grid = Asking(Scene(tmp_path, sealed), **changed)
    with pytest.raises(RunError, match=r"\(server-steps\)"):
        grid.train()
    assert len(grid.replies) == 4
    assert all(set(content) == {"refusal"} for content in grid.replies)


def test_no_gradient_of_fewer_than_three_where_gradients_are_allowed(sealed, tmp_path):
    scene = Scene(tmp_path, sealed)
    for name in scene.names:
        scene.add(name, "policy", "server-steps = true")
    grid = Asking(scene, optimizer_at="server").train()
    left_out = [(step, (*scene.names[1:], n)) for step in ("weigh", "turn") for n in (0, 1)]
    for what in left_out:  # it says which sums it has taken in, and contributes nothing
        assert set(grid.answers.pop(what)["reply"]) == {"mark"}
    assert len(grid.answers) == 19 + 20
    for what, content in grid.answers.items():
        assert set(content) == {"refusal"}, what
        assert "unforeseen" not in content["refusal"], what
    for content in grid.replies:  # the honest ones, after it all
        assert "refusal" not in content
        assert not any(isinstance(record, ArrayRecord) for record in content.values())


@pytest.mark.parametrize("asked", [1, 2])
def test_no_job_of_one_or_two_organisations_seals_anything(sealed, tmp_path, asked):
    grid = Asking(Scene(tmp_path, sealed), asked=asked, clients=asked)
    with pytest.raises(RunError, match=f"sum of {asked} members was asked for and 3 are the"):
        grid.train()
    sealed = [content["reply"] for content in grid.replies if "mark" in content.get("reply", {})]
    assert not sealed
    assert "refusal" in grid.replies[-1]
