"""Tables as they are: huge numbers, text and missing values, from frames and from folders."""

import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import fedlap_app as fedlap
from fedlap_app.api.organisations import in_memory
from fedlap_app.cli import main
from fedlap_app.errors import ConfigError, DataError, RunError
from fedlap_app.graphs.graph import join
from fedlap_app.graphs.kinds import SLOTS

N = 240


@pytest.fixture
def table():
    """Nodes whose class follows from an amount in cents, a country and whether an age is known."""
    rng = np.random.default_rng(4)
    label = rng.integers(3, size=N)
    amount = 3e6 + 2e4 * (rng.normal(size=N) + 2.5 * (label == 0))
    country = np.array(["de", "fr", "it"])[np.where(rng.random(N) < 0.9, label, 0)]
    age = np.where(label == 1, np.nan, 40 + 5 * rng.normal(size=N))
    nodes = pd.DataFrame(
        {
            "id": [f"n{i:03d}" for i in range(N)],
            "label": [f"class-{i}" for i in label],
            "split": np.array(["train", "val", "test"])[np.arange(N) % 3],
            "amount": amount,
            "country": country,
            "age": age,
        }
    )
    nodes.loc[5, "country"] = None
    edges = pd.DataFrame({"source": nodes["id"], "target": np.roll(nodes["id"], 1)})
    return nodes, edges


@pytest.fixture
def orgs(table):
    return fedlap.split(*table, clients=4, partition="random")


CLEAR = {
    "rounds": 15, "hidden": "16", "self_training": 0, "patience": 0, "dropout": 0.0,
    "input_dropout": 0.0, "model": "decoupled", "hops": 0, "backend": "mask", "learning_rate": 0.03,
}  # fmt: skip


def settings_for(method):
    alone = method in ("local", "central")
    return {k: v for k, v in CLEAR.items() if not (alone and k == "backend")}


def test_frames_say_what_their_columns_are(orgs):
    assert orgs[0].kinds == ("", "category", "number")
    assert orgs[0].feature_names == ("amount", "country", "age")
    assert orgs[0].num_inputs == 1 + SLOTS + 2
    assert set(join(list(orgs)).categories[:, 0]) == {"de", "fr", "it", ""}


def test_kinds_may_be_given(table):
    nodes, edges = table
    coded = nodes.assign(country=nodes["country"].map({"de": 1, "fr": 2, "it": 3}))
    orgs = fedlap.split(coded, edges, clients=3, kinds={"country": "category"})
    assert orgs[0].kinds[1] == "category"
    with pytest.raises(DataError, match="kinds names 'town'"):
        fedlap.split(coded, edges, kinds={"town": "category"})


@pytest.mark.parametrize("method", ["fedavg", "central", "local"])
def test_a_table_is_learned_from_as_it_is(orgs, method):
    run = fedlap.train(orgs, method, **settings_for(method))
    assert run.accuracy["test"] > 0.8


def test_a_run_predicts_with_what_it_learned(orgs, tmp_path):
    run = fedlap.train(orgs, "fedavg", **settings_for("fedavg"))
    name = orgs.names[0]
    found = run.predict(name)
    part = orgs[name]
    told = found[found["split"] == "test"]
    assert (told["label"] == told["predicted"]).mean() == run.scores.loc[name, "test"]
    run.save(tmp_path / "kept")
    assert fedlap.open_run(tmp_path / "kept").predict(name).equals(found)
    assert run.model.state_dict()[next(iter(run.model.state_dict()))] is not None
    assert part.num_features == 3


def test_new_rows_are_read_like_those_it_was_trained_on(orgs, tmp_path):
    folder = tmp_path / "orgs"
    orgs.save(folder)
    read = fedlap.read(folder)
    run = fedlap.train(read, "fedavg", store=tmp_path / "home", **settings_for("fedavg"))
    name = read.names[1]
    before = run.predict(name).set_index("id")["predicted"]
    nodes = pd.read_csv(folder / name / "nodes.csv", dtype=str, keep_default_na=False)
    new = {"id": "new", "label": "", "split": "", "amount": "3050000", "country": "xx", "age": ""}
    pd.concat([nodes, pd.DataFrame([new])]).to_csv(folder / name / "nodes.csv", index=False)
    done = CliRunner().invoke(main, ["predict", str(folder / name), "--run", str(run.folder)])
    assert done.exit_code == 0, done.output
    after = pd.read_csv(folder / name / "predictions.csv").set_index("id")["predicted"]
    assert "new" in after.index
    assert (after[before.index] == before).mean() > 0.95


def test_a_folder_keeps_text_and_gaps(orgs, tmp_path):
    orgs.save(tmp_path / "orgs")
    for part in fedlap.read(tmp_path / "orgs"):
        assert part.fingerprint() == orgs[part.name].fingerprint()


def test_undeclared_text_and_gaps_are_refused_with_what_to_write(orgs, tmp_path):
    orgs.save(tmp_path / "orgs")
    path = tmp_path / "orgs" / orgs.names[0] / "org.toml"
    path.write_text("\n".join(path.read_text().splitlines()[:3]) + "\n")
    with pytest.raises(DataError, match=re.escape('kinds = {country = "category"}')):
        fedlap.read(tmp_path / "orgs")
    path.write_text(path.read_text() + 'kinds = {country = "category"}\n')
    with pytest.raises(DataError, match=re.escape('kinds = {age = "number"}')):
        fedlap.read(tmp_path / "orgs")


def test_check_says_what_it_sees_and_what_is_done(orgs, tmp_path):
    orgs.save(tmp_path / "orgs")
    done = CliRunner().invoke(main, ["check", str(tmp_path / "orgs")])
    assert done.exit_code == 0, done.output
    assert "amount: from 2.9" in done.output
    assert "different texts: 3, 1 missing; 32 columns: one for each of 3 texts" in done.output
    assert "standardised; a second column says where it is missing" in done.output


def test_categories_need_others(orgs):
    with pytest.raises((ConfigError, RunError), match="set standardise = 'together'"):
        fedlap.train(orgs, "fedavg", standardise="alone", **settings_for("fedavg"))


@pytest.mark.parametrize(("data", "chosen"), [("banks", "all"), ("digits", "one")])
def test_no_linear_rescaling_of_a_column_changes_the_result(data, chosen):
    size = {"accounts": 600} if data == "banks" else {}
    orgs = fedlap.load(data, clients=3, **size)
    columns = orgs[0].num_features
    moved = np.ones(columns) if chosen == "all" else np.eye(columns)[columns // 2]
    scale, offset = 1 + 19_999 * moved, 30_000 * moved
    other = in_memory(
        [
            part.with_features(
                (part.features * scale + offset).astype(np.float32), part.feature_names
            )
            for part in orgs
        ],
        seed=orgs.seed,
    )
    quick = {"rounds": 6, "self_training": 0, "patience": 0, "backend": "mask"}
    first, second = (fedlap.train(each, "fedavg", **quick) for each in (orgs, other))
    assert abs(first.accuracy["test"] - second.accuracy["test"]) <= 0.005
