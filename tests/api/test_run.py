"""What a run tells: scores, history, model, predictions, basis; saved and opened elsewhere."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

import fedlap_app as fedlap
from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs.graph import join
from tests.spectral import reference


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDLAP_HOME", str(tmp_path_factory.mktemp("home")))
        orgs = fedlap.load("banks", clients=3, accounts=240)
        yield fedlap.train(
            orgs, rounds=3, hidden="8", self_training=0, patience=0, operator="sym", vectors=12,
            block=4, backend="mask",
        )  # fmt: skip


def test_history_has_a_row_a_round(run):
    assert list(run.history["round"]) == [1, 2, 3]
    best = run.history.set_index("round").loc[run.summary["best_round"]]
    assert best["test_accuracy"] == run.accuracy["test"]
    # A sealed sum of losses is exact to some 2^-20.
    assert best["val_loss"] == pytest.approx(run.summary["loss"]["val"], abs=1e-6)


def test_predictions_are_those_that_were_scored(run):
    for name in run.organisations.names:
        frame = run.predict(name)
        tested = frame[frame["split"] == "test"]
        right = (tested["label"] == tested["predicted"]).mean()
        assert right == pytest.approx(run.scores.loc[name, "test"])
        shares = frame[[f"p_{each}" for each in run.organisations[0].classes]]
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-6)
        np.testing.assert_allclose(shares.max(axis=1), frame["probability"], atol=1e-6)


def test_the_rows_of_all_are_nearly_eigenvectors(run):
    parts = list(run.organisations)
    whole = join(parts)
    U = np.concatenate([run.basis(part.name).U for part in parts])
    values = run.basis("bank-00").eigenvalues
    assert U.shape == (whole.num_nodes, 12)
    np.testing.assert_allclose(U.T @ U, np.eye(12), atol=1e-8)
    L = reference.whole_operator("sym", whole.out_adjacency(), self_loops=1.0, regulariser=None)
    np.testing.assert_allclose(np.diag(U.T @ (L @ U)), values, atol=1e-8)


def test_the_model_is_a_network_with_the_parameters(run):
    assert isinstance(run.model, torch.nn.Module)
    state = {name: value.numpy() for name, value in run.model.state_dict().items()}
    assert state.keys() == run.parameters.keys()
    assert all(np.array_equal(state[name], run.parameters[name]) for name in state)


def test_a_saved_run_is_equal_in_a_new_process(run, tmp_path):
    run.save(tmp_path / "kept")
    code = (
        "import sys, json, fedlap_app as fedlap\n"
        "run = fedlap.open_run(sys.argv[1])\n"
        "frame = run.predict('bank-01')\n"
        "print(json.dumps([run.accuracy, list(frame['probability'].astype(float)),"
        " run.basis('bank-00').U.tolist(), repr(run), len(run.history)]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "kept")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    accuracy, probability, U, text, rounds = json.loads(done.stdout)
    assert (accuracy, text, rounds) == (run.accuracy, repr(run), 3)
    assert probability == list(run.predict("bank-01")["probability"].astype(float))
    assert np.array_equal(U, run.basis("bank-00").U)
    again = fedlap.open_run(tmp_path / "kept")
    assert again == run
    again.save(tmp_path / "twice")
    assert fedlap.open_run(tmp_path / "twice") == run
    with pytest.raises(DataError, match="is not empty"):
        run.save(tmp_path / "kept")


@pytest.mark.parametrize("method", ["fedlap", "local", "central", "fedavg"])
def test_every_method_predicts_and_is_saved(orgs, quick_for, method, tmp_path):
    run = fedlap.train(orgs, method, **quick_for(method))
    run.save(tmp_path / "kept")
    again = fedlap.open_run(tmp_path / "kept")
    right = count = 0
    for name in orgs.names:
        frame = run.predict(name)
        assert frame.equals(again.predict(name))
        assert list(frame["id"]) == list(orgs[name].ids)
        tested = frame[frame["split"] == "test"]
        right, count = right + (tested["label"] == tested["predicted"]).sum(), count + len(tested)
    assert right / count == pytest.approx(run.accuracy["test"])
    with pytest.raises(ConfigError, match="computed no spectral basis"):
        run.basis("bank-00")
    assert isinstance(run.model_of("bank-00"), torch.nn.Module)
    if method == "local":
        with pytest.raises(ConfigError, match="a model of its own"):
            _ = run.model
    else:
        assert isinstance(run.model, torch.nn.Module)


def test_a_basis_is_there_when_it_was_asked_for(orgs, quick):
    run = fedlap.train(orgs, "fedavg", spectral=True, **quick)
    assert run.basis("bank-00").U.shape == (orgs["bank-00"].num_nodes, 12)


def test_what_is_missing_is_said(run, tmp_path):
    with pytest.raises(DataError, match="no run folder"):
        fedlap.open_run(tmp_path)
    run.save(tmp_path / "kept")
    (tmp_path / "kept" / "stores").rename(tmp_path / "elsewhere")
    again = fedlap.open_run(tmp_path / "kept")
    assert again.accuracy == run.accuracy
    with pytest.raises(DataError, match="the store of bank-00 does not hold"):
        again.predict("bank-00")
    (tmp_path / "kept" / "summary.json").unlink()
    (tmp_path / "kept" / "error.json").write_text('{"error": "bank-00 did not answer"}')
    with pytest.raises(DataError, match=r"no finished run \(bank-00 did not answer\)"):
        fedlap.open_run(tmp_path / "kept")


def test_a_run_is_not_copied_to_another_process(run):
    with pytest.raises(TypeError, match="open_run it"):
        pickle.dumps(run)
