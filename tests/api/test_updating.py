"""A run that is brought up to date with a graph that changed."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import fedlap_app as fedlap
from fedlap_app.api.organisations import in_memory
from fedlap_app.api.updating import settings_elsewhere
from fedlap_app.cli import main
from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs.folder import write_folder
from fedlap_app.graphs.without import without
from fedlap_app.settings import parse_settings

SMALL = {"rounds": 3, "hidden": "8", "vectors": 24, "block": 4, "backend": "mask"}
SMALL |= {"self_training": 0}


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """Organisations, and a run on what they held before some nodes came."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDLAP_HOME", str(tmp_path_factory.mktemp("home")))
        orgs = fedlap.load("banks", clients=3, accounts=300)
        gone = np.concatenate([part.ids[::40] for part in orgs])
        before = in_memory([without(part, gone) for part in orgs], seed=0)
        yield in_memory(list(orgs), seed=0), before, fedlap.train(before, **SMALL)


def test_nothing_is_done_when_too_little_changed(earlier):
    now, before, run = earlier
    assert fedlap.update(run, before).how == "unchanged"
    found = fedlap.update(run, now, if_changed=0.5)
    assert (found.run, found.how) == (None, "unchanged")
    for part, old in zip(now, before, strict=True):
        assert found.changes[part.name].nodes_added == part.num_nodes - old.num_nodes
    assert 0 < found.share < 0.5


def test_a_kept_basis_takes_no_sum_and_the_old_model_is_the_start(earlier):
    now, _, run = earlier
    found = fedlap.update(run, now, keep_below=0.5)
    assert found.how == "kept"
    assert found.run.offline["job"] == run.offline["job"]
    assert found.run.offline["reused"]
    first = fedlap.train(now, **SMALL).history["train_loss"][0]
    assert found.run.history["train_loss"][0] < first
    # What was kept once counts when it might be kept again.
    gone = np.concatenate([part.ids[1:3] for part in now])
    more = in_memory([without(part, gone) for part in now], seed=0)
    twice = fedlap.update(found.run, more, keep_below=1.5 * found.share)
    assert twice.share < 1.5 * found.share
    assert twice.how == "warm"


def test_a_basis_from_the_old_one_takes_half_the_vectors(earlier):
    now, _, run = earlier
    found = fedlap.update(run, now, keep_below=0.0, rounds=1)
    assert found.how == "warm"
    assert found.run.offline["round_trips"] < run.offline["round_trips"]
    rows = {part.name: found.run.basis(part.name).U for part in now}
    U = np.vstack(list(rows.values()))
    np.testing.assert_allclose(U.T @ U, np.eye(24), atol=1e-6)
    # An update of an update starts from the newest basis.
    again = fedlap.update(found.run, now, keep_below=0.0, if_changed=0.0)
    assert again.how == "unchanged"


def test_a_cold_update_is_a_run_of_its_own(earlier):
    now, _, run = earlier
    cold = fedlap.update(run, now, cold=True, rounds=1).run
    assert np.array_equal(cold.basis("bank-01").U, fedlap.train(now, **SMALL).basis("bank-01").U)


def test_a_week_of_changes_members_and_predictions(earlier, tmp_path):
    """Every day accounts come and are predicted; two updates; one joins, later one leaves."""
    now, _, _ = earlier
    rng = np.random.default_rng(0)
    arrivals = {
        day: np.concatenate([rng.choice(part.ids, size=1) for part in now]) for day in range(1, 8)
    }

    def on(day, names):
        away = [part.ids for part in now if part.name not in names]
        gone = np.concatenate([*(arrivals[d] for d in arrivals if d > day), *away])
        return in_memory([without(part, gone) for part in now if part.name in names], seed=0)

    two, three = ("bank-00", "bank-01"), ("bank-00", "bank-01", "bank-02")
    run = fedlap.train(on(0, two), **SMALL, store=tmp_path)
    took = []
    for day in arrivals:
        if day in (3, 6):  # bank-02 joins on the third day, bank-01 leaves on the sixth
            names = three if day == 3 else ("bank-00", "bank-02")
            found = fedlap.update(run, on(day, names))
            run = found.run
            took.append((found.how, len(run.summary["client_accuracy"])))
        names = two if day < 3 else three if day < 6 else ("bank-00", "bank-02")
        for part in on(day, names):
            said = run.predict(part.name, data=part)
            assert set(said["id"]) == set(part.ids)
            assert (said["basis"] == "none").sum() <= said["id"].size // 10
    assert took == [("warm", 3), ("warm", 2)]
    assert run.offline["round_trips"] > 0


