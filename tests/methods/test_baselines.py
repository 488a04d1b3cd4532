"""Every method trains through the same server and clients, in one process and in one a message."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import fedlap_app as fedlap
from fedlap_app.api.training import conduct
from fedlap_app.api.workplace import quietly
from fedlap_app.errors import ConfigError
from fedlap_app.flower.client import organisation
from fedlap_app.flower.client.organisation import hand_over
from fedlap_app.flower.server.parts import Part
from fedlap_app.graphs.ball import ball_of
from fedlap_app.graphs.graph import join
from fedlap_app.graphs.reach import reach_of, walks
from fedlap_app.knobs import key_of
from fedlap_app.methods.base import Schema
from fedlap_app.methods.hinting import HINT
from fedlap_app.methods.organisation import Organisation as Real
from fedlap_app.methods.personal import likeness
from fedlap_app.methods.registry import BUILT_IN, method_class
from fedlap_app.methods.task import Task
from fedlap_app.settings import parse_settings
from fedlap_app.store.folders import Store
from tests.golden import matrix as golden
from tests.golden.cells import METHODS as GOLDEN

SMALL = {"rounds": 2, "hidden": "8", "self_training": 0}
OPTIONS = {
    "fedsage+": {"generator_width": 4, "generated_rows": 3, "optimizer_state": "keep"},
    "fedstruct": {"structure_width": 4, "walk_steps": 2, "walk_entries": 5},
    "fedpub": {"hidden": "8,8", "proxy_blocks": 1},
    "fedgcn": {"backend": "mask"},
    "fedlap": {"backend": "mask", "structure_width": 4},
    "fedlap+": {
        "backend": "mask", "structure_width": 4, "vectors": 12, "block": 4, "rank": 6,
        "programs": "krylov,neighbour-sums",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def orgs(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    before = os.environ.get("FEDLAP_HOME")
    os.environ["FEDLAP_HOME"] = str(home)
    yield fedlap.load("banks", accounts=240, clients=3)
    os.environ["FEDLAP_HOME"] = before or ""


def trained(orgs, method, **more):
    return fedlap.train(orgs, method, **{**SMALL, **OPTIONS.get(method, {}), **more})


@pytest.mark.parametrize("method", BUILT_IN)
def test_every_method_trains_and_says_what_it_reveals(orgs, method):
    run = trained(orgs, method)
    assert 0.0 < run.accuracy["test"] < 1.0
    assert run.history.shape[0] == 2
    assert np.isfinite(run.history.test_loss).all()
    part = orgs[0]
    rows = run.predict(part.name).query("split == 'test'")
    found = float((rows["label"] == rows["predicted"]).mean())
    if not method_class(method).pooled:
        assert found == pytest.approx(run.summary["client_accuracy"][part.name]["test"])
    says = method_class(method).reveals
    assert len(says) == 3
    assert all(each.endswith(".") and len(each) > 15 for each in says)


@pytest.mark.parametrize("method", [*sorted(OPTIONS.keys() - {"fedlap"}), "fedgta", "fedtad"])
def test_clients_that_know_nothing_but_their_store_give_the_same_bits(orgs, method, monkeypatch):
    """A process for every message builds the organisation anew from data cache and store."""
    run = trained(orgs, method)
    made = []
    monkeypatch.setattr(organisation, "_CACHED", 0)
    monkeypatch.setattr(
        organisation, "Organisation", lambda *a, **k: made.append(1) or Real(*a, **k)
    )
    with quietly():
        again = conduct(run.settings)
    assert len(made) > 3 * len(orgs)
    assert again.history.test_loss.tolist() == run.history.test_loss.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("method", sorted({*BUILT_IN} - {*GOLDEN}))
def test_a_process_for_every_message_gives_the_same_bits(method, tmp_path, monkeypatch):
    """Of the other methods the golden matrix says so."""
    settings = {"dataset": "banks", "accounts": 240, "clients": 2, "rounds": 1, "hidden": "8",
                "self-training": 0, "standardise": "none", "training-backend": "plain",
                "seed": 3, "method": method}  # fmt: skip
    settings |= {key_of(name): value for name, value in OPTIONS.get(method, {}).items()}
    found = []
    for way, place in ((golden.trained, "one"), (golden.run_with_processes, "many")):
        monkeypatch.setenv("FEDLAP_HOME", str(tmp_path / place / "home"))
        (tmp_path / place).mkdir()
        found.append(way(settings, tmp_path / place))
    assert found[0] == found[1]


def test_one_round_of_fedsgd_is_a_step_of_adam_with_the_mean_gradient(orgs):
    """Adam's first step has one size for all parameters; Flower corrects its bias as of step 2."""
    rate = 0.01
    size = rate * (1 - 0.9) / np.sqrt(1 - 0.999) * np.sqrt(1 - 0.999**2) / (1 - 0.9**2)
    options = {"rounds": 1, "weight_decay": 0.0, "dropout": 0.0, "input_dropout": 0.0}
    run = trained(
        orgs, "fedsgd", learning_rate=rate, kept_round="last", training_backend="plain", **options
    )
    settings = run.settings
    shape = Schema(orgs[0].num_features, orgs[0].num_classes)
    start = method_class("fedsgd").of(settings).start(shape, settings.seed, {}).model
    moves = np.concatenate([np.abs(run.parameters[name] - start[name]).ravel() for name in start])
    moved = moves[moves > 1e-7]
    # A gradient near Adam's tau makes a smaller step.
    assert np.mean(np.isclose(moved, size, rtol=0.02)) > 0.97
    assert moved.size > 0.5 * moves.size


