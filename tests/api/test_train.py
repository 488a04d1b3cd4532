"""Training from Python: the same numbers as the command line, and nothing left behind."""

import json
import logging
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import fedlap_app as fedlap
from fedlap_app.cli import main
from fedlap_app.errors import ConfigError, RunError
from fedlap_app.models.model_file import ModelFile

METHODS = ("fedlap+", "fedlap", "fedavg", "local", "central")


def options(settings):
    return [word for key, value in settings.items() for word in
            (f"--{key.replace('_', '-')}", str(value))]  # fmt: skip


def command(*words):
    result = CliRunner().invoke(main, [*words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def same_model(run, folder):
    stored = ModelFile.from_bytes((Path(folder) / "model.npz").read_bytes(), "").parameters
    assert stored.keys() == run.parameters.keys()
    return all(np.array_equal(value, run.parameters[name]) for name, value in stored.items())


@pytest.mark.parametrize("method", METHODS)
def test_the_command_line_gives_the_same_bits(method, orgs, quick_for):
    words = ["--accounts", "240", "--clients", "3", "--method", method, "--seed", "0"]
    report = command("train", *words, *options(quick_for(method)))
    run = fedlap.train(orgs, method, **quick_for(method))
    (folder,) = report["run_folders"]
    theirs = fedlap.open_run(folder)
    assert run.accuracy == theirs.accuracy
    assert run.scores.equals(theirs.scores)
    columns = [name for name in run.history if name != "seconds"]
    assert run.history[columns].equals(theirs.history[columns])
    assert method == "local" or same_model(run, folder)
    for name in orgs.names:
        assert run.predict(name).equals(theirs.predict(name))


def test_own_folders_give_the_same_bits(orgs, quick, tmp_path):
    orgs.save(tmp_path / "orgs")
    report = command("train", "--data", str(tmp_path / "orgs"), *options(quick))
    run = fedlap.train(fedlap.read(tmp_path / "orgs"), **quick)
    assert 100 * run.accuracy["test"] == report["accuracy_mean"]
    assert same_model(run, report["run_folders"][0])
    assert not list((tmp_path / "orgs").glob("*/store"))


def test_limits_of_an_organisation_folder_are_kept(orgs, quick, tmp_path):
    orgs.save(tmp_path / "orgs")
    with (tmp_path / "orgs" / "bank-01" / "org.toml").open("a") as file:
        file.write("[consent]\nmost-vectors = 3\n")
    with pytest.raises(RunError, match="most-vectors"):
        fedlap.train(fedlap.read(tmp_path / "orgs"), **quick)


def test_it_is_quiet_and_leaves_nothing(
    orgs, quick, own_home, capfd, caplog, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    caplog.set_level(logging.DEBUG)
    level = logging.getLogger("flwr").level
    run = fedlap.train(orgs, **quick)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
    assert logging.getLogger("flwr").level == level
    assert [path.name for path in own_home.iterdir()] == ["cache"]
    assert len(list(tmp_path.iterdir())) == 1
    basis = run.basis("bank-00")
    del run
    assert list(tmp_path.iterdir()) == []
    assert np.isfinite(basis.U).all()
    logging.getLogger("flwr").warning("others still speak")
    assert len(caplog.records) == 1


def test_a_failure_leaves_nothing_and_tells_what_happened(orgs, quick_for, tmp_path, monkeypatch):
    from fedlap_app.models import training

    def broken(*words, **facts):
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("fedlap_app.models.training.train_epochs", broken)
    assert training
    with pytest.raises(RunError) as caught:
        fedlap.train(orgs, "fedavg", **quick_for("fedavg"))
    assert any("of all things" in note for note in caught.value.__notes__)
    del caught
    assert list(tmp_path.iterdir()) == []


def test_progress_is_one_line(orgs, quick, capsys):
    fedlap.train(orgs, progress=True, **quick)
    said = capsys.readouterr()
    assert said.out == ""
    assert "round 2/2, val " in said.err
    assert "spectral basis, step" in said.err
    assert said.err.count("\n") == 1


def test_a_store_keeps_the_basis_for_the_next_run(orgs, quick, tmp_path, own_home):
    first = fedlap.train(orgs, store=tmp_path / "kept", **quick)
    again = fedlap.train(orgs, store=tmp_path / "kept", **quick)
    assert not first.offline["reused"]
    assert again.offline["reused"]
    del first, again
    assert len(list((tmp_path / "kept" / "runs").iterdir())) == 2
    assert not (own_home / "stores").exists()


def test_threads_do_not_disturb_each_other(orgs, quick_for):
    chosen = {method: quick_for(method) | {"rounds": 6} for method in ("fedlap+", "fedavg")}
    alone = [fedlap.train(orgs, method, **chosen[method]) for method in chosen]
    found = {}

    def work(method):
        found[method] = fedlap.train(orgs, method, **chosen[method])

    threads = [threading.Thread(target=work, args=(each,)) for each in chosen]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for run in alone:
        side = found[run.settings.method]
        assert side.accuracy == run.accuracy
        assert all(np.array_equal(side.parameters[key], run.parameters[key])
                   for key in run.parameters)  # fmt: skip


def test_processes_do_not_disturb_each_other(orgs, quick, tmp_path):
    code = (
        "import sys, fedlap_app as fedlap\n"
        "orgs = fedlap.load('banks', clients=3, accounts=240)\n"
        f"fedlap.train(orgs, **{quick!r}).save(sys.argv[1])\n"
    )
    places = [tmp_path / "first", tmp_path / "second"]
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(place)], stderr=subprocess.PIPE)
        for place in places
    ]
    assert [process.communicate(timeout=120)[1] for process in processes] == [b"", b""]
    here = fedlap.train(orgs, **quick)
    for place in places:
        run = fedlap.open_run(place)
        assert run.accuracy == here.accuracy
        assert np.array_equal(run.basis("bank-02").U, here.basis("bank-02").U)


def test_presets_objects_and_names(orgs, quick):
    run = fedlap.train(orgs, "fedavg", preset="cora", rounds=1)
    assert (run.settings.dataset, run.settings.hidden) == ("banks", fedlap.Settings().hidden)
    settings = fedlap.Settings(method="local", rounds=1, hidden="4", dataset="digits")
    run = fedlap.train(orgs, preset=settings, learning_rate=np.float64(0.25))
    assert (run.settings.method, run.settings.hidden) == ("local", "4")
    assert run.settings.learning_rate == 0.25
    assert run.settings.clients == 3


def test_another_seed_trains_on_the_same_data(orgs, quick_for):
    run = fedlap.train(orgs, "fedavg", seed=7, **quick_for("fedavg"))
    assert run.settings.seed == 7
    assert set(run.predict("bank-00")["id"]) == set(orgs["bank-00"].ids)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"vector": 3}, "unknown setting 'vector': the nearest valid one is 'vectors'"),
        ({"local-epochs": 3}, "the nearest valid one is 'local_epochs'"),
        ({"vectors": "many"}, "wrong type"),
        ({"method": "fedlap*"}, "nearest valid choice"),
        ({"clients": 7}, "give it to fedlap.load"),
        ({"preset": "nothing"}, "no preset file"),
        ({"rounds": 0}, "nearest valid value is 1"),
    ],
)
def test_bad_settings_are_one_sentence(orgs, given, sentence):
    with pytest.raises(ConfigError, match=sentence) as caught:
        fedlap.train(orgs, **given)
    assert "\n" not in str(caught.value)


def test_only_organisations_are_trained_on():
    with pytest.raises(ConfigError, match="str is not a federation"):
        fedlap.train("cora")