def test_one_that_joined_starts_from_its_neighbours_rows(earlier):
    now = earlier[0]
    fewer = in_memory([without(part, now[2].ids) for part in list(now)[:2]], seed=0)
    first = fedlap.train(fewer, **SMALL)
    found = fedlap.update(first, now, rounds=1)
    assert found.how == "warm"
    U = np.vstack([found.run.basis(part.name).U for part in now])
    np.testing.assert_allclose(U.T @ U, np.eye(24), atol=1e-6)
    # Old rows and new ones say the same: nearly no turn is left between them.
    X = np.vstack([first.basis(part.name).U for part in fewer])
    near = X.T @ U[: len(X)]
    assert np.linalg.norm(near - near.T) < 0.2 * np.linalg.norm(near)
    cold = fedlap.update(first, now, rounds=1, cold=True).run
    assert found.run.offline["round_trips"] < cold.offline["round_trips"]


def test_elsewhere_the_settings_of_a_run_say_where_to_start(earlier):
    _, _, run = earlier
    job = run.offline["job"]
    for keep in (False, True):
        settings = parse_settings(settings_elsewhere(run, keep=keep))
        assert (settings.start_basis, settings.keep_basis) == (job, keep)
        assert (settings.rounds, settings.vectors, settings.backend) == (3, 24, "mask")
        assert settings.start_model.endswith(str(run.summary["run_id"]))
    joined = parse_settings(settings_elsewhere(run, joined=True))
    assert (joined.start_basis, joined.start_model, joined.exchange_rows) == (job, "", True)
    exchanged = parse_settings(settings_elsewhere(run, keep=True, exchange=True))
    assert (exchanged.keep_basis, exchanged.exchange_rows) == (True, True)
    cold = parse_settings(settings_elsewhere(run, cold=True))
    assert (cold.start_basis, cold.start_model, cold.rounds) == ("", "", 3)
    with pytest.raises(ConfigError, match="keeps no basis"):
        settings_elsewhere(run, keep=True, cold=True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--keep"], "--keep goes with --superlink"),
        (["--superlink", "127.0.0.1:9", "--if-changed", "2%"], "which are not here"),
    ],
)
def test_options_of_the_other_way_are_refused(earlier, words, says):
    done = CliRunner().invoke(main, ["update", str(earlier[2].folder), *words])
    assert done.exit_code == 2
    assert says in done.output


def test_what_cannot_be_the_start_is_refused(earlier):
    now, _, run = earlier
    with pytest.raises(DataError, match="no store holds a basis of the run"):
        fedlap.update(run, fedlap.load("digits", clients=3))
    with pytest.raises(ConfigError, match="no basis and global model"):
        fedlap.update(fedlap.train(now, "fedavg", rounds=1, hidden="8"))


def test_the_command_tells_schedulers_what_it_did(tmp_path):
    orgs = fedlap.load("banks", clients=2, accounts=240)
    gone = np.concatenate([part.ids[:3] for part in orgs])
    for part in orgs:
        write_folder(without(part, gone), tmp_path / part.name)
    words = ["--rounds", "2", "--hidden", "8", "--vectors", "12", "--backend", "mask"]
    trained = CliRunner().invoke(main, ["train", "--data", str(tmp_path), *words, "--json"])
    (folder,) = json.loads(trained.stdout)["run_folders"]
    assert CliRunner().invoke(main, ["update", folder]).exit_code == 3
    for part in orgs:
        write_folder(part, tmp_path / part.name)
    assert CliRunner().invoke(main, ["update", folder, "--if-changed", "60%"]).exit_code == 3
    current = tmp_path.parent / f"{tmp_path.name}-current"
    current.symlink_to(folder)
    nightly = ["update", str(current), "--if-changed", "1%", "--json"]
    done = CliRunner().invoke(main, nightly)
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert str(current.resolve()) == report["run_folder"]
    assert CliRunner().invoke(main, nightly).exit_code == 3  # the next night starts from there
    assert report["how"] in ("kept", "warm")
    assert report["changes"]["bank-00"]["nodes_added"] == 3
    assert CliRunner().invoke(main, ["update", folder, "--if-changed", "lots"]).exit_code == 2
    assert CliRunner().invoke(main, ["update", report["run_folder"]]).exit_code == 3