def test_neighbour_sums_are_the_input_of_fedgcn(orgs):
    """Two hops of D^-1/2 (A + I) D^-1/2 on the whole graph, wherever nothing was left out."""
    from fedlap_app.sums.programs.neighbour_half import NeighbourResults

    run = trained(orgs, "fedgcn", input_norm=False)
    whole = join(list(orgs))
    A = whole.symmetric_adjacency().toarray() + np.eye(whole.num_nodes)
    root = 1.0 / np.sqrt(A.sum(axis=1))
    twice = np.linalg.matrix_power(root[:, None] * A * root, 2) @ np.asarray(whole.features)
    rows = dict(zip(whole.ids.tolist(), twice, strict=True))
    complete = 0
    for part in orgs:
        store = Store(run.place.folder / "stores" / part.name)
        kept = NeighbourResults(store.root / "neighbour-sums")
        found = kept.load(kept.facts()[0])
        exact = np.array([rows[each] for each in part.ids.tolist()])
        gap = np.abs(found.sums - exact).max(axis=1)
        assert gap[found.complete].max(initial=0.0) < 1e-9
        complete += int(found.complete.sum())
    assert complete > 0


def test_a_node_with_one_foreign_neighbour_gets_nothing_of_it(orgs):
    """The organisation's sum for such a node is that over its own neighbours alone."""
    from fedlap_app.sums.programs.neighbour_half import NeighbourResults

    run = trained(orgs, "fedgcn", neighbour_hops=1, neighbour_scaling="none", rounds=1)
    guarded = 0
    for part in orgs:
        kept = NeighbourResults(run.place.folder / "stores" / part.name / "neighbour-sums")
        found = kept.load(kept.facts()[0])
        near = part.symmetric_adjacency().tocsr()
        own = near[:, : part.num_nodes] @ np.asarray(part.features, dtype=np.float64)
        count = np.diff(near[:, part.num_nodes :].tocsr().indptr)
        alone = count == 1
        np.testing.assert_allclose(found.sums[alone], own[alone], atol=1e-9)
        assert not found.complete[alone].any()
        guarded += int(alone.sum())
    assert guarded > 0


def test_walks_are_powers_of_the_random_walk_and_rows_keep_the_largest():
    dense = (np.random.default_rng(0).random((12, 12)) < 0.3).astype(float)
    dense = np.maximum(dense, dense.T)
    np.fill_diagonal(dense, 0.0)
    step = (dense + np.eye(12)) / (dense + np.eye(12)).sum(axis=1, keepdims=True)
    found = walks(sp.csr_array(dense), 3, 0).toarray()
    np.testing.assert_allclose(found, np.linalg.matrix_power(step, 3), atol=1e-12)
    once = walks(sp.csr_array(dense), 1, 2).toarray()
    for row, full in zip(once, step, strict=True):
        assert np.count_nonzero(row) <= 2
        np.testing.assert_allclose(np.sort(row)[-2:], np.sort(full)[-2:])


def test_walks_out_of_sealed_sums_train_like_those_read_off_the_graph(orgs):
    sealed, read = (trained(orgs, "fedstruct", read_walks=each) for each in (False, True))
    np.testing.assert_allclose(sealed.history.test_loss, read.history.test_loss, rtol=1e-4)
    for name, value in read.parameters.items():
        np.testing.assert_allclose(sealed.parameters[name], value, atol=1e-3)


def test_rows_of_walks_belong_to_the_parts_own_nodes(orgs):
    parts = list(orgs)
    whole = walks(join(parts).in_adjacency(), 2, 5).toarray()
    stacked = np.vstack([reach_of(part, parts, 2, 5).toarray() for part in parts])
    np.testing.assert_allclose(stacked, whole)


