from dataclasses import replace
from functools import partial

import pytest
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp

import fedlap_app
from fedlap_app.errors import RunError
from fedlap_app.flower.client import handlers
from fedlap_app.flower.grids.member_grid import Member, MemberGrid
from fedlap_app.flower.server.federation import FEDERATION, compare, gather
from fedlap_app.flower.server.run import run
from fedlap_app.settings import Settings


def member(name="a", **changes):
    facts = {
        "name": name,
        "node_id": 1,
        "version": fedlap_app.__version__,
        "settings": Settings().digest(),
        "schema": "s",
        "classes": 3,
        "features": 2,
        "examples": 5,
    }
    return Member(**{**facts, **changes})


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (member("a"), "two nodes say that they are a"),
        (member("b", version="0.0.1"), "b runs version 0.0.1"),
        (member("b", settings="x"), "b sees other settings"),
        (member("b", classes=4), "b has 4 classes and a 3"),
        (member("b", features=9), "b has 9 features and a 2"),
        (member("b", schema="t"), "b and a name their classes or features differently"),
    ],
)
def test_organisations_that_do_not_fit_are_named(other, sentence):
    with pytest.raises(RunError, match=sentence):
        compare([member("a"), other], Settings())


def test_somebody_must_have_a_training_node():
    plain = replace(Settings(), training_backend="plain")
    some = {"settings": plain.digest()}
    with pytest.raises(RunError, match="no organisation has a labelled training node"):
        compare([member("a", examples=0, **some), member("b", examples=0, **some)], plain)
    compare([member("a", examples=0, **some), member("b", **some)], plain)


def test_members_come_in_the_order_of_their_names(settings, make_grid):
    members = gather(MemberGrid(make_grid(settings)), settings)
    names = [each.name for each in members]
    assert names == sorted(names)
    assert len(names) == settings.clients


def test_missing_organisations_are_counted(settings, make_grid):
    grid = make_grid(settings)
    wanted = replace(settings, clients=5, join_timeout=1.0)
    with pytest.raises(RunError, match="3 of 5 organisations are connected"):
        gather(MemberGrid(grid), wanted)


class NamingGrid(MemberGrid):
    """Knows under which names the nodes were registered."""

    names = ("bank-00", "bank-01", "bank-02")

    def registered_names(self):
        return dict(zip(sorted(self.get_node_ids()), self.names, strict=False))


@pytest.fixture
def federation_file(tmp_path, monkeypatch):
    """A file with four members, named as the start script of the SuperLink does."""
    from fedlap_app.deploy.demo import make_demo
    from fedlap_app.graphs.federation import DataSpec

    made = make_demo(tmp_path / "demo", DataSpec(dataset="banks", clients=4, accounts=240))
    monkeypatch.setenv(FEDERATION, str(made.superlink / "federation.toml"))


@pytest.mark.parametrize("clients", [0, 4])
def test_missing_members_of_a_federation_file_are_named(
    settings, make_grid, federation_file, clients
):
    grid = NamingGrid(make_grid(settings))
    wanted = replace(settings, clients=clients, join_timeout=1.0)
    with pytest.raises(RunError, match=r"^bank-03 did not connect within 1 s: start the proc"):
        gather(grid, wanted)


def test_a_member_with_the_data_of_another_is_named(settings, make_grid, federation_file):
    grid = NamingGrid(make_grid(settings))
    grid.names = ("bank-00", "bank-03", "bank-02")
    with pytest.raises(RunError, match="SuperNode of bank-03 has the data of bank-01: set FEDLAP"):
        gather(grid, settings)


def test_too_many_nodes_are_refused(settings, make_grid):
    grid = make_grid(settings)
    with pytest.raises(RunError, match="clients = 2 but 3 nodes are connected"):
        gather(MemberGrid(grid), replace(settings, clients=2))


def failing_app(mode):
    """A ClientApp whose second bank fails in training."""
    from fedlap_app.flower.client.answer import answer
    from fedlap_app.flower.client.organisation import organisation_of

    app = ClientApp()

    @app.query("join")
    def join(message, context):
        return answer(message, context, partial(handlers.join, run=context.run_id))

    @app.train()
    def train(message, context):
        if organisation_of(context).name.endswith("1"):
            if mode == "raise":
                raise RuntimeError("out of memory")
            raise_in = {"data": _data_error, "surprise": _surprise}[mode]
            return answer(message, context, raise_in)
        handler = partial(handlers.train, run=context.run_id, state=context.state)
        return answer(message, context, handler)

    return app


def _data_error(organisation, content):
    from fedlap_app.errors import DataError

    raise DataError(f"node {organisation.subgraph.ids[0]} is bad")


def _surprise(organisation, content):
    raise KeyError(str(organisation.subgraph.ids[0]))


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("raise", "bank-01: .*out of memory"),
        ("data", "bank-01: its data cannot be used"),
        ("surprise", "bank-01: KeyError in the client"),
    ],
)
def test_a_failing_client_is_named_and_its_data_is_not(
    settings, make_grid, observer, own_home, mode, sentence
):
    grid = make_grid(settings, app=failing_app(mode))
    with pytest.raises(RunError, match=sentence) as caught:
        run(grid, settings, observer)
    if mode != "raise":
        log = next((own_home / "stores").rglob("errors.log")).read_text()
        identifier = log.split("node ")[1].split()[0] if mode == "data" else log.split("'")[1]
        assert identifier not in str(caught.value)


class DeafGrid:
    """Mixed into a grid: never delivers to one node."""

    def _answer(self, message):
        if message.metadata.dst_node_id == 102 and message.metadata.message_type == "train":
            return None
        return super()._answer(message)


def test_a_silent_client_is_named(settings, observer):
    from client_app.app import app
    from fedlap_app.flower.grids.local_grid import InProcessGrid, partition_configs

    class Grid(DeafGrid, InProcessGrid):
        pass

    settings = replace(settings, step_timeout=1.0)
    grid = Grid(app, partition_configs(3), settings.to_config())
    with pytest.raises(RunError, match="no reply from bank-01 within 1 s"):
        run(grid, settings, observer)


def test_bad_messages_are_refused_with_a_reason(settings, make_grid):
    grid = make_grid(settings)
    empty = RecordDict({"config": ConfigRecord({})})
    message = Message(content=empty, dst_node_id=101, message_type="train")
    with pytest.raises(RunError, match="carries no server-round"):
        MemberGrid(grid).send_and_receive([message], timeout=5)
    gather(MemberGrid(grid), settings)
    facts = {"run": grid.run.run_id, "stage": 0, "server-round": 1}
    task = RecordDict({"config": ConfigRecord(facts)})
    message = Message(content=task, dst_node_id=101, message_type="train")
    with pytest.raises(RunError, match="carries no model"):
        MemberGrid(grid).send_and_receive([message], timeout=5)
