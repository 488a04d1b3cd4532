"""Rows under opaque names: a round by hand, refusals, and what crosses the grid."""

from dataclasses import replace

import numpy as np
import pytest
from flwr.app import ArrayRecord
from flwr.common.serde import message_to_proto

from client_app.app import app
from fedlap_app.errors import ConfigError, RunError
from fedlap_app.flower.grids.local_grid import (
    InProcessGrid,
    ProcessGrid,
    folder_configs,
    new_run_id,
    partition_configs,
)
from fedlap_app.flower.grids.member_grid import MemberGrid
from fedlap_app.flower.records import to_arrays
from fedlap_app.flower.server.offline import run_offline
from fedlap_app.flower.server.run import run
from fedlap_app.graphs.federation import load_federation
from fedlap_app.graphs.folder import write_folder
from fedlap_app.models.model_file import ModelFile
from fedlap_app.settings import parse_settings
from fedlap_app.sums.job.secrets import simulated_secrets


@pytest.fixture
def settings(settings):
    return replace(settings, method="fedlap", structure_width=8)


def _rows(message):
    (array,) = message.content["rows"].values()
    return array.numpy()


class KeepingGrid(InProcessGrid):
    """Keeps training messages and replies as they crossed, before the server takes them apart."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.trained, self.wire = [], []

    def _deliver(self, message, context):
        reply = super()._deliver(message, context)
        self.wire += [message_to_proto(m).SerializeToString() for m in (message, reply)]
        if message.metadata.message_type == "train":
            self.trained.append((message.metadata.dst_node_id, _rows(message), _rows(reply)))
        return reply


def keeping(settings, configs=None):
    configs = configs or partition_configs(settings.clients)
    return KeepingGrid(app, configs, settings.to_config(), run_id=new_run_id())


def test_a_round_of_two_organisations_by_hand(settings, observer):
    """What the second round sends is the mean of what the holders of a row returned."""
    settings = replace(settings, clients=2)
    grid = keeping(settings)
    run(grid, settings, observer)
    first, second = grid.trained[:2], grid.trained[2:]
    # Equal start rows are copies of one node: no two nodes start alike.
    known = {}
    for node, start, end in first:
        for place, (before, after) in enumerate(zip(start, end, strict=True)):
            known.setdefault(before.tobytes(), []).append((node, place, after))
    assert max(len(copies) for copies in known.values()) == 2
    sent = {node: start for node, start, _ in second}
    for copies in known.values():
        mean = np.mean([after.astype(np.float64) for _, _, after in copies], axis=0)
        for node, place, _ in copies:
            np.testing.assert_array_equal(sent[node][place], mean.astype(np.float32))


def test_a_client_holds_its_own_nodes_and_their_neighbours_only(settings, observer):
    grid = keeping(settings)
    run(grid, settings, observer)
    parts = load_federation(settings.data_spec)
    sizes = {101 + i: part.num_nodes + part.num_external for i, part in enumerate(parts)}
    total = sum(part.num_nodes for part in parts)
    assert {node: len(start) for node, start, _ in grid.trained} == sizes
    assert max(sizes.values()) < total


def test_no_id_label_feature_edge_or_key_crosses_the_grid(settings, observer, caplog):
    caplog.set_level("DEBUG")
    grid = keeping(settings)
    run(grid, settings, observer)
    wire = b"".join(grid.wire)
    for part in load_federation(settings.data_spec):
        for node in (*part.ids, *part.external_ids):
            assert str(node).encode() not in wire
            assert str(node) not in caplog.text
        for name in (*part.classes, *part.feature_names):
            assert name.encode() not in wire
        for numbers in (part.features, part.edge_index, part.edge_weight, part.labels):
            dense = np.ascontiguousarray(getattr(numbers, "toarray", lambda n=numbers: n)())
            some = dense.ravel()[:64]
            assert len(set(some.tolist())) > 1
            for kind in (dense.dtype, np.float32, np.float64):
                assert some.astype(kind).tobytes() not in wire
        secrets = simulated_secrets(settings.seed, part.name)
        for key in (
            secrets.organisation,
            secrets.identity.signing_key,
            secrets.identity.agreement_key,
        ):
            assert key not in wire
    assert "hide-topology has no effect" in caplog.text


def test_the_group_key_never_crosses_the_grid(settings, observer, monkeypatch):
    from fedlap_app.sums.keyring import KeyRing

    made = []
    group_secret = KeyRing.group_secret

    def watching(self, purpose):
        made.extend([self.group_key, group_secret(self, purpose), *self.roots.values()])
        return group_secret(self, purpose)

    monkeypatch.setattr(KeyRing, "group_secret", watching)
    grid = keeping(settings)
    run(grid, settings, observer)
    wire = b"".join(grid.wire)
    assert len(set(made)) >= 4
    assert not any(key in wire for key in made)


def test_names_of_rows_cross_once(settings, make_grid, observer):
    grid = make_grid(settings)
    run(grid, settings, observer)
    kinds = [message.metadata.message_type for message, _ in grid.seen]
    expected = ["query.join", *["query.offline"] * 3, *["train"] * 2, "evaluate", "evaluate.keep"]
    assert kinds == [kind for kind in expected for _ in range(3)]


def test_the_run_folder_holds_no_rows_and_the_stores_hold_the_own_ones(
    settings, make_grid, observer, own_home
):
    run(make_grid(settings), settings, observer)
    folder = next((own_home / "runs").iterdir())
    model = ModelFile.from_bytes((folder / "model.npz").read_bytes(), "model.npz")
    assert "rows" not in model.parameters
    assert any(name.startswith("structure.") for name in model.parameters)
    for part in load_federation(settings.data_spec):
        path = next((own_home / "stores" / part.name).glob("jobs/train-*/model.npz"))
        kept = ModelFile.from_bytes(path.read_bytes(), "model.npz")
        assert kept.parameters["rows"].shape == (part.num_nodes, 8)
        assert kept.data == part.fingerprint()


def test_the_rows_of_the_best_round_are_kept(settings, observer, own_home, monkeypatch):
    monkeypatch.setattr(
        "fedlap_app.methods.scores.is_better", lambda totals, best, *_: best is None
    )
    settings = replace(settings, rounds=3, clients=2)
    grid = keeping(settings)
    assert run(grid, settings, observer)["best_round"] == 1
    sent = {node: start for node, start, _ in grid.trained[2:4]}
    for index, part in enumerate(load_federation(settings.data_spec)):
        path = next((own_home / "stores" / part.name).glob("jobs/train-*/model.npz"))
        rows = ModelFile.from_bytes(path.read_bytes(), "").parameters["rows"]
        known = {row.tobytes() for row in sent[101 + index]}
        assert all(row.tobytes() in known for row in rows)


@pytest.mark.parametrize("clients", [1, 2, 4, 5])
def test_any_number_of_organisations(settings, make_grid, observer, clients):
    settings = replace(settings, clients=clients)
    summary = run(make_grid(settings), settings, observer)
    assert 0.0 <= summary["accuracy"]["test"] <= 1.0


def test_the_same_seed_gives_the_same_bits_in_any_order_of_nodes(settings, make_grid, observer):
    first = run(make_grid(settings), settings, observer)
    configs = partition_configs(settings.clients)[::-1]
    second = run(make_grid(settings, configs), settings, observer)
    for key in ("accuracy", "loss", "client_accuracy", "best_round"):
        assert first[key] == second[key]


def test_a_process_for_every_message_gives_the_same_bits(settings, make_grid, observer):
    settings = replace(settings, clients=2)
    grid = ProcessGrid(partition_configs(2), settings.to_config(), run_id=new_run_id())
    apart = run(grid, settings, observer)
    together = run(make_grid(settings), settings, observer)
    assert apart["accuracy"] == together["accuracy"]
    assert apart["loss"] == together["loss"]


def test_organisations_without_shared_edges(settings, observer, tmp_path):
    folders = []
    for part in load_federation(settings.data_spec):
        index, weight = part.intra_edges
        none = np.array([], dtype=str)
        alone = replace(
            part, edge_index=index, edge_weight=weight, external_ids=none, external_owners=none
        )
        write_folder(alone, tmp_path / part.name)
        folders.append(tmp_path / part.name)
        with (folders[-1] / "org.toml").open("a") as file:
            file.write("[policy]\ntrust-on-first-use = true\nhide-topology = false\n")
            file.write('training-backends = ["plain"]\n')
    settings = replace(settings, trust_on_first_use=True)
    grid = keeping(settings, folder_configs(folders))
    summary = run(grid, settings, observer)
    assert 0.0 <= summary["accuracy"]["test"] <= 1.0
    starts = [row.tobytes() for _, start, _ in grid.trained[:3] for row in start]
    assert len(set(starts)) == len(starts)


class AlteringGrid(InProcessGrid):
    """Changes the rows of one training message."""

    change = None

    def _deliver(self, message, context):
        if message.metadata.message_type == "train" and message.metadata.dst_node_id == 102:
            (name, array), *_ = message.content["rows"].items()
            self.change(message.content, name, array.numpy())
        return super()._deliver(message, context)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda c, n, x: c.pop("rows"), "carries 0 arrays of rows"),
        (lambda c, n, x: c.update(rows=ArrayRecord()), "carries 0 arrays of rows"),
        (lambda c, n, x: c.update(rows=to_arrays({n: x[:-1]})), "rows of shape .* are held here"),
        (lambda c, n, x: c.update(rows=to_arrays({n: x[:, :-1]})), "'rows' has shape"),
        (lambda c, n, x: c.update(rows=to_arrays({n: x * np.nan})), "'rows' has values that are"),
        (lambda c, n, x: c.update(rows=to_arrays({"00": x})), "no order of the rows of job 00"),
        (lambda c, n, x: c.update(rows=to_arrays({"../x": x})), "is no job id"),
    ],
)
def test_a_client_refuses_wrong_rows_with_one_sentence(settings, observer, change, sentence):
    grid = AlteringGrid(app, partition_configs(3), settings.to_config(), run_id=new_run_id())
    grid.change = change
    with pytest.raises(RunError, match=f"bank-01: .*{sentence}"):
        run(grid, settings, observer)


def test_there_is_no_basis_to_compute(settings, make_grid):
    with pytest.raises(ConfigError, match="method = 'fedlap' computes no spectral basis"):
        run_offline(MemberGrid(make_grid(settings)), [], settings)


def test_settings_that_do_not_fit_are_told(settings):
    with pytest.raises(ConfigError, match="row-operator = 'directed' is not one of"):
        parse_settings({"method": "fedlap", "row-operator": "directed"})
    with pytest.raises(ConfigError, match="spectral = true asks for a basis"):
        replace(settings, spectral=True)