@pytest.mark.parametrize("hops", [1, 2])
def test_a_ball_holds_all_nodes_within_its_hops_and_no_foreign_label(orgs, hops):
    import networkx as nx

    parts = list(orgs)
    part, whole = parts[0], join(parts)
    graph = nx.from_edgelist(whole.ids[whole.edge_index.T].tolist())
    graph.add_nodes_from(whole.ids.tolist())
    near = nx.multi_source_dijkstra_path_length(graph, set(part.ids.tolist()), cutoff=hops)
    ball = ball_of(part, parts, hops)
    assert set(ball.ids.tolist()) == set(near)
    assert ball.ids[: part.num_nodes].tolist() == part.ids.tolist()
    assert (ball.labels[part.num_nodes :] == -1).all()
    inside = nx.induced_subgraph(graph, ball.ids.tolist()).number_of_edges()
    assert ball.edge_index.shape[1] == 2 * inside


def test_a_deployed_organisation_hands_no_raw_features_out(orgs, tmp_path):
    settings = parse_settings({"method": "fedgcn", "raw-ball": True, "clients": 3})
    deployed = Real(orgs[0], settings, Store(tmp_path / "store"), folder=tmp_path)
    with pytest.raises(ConfigError, match="for simulations"):
        deployed.inputs(Task(1))
    simulated = hand_over(orgs[0], settings, None, [Part(each) for each in orgs])
    assert simulated.inputs(Task(1)).num_nodes > orgs[0].num_nodes


def test_equal_shares_make_fedpub_the_plain_mean_and_masks_stay():
    settings = parse_settings({"method": "fedpub", "similarity-scale": 0.0})
    method = method_class("fedpub").of(settings)
    state = method.start(Schema(4, 2), 0, {})
    models = [
        {name: np.full_like(value, number) for name, value in state.model.items()}
        for number in (1.0, 2.0, 6.0)
    ]
    updates = {
        f"org-{number}": {"arrays": model, HINT: {"embedding": np.eye(3)[number]}}
        for number, model in enumerate(models)
    }
    after = method.join(state, state.model, updates)
    for number, member in enumerate(updates):
        got = method.send(after, member)["arrays"]
        assert all(
            (value == ([1.0, 2.0, 6.0][number] if name.startswith("masks.") else 3.0)).all()
            for name, value in got.items()
        )


def test_fedpub_and_fedgta_weigh_those_alike():
    pub = method_class("fedpub").of(parse_settings({"method": "fedpub", "similarity-scale": 3.0}))
    rows = pub.shares([{"embedding": np.array(v)} for v in ([1.0, 0.0], [1.0, 0.0], [0.0, 1.0])])
    scaled = np.exp(3.0 * np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]]))
    np.testing.assert_allclose(rows, scaled / scaled.sum(axis=1, keepdims=True))
    gta = method_class("fedgta").of(parse_settings({"method": "fedgta"}))
    hints = [
        {"moments": np.array(v), "confidence": np.array([c])}
        for v, c in (([1.0, 0.0], 1.0), ([1.0, 0.1], 3.0), ([0.0, 1.0], 5.0))
    ]
    np.testing.assert_allclose(gta.shares(hints), [[0.25, 0.75, 0], [0.25, 0.75, 0], [0, 0, 1]])
    assert likeness([np.zeros(2), np.ones(2)])[0].tolist() == [0.0, 0.0]


def test_what_needs_single_updates_says_so():
    assert {n for n in BUILT_IN if method_class(n).single_updates} == {
        "fedpub",
        "fedgta",
        "fedtad",
        "fedsage+",
    }


def test_the_median_file_of_a_method_is_short():
    files = {method_class(name).__module__ for name in BUILT_IN}
    root = Path(fedlap.__file__).parents[1]
    counts = [
        len((root / f"{each.replace('.', '/')}.py").read_text().splitlines()) for each in files
    ]
    assert np.median(counts) < 150


@pytest.mark.parametrize("method", ["fedsgd", "fedpub"])
def test_bytes_grow_with_rounds_and_the_model_as_in_the_paper(orgs, method):
    """O(E K |theta|): twice the rounds, twice the bytes; wider layers, as much more."""

    def sent(**more):
        run = trained(orgs, method, patience=0, **more)
        size = sum(value.size for value in run.parameters.values())
        return np.mean(list(run.summary["bytes_up"].values())), size

    wide = {"hidden": "16,16" if method == "fedpub" else "16"}
    (two, small), (four, _), (six, _) = sent(rounds=2), sent(rounds=4), sent(rounds=6)
    np.testing.assert_allclose(six - four, four - two, rtol=0.02)
    each = (four - two) / 2
    broad = sent(rounds=4, **wide), sent(rounds=2, **wide)
    more = (broad[0][0] - broad[1][0]) / 2
    np.testing.assert_allclose(more - each, 4 * (broad[0][1] - small), rtol=0.05)


def test_rows_of_fedlap_cost_their_width_times_the_nodes_held_in_every_round(orgs):
    """O(E K d n) beside the model: of own nodes and of copies of foreign ones."""

    def sent(width):
        run = trained(orgs, "fedlap", structure_width=width, patience=0)
        bias = sum(v.size for name, v in run.parameters.items() if name != "rows")
        return np.array([run.summary["bytes_up"][part.name] for part in orgs]) - 2 * 4 * bias

    four, eight, twelve = sent(4), sent(8), sent(12)
    held = np.array([part.num_nodes + part.num_external for part in orgs])
    np.testing.assert_allclose(eight - four, 2 * 4 * 4 * held, rtol=0.02)
    np.testing.assert_allclose(twelve - eight, 2 * 4 * 4 * held, rtol=0.02)


def test_a_saved_run_predicts_with_its_sums(orgs, tmp_path):
    run = trained(orgs, "fedgcn")
    before = run.predict(orgs.names[1])
    run.save(tmp_path / "run")
    again = fedlap.open_run(tmp_path / "run")
    run.place.folder.rename(tmp_path / "gone")
    assert again.predict(orgs.names[1]).equals(before)
    (tmp_path / "gone").rename(run.place.folder)


def test_generated_rows_are_judged_by_the_others_and_their_sum_comes_back(orgs):
    """The server passes rows on and returns the mean gradient towards the others' nodes."""
    method = method_class("fedsage+").of(parse_settings({"method": "fedsage+"}))
    state = method.start(Schema(12, 3), 0, {})
    rows = {name: np.full((2, 12), number, np.float32) for number, name in enumerate("abc")}

    def updates(scale):
        return {
            name: {
                "arrays": {key: np.full_like(value, number) for key, value in state.model.items()},
                "generated": {"rows": rows[name]},
                "gradients": {o: scale * rows[name] for o in "abc" if o != name and scale},
            }
            for number, name in enumerate("abc")
        }

    first = method.join(state, state.model, updates(0.0))
    sent = method.send(first, "a")
    assert set(sent["wanted"]) == {"b", "c"}
    assert "gradients" not in sent
    assert all((v == 0.0).all() for k, v in sent["arrays"].items() if k.startswith("generator."))
    second = method.send(method.join(first, state.model, updates(1.0)), "a")
    np.testing.assert_allclose(second["gradients"]["rows"], (rows["b"] + rows["c"]) / 2)
    own = method.send(second_state := method.join(first, state.model, updates(1.0)), "c")
    assert all((v == 2.0).all() for k, v in own["arrays"].items() if k.startswith("generator."))
    assert second_state.rest[1]["b"] is rows["b"]


def test_a_gradient_draws_a_row_to_the_mean_of_the_nearest_group():
    import torch

    from fedlap_app.models.mended import GROUP, group_means, pull

    rng = np.random.default_rng(0)
    places = np.repeat(10.0 * np.arange(4), GROUP)[rng.permutation(4 * GROUP)]
    own = (places[:, None] + rng.normal(size=(places.size, 3), scale=0.1)).astype(np.float32)
    means = group_means(torch.from_numpy(own))
    expected = [own[places == 10.0 * at].mean(axis=0) for at in range(4)]
    np.testing.assert_allclose(sorted(means.tolist()), sorted(map(list, expected)), rtol=1e-5)
    row = np.full((2, 3), 11.0, np.float32)
    np.testing.assert_allclose(pull(row, means), (row - expected[1]) / 3, rtol=1e-4)
    few = torch.from_numpy(own[: GROUP - 1])
    assert not pull(row, group_means(few)).any()
    whole = group_means(torch.from_numpy(own[: 2 * GROUP - 1]))
    np.testing.assert_allclose(whole[0], own[: 2 * GROUP - 1].mean(axis=0), rtol=1e-4, atol=1e-6)


def test_a_grown_part_has_a_node_for_the_foreign_neighbours_of_each_node(orgs):
    from fedlap_app.models.mended import grown

    part = orgs[0]
    found = grown(part)
    weight = part.symmetric_adjacency()[:, part.num_nodes :].sum(axis=1)
    assert found.num_nodes == part.num_nodes + np.count_nonzero(weight)
    np.testing.assert_allclose(found.degrees()[: part.num_nodes], part.degrees())


@pytest.mark.parametrize("method", ["fedpub", "fedsage+"])
def test_a_network_without_features_to_read_is_refused(method):
    bare = method_class(method).of(parse_settings({"method": method}))
    with pytest.raises(ConfigError, match="the nodes have no features, which this network reads"):
        bare.model(Schema(0, 3), 0)
