"""Sealed training as a whole, over the in-process grid, simulated and deployed."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from client_app.app import app
from fedlap_app.errors import ConfigError, RunError
from fedlap_app.flower.client.organisation import _organisations as organisations_in_memory
from fedlap_app.flower.grids.local_grid import (
    InProcessGrid,
    folder_configs,
    new_run_id,
    partition_configs,
)
from fedlap_app.flower.server.run import run
from fedlap_app.methods.kept import training_job
from fedlap_app.privacy.accounting import epsilon
from fedlap_app.store import names
from fedlap_app.store.folders import Store
from fedlap_app.store.job_files import JobFiles
from fedlap_app.sums.training.kept_keys import FORMAT
from tests.adversary.scene import Scene
from tests.flower.server.models import kept_in, model_of, same


@pytest.fixture
def sealed(settings):
    return replace(settings, training_backend="mask", rounds=3, self_training=1)


@pytest.fixture
def scene(sealed, tmp_path):
    return Scene(tmp_path, sealed)


class Stopped(BaseException):
    """The end of a process."""


class FragileGrid(InProcessGrid):
    """Stops at one message, before it reaches the client or after the client has answered."""

    stop_at, when, count = -1, "before", 0

    def _deliver(self, message, context):
        self.count += 1
        hit = self.count == self.stop_at
        if hit and self.when == "before":
            raise Stopped
        reply = super()._deliver(message, context)
        if hit:
            raise Stopped
        return reply


class ForgetfulGrid(InProcessGrid):
    """A client dies once, before it has answered or after, and a new process takes its place."""

    stop_at, when, count = -1, "before", 0

    def _deliver(self, message, context):
        self.count += 1
        hit = self.count == self.stop_at
        if hit and self.when == "before":
            self._die()
        reply = super()._deliver(message, context)
        if hit:
            self._die()
        return reply

    def _die(self):
        organisations_in_memory.clear()
        raise RuntimeError("killed")


class LossyGrid(InProcessGrid):
    """One client gives no answer to messages about one turn."""

    silent = ()

    def _answer(self, message):
        config = message.content.get("config", {})
        turn = config.get("kind"), config.get("stage"), config.get("number")
        victim = max(self.get_node_ids())
        if message.metadata.dst_node_id == victim and turn in self.silent:
            return None
        return super()._answer(message)


def simulated(settings, grid=InProcessGrid):
    return grid(app, partition_configs(settings.clients), settings.to_config(), run_id=new_run_id())


def deployed(scene, grid=InProcessGrid, **changes):
    config = replace(scene.settings, **changes).to_config()
    return grid(app, folder_configs(scene.folders.values()), config, run_id=new_run_id())


def own_model(scene, name, summary):
    return kept_in(scene.store(name), summary["run_id"])


@pytest.mark.parametrize("strategy", ["fedavg", "fedprox"])
@pytest.mark.parametrize("method", ["fedavg", "fedlap+"])
def test_one_round_gives_the_parameters_of_plain_training(settings, observer, method, strategy):
    own = {"backend": "mask", "vectors": 6, "block": 3} if method == "fedlap+" else {}
    one = replace(settings, rounds=1, method=method, strategy=strategy, **own)
    plain = model_of(run(simulated(one), one, observer))
    one = replace(one, training_backend="mask")
    sealed = model_of(run(simulated(one), one, observer))
    assert plain.keys() == sealed.keys()
    for name, value in plain.items():
        # Three members round by half of 2^-24 each; float32 rounds where plain training averages.
        tolerance = 1.5 * 2.0**-24 + 4 * np.finfo(np.float32).eps * np.abs(value)
        assert (np.abs(value - sealed[name]) <= tolerance).all()


@pytest.mark.parametrize("strategy", ["fedavgm", "fedadam", "fedadagrad", "fedyogi"])
def test_strategies_with_a_memory_end_where_plain_training_does(settings, observer, strategy):
    two = replace(settings, rounds=2, strategy=strategy, server_learning_rate=0.01)
    plain = model_of(run(simulated(two), two, observer))
    two = replace(two, training_backend="mask")
    sealed = model_of(run(simulated(two), two, observer))
    assert plain.keys() == sealed.keys()
    for name, value in plain.items():
        # Plain training takes the change as a difference of float32 models, of about 1.
        assert np.abs(value - sealed[name]).max() <= 5e-5


def test_a_simulation_says_as_much_as_plain_training(sealed, observer):
    plain = replace(sealed, training_backend="plain")
    before = run(simulated(plain), plain, observer)
    after = run(simulated(sealed), sealed, observer)
    assert before.keys() == after.keys()
    for key in ("rounds", "best_round", "best_stage"):
        assert before[key] == after[key]
    assert [*before["client_accuracy"]] == [*after["client_accuracy"]]
    first, second = (
        (Path(summary["run_folder"]) / "metrics.jsonl").read_text().splitlines()
        for summary in (before, after)
    )
    assert [json.loads(line).keys() for line in first] == [
        json.loads(line).keys() for line in second
    ]


def test_a_deployment_tells_whole_counts_and_nothing_else(scene, observer):
    grid = deployed(scene)
    summary = run(grid, scene.settings, observer)
    assert summary["client_accuracy"] == {}
    assert summary["accuracy"]["test"] is None or 0 < summary["accuracy"]["test"] <= 1
    assert not (Path(summary["run_folder"]) / "model.npz").exists()
    rows = (Path(summary["run_folder"]) / "metrics.jsonl").read_text().splitlines()
    assert [set(json.loads(row)) for row in rows] == [{"stage", "round", "seconds"}] * 6
    models = [own_model(scene, name, summary) for name in scene.names]
    assert same(*models)


def test_ciphertexts_end_at_the_very_bits_of_mask(sealed, observer):
    settings = [replace(sealed, training_backend=backend) for backend in ("mask", "ckks")]
    one, other = (model_of(run(simulated(each), each, observer)) for each in settings)
    assert same(one, other)


def test_a_client_or_server_that_dies_goes_on_with_ciphertexts(sealed, observer, tmp_path):
    scene = Scene(tmp_path, replace(sealed, training_backend="ckks"))
    settings = scene.settings
    expected = own_model(scene, "bank-00", run(deployed(scene), settings, observer))
    for kind, stop_at, when in (
        (ForgetfulGrid, 20, "before"),
        (ForgetfulGrid, 26, "after"),
        (FragileGrid, 22, "after"),
    ):
        grid = deployed(scene, kind)
        grid.stop_at, grid.when = stop_at, when
        try:
            summary = run(grid, settings, observer)
        except Stopped:
            organisations_in_memory.clear()
            summary = run(deployed(scene), settings, observer)
        for name in scene.names:
            assert same(own_model(scene, name, summary), expected)


def test_a_policy_that_lists_mask_alone_refuses_ciphertexts(scene, observer):
    scene.add(scene.names[0], "policy", 'training-backends = ["mask"]')
    ciphered = replace(scene.settings, training_backend="ckks")
    with pytest.raises(RunError, match=r"'ckks' is not what its policy allows .*'mask'"):
        run(deployed(scene, training_backend="ckks"), ciphered, observer)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_server_that_dies_anywhere_goes_on_to_the_same_bits(scene, observer, when, tmp_path):
    settings = scene.settings
    whole = run(deployed(scene), settings, observer)
    expected = own_model(scene, scene.names[0], whole)
    for stop_at in range(8, 40, 7):
        grid = deployed(scene, FragileGrid)
        grid.stop_at, grid.when = stop_at, when
        try:
            summary = run(grid, settings, observer)
        except Stopped:
            summary = run(deployed(scene), settings, observer)
        for name in scene.names:
            assert same(own_model(scene, name, summary), expected), stop_at


def test_a_training_that_another_release_began_is_begun_anew_only_when_asked(scene, observer):
    grid = deployed(scene, FragileGrid)
    grid.stop_at = 20
    with pytest.raises(Stopped):
        run(grid, scene.settings, observer)
    for name in scene.names:
        (path,) = scene.store(name).glob(f"{names.TRAININGS}-*")
        files = JobFiles(path.parent, durable=False)
        facts, *keys = files.read(path.name)
        before = json.loads(bytes(facts))
        assert before.pop("format") == FORMAT
        files.write(path.name, json.dumps(before).encode(), *map(bytes, keys))
    organisations_in_memory.clear()  # another release is another process
    with pytest.raises(RunError, match=r"begun by another release .*: start .* resume = false"):
        run(deployed(scene), scene.settings, observer)
    again = replace(scene.settings, resume=False)
    summary = run(deployed(scene, resume=False), again, observer)
    assert own_model(scene, scene.names[0], summary)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_client_that_dies_anywhere_goes_on_to_the_same_bits(scene, observer, when):
    expected = own_model(scene, "bank-00", run(deployed(scene), scene.settings, observer))
    for stop_at in range(14, 54, 8):
        grid = deployed(scene, ForgetfulGrid)
        grid.stop_at, grid.when = stop_at, when
        summary = run(grid, scene.settings, observer)
        for name in scene.names:
            assert same(own_model(scene, name, summary), expected), stop_at


@pytest.fixture
def patient(sealed):
    return replace(
        sealed, clients=4, self_training=0, step_timeout=2.0, min_clients=3, straggler_timeout=0.3
    )


@pytest.mark.parametrize("silent", [("turn", 0, 2), ("weigh", 0, 0), ("turn", 0, 4)])
def test_a_missing_member_makes_the_list_smaller_and_still_gets_the_sums(
    patient, observer, tmp_path, silent
):
    scene = Scene(tmp_path, patient)
    grid = deployed(scene, LossyGrid)
    grid.silent = (silent,)
    summary = run(grid, patient, observer)
    assert summary["absences"] == {"bank-03": 1}
    models = [own_model(scene, name, summary) for name in scene.names]
    assert same(*models)


def test_no_stage_tells_counts_of_fewer_members_than_the_first(patient, observer, tmp_path):
    settings = replace(patient, self_training=1, rounds=1)
    scene = Scene(tmp_path, settings)
    grid = deployed(scene, LossyGrid)
    grid.silent = (("turn", 1, 1),)
    summary = run(grid, settings, observer)
    first, second = (stage["accuracy"]["test"] for stage in summary["stages"])
    assert 0 < first <= 1
    assert math.isnan(second)


def test_a_member_that_is_missing_at_the_end_costs_the_scores_and_no_model(
    patient, observer, tmp_path
):
    scene = Scene(tmp_path, patient)
    grid = deployed(scene, LossyGrid)
    grid.silent = (("publish", 0, 5),)
    summary = run(grid, patient, observer)
    assert math.isnan(summary["accuracy"]["test"])
    models = [own_model(scene, name, summary) for name in scene.names]
    assert same(*models)


def test_fewer_than_three_go_on_nowhere(patient, observer, tmp_path):
    settings = replace(patient, clients=3, min_clients=2)
    scene = Scene(tmp_path, settings)
    grid = deployed(scene, LossyGrid)
    grid.silent = (("turn", 0, 2),)
    with pytest.raises(RunError, match="a training sum of 2 members was asked for and 3"):
        run(grid, settings, observer)


def test_a_policy_that_asks_for_more_members_seals_nothing_for_fewer(scene, observer, caplog):
    scene.add(scene.names[0], "policy", "least-members = 4")
    caplog.set_level("WARNING", "fedlap")
    with pytest.raises(RunError, match=f"{scene.names[0]}: .* lower least-members = 4"):
        run(deployed(scene), scene.settings, observer)
    told = [each.getMessage() for each in caplog.records if "refused by its policy" in each.msg]
    assert told
    assert all(line.startswith(f"{scene.names[0]}, ") for line in told)
    assert not [*scene.store(scene.names[0]).glob("training-*-listed-*")]
    assert [*scene.store(scene.names[1]).glob("training-*-listed-*")]


def test_a_policy_may_ask_for_more_patience(patient, observer, tmp_path):
    scene = Scene(tmp_path, patient)
    scene.add(scene.names[0], "policy", "least-straggler-timeout = 30")
    with pytest.raises(RunError, match=f"{scene.names[0]}: .*set straggler-timeout = 30 or more"):
        run(deployed(scene), patient, observer)


def test_two_members_train_where_the_policy_of_both_allows_it(sealed, observer, tmp_path):
    settings = replace(sealed, clients=2, rounds=1, self_training=0)
    scene = Scene(tmp_path, settings)
    with pytest.raises(RunError, match="two-members"):
        run(deployed(scene), settings, observer)
    for name in scene.names:
        scene.add(name, "policy", "two-members = true")
    run(deployed(scene), settings, observer)


def test_plain_training_needs_the_policy_of_each(scene, observer):
    plain = replace(scene.settings, training_backend="plain")
    with pytest.raises(RunError, match=r"shows the server every update .*\(training-backends\)"):
        run(deployed(scene, training_backend="plain"), plain, observer)
    for name in scene.names:
        scene.add(name, "policy", 'training-backends = ["plain"]')
    assert run(deployed(scene, training_backend="plain"), plain, observer)["client_accuracy"]
    with pytest.raises(RunError, match="training-backend = 'plain'"):
        run(deployed(scene), scene.settings, observer)


@pytest.mark.parametrize("changes", [{"strategy": "fedmedian"}, {"strategy": "fedtrimmedavg"},
                                     {"method": "fedlap"}])  # fmt: skip
def test_what_needs_single_updates_is_refused_by_name(sealed, observer, changes):
    settings = replace(sealed, **changes)
    with pytest.raises(
        ConfigError, match=r"needs every organisation's own update.*'plain'.*policy"
    ):
        run(simulated(settings), settings, observer)


def test_the_model_is_published_where_all_allow_it(scene, observer):
    settings = replace(scene.settings, publish_model=True)
    with pytest.raises(RunError, match="publish-model"):
        run(deployed(scene, publish_model=True), settings, observer)
    for name in scene.names:
        scene.add(name, "policy", "publish-model = true")
    summary = run(deployed(scene, publish_model=True), settings, observer)
    assert same(model_of(summary), own_model(scene, "bank-01", summary))


def test_scores_stay_at_home_when_asked_and_when_few(scene, observer):
    silent = replace(scene.settings, publish_scores=False)
    summary = run(deployed(scene, publish_scores=False), silent, observer)
    assert all(map(math.isnan, summary["accuracy"].values()))
    for name in scene.names:
        scene.add(name, "policy", "least-published-nodes = 100000")
    summary = run(deployed(scene), scene.settings, observer)
    assert all(map(math.isnan, summary["accuracy"].values()))


def test_organisations_that_train_alone_tell_no_score(scene, observer):
    settings = replace(scene.settings, method="local")
    summary = run(deployed(scene, method="local"), settings, observer)
    assert summary["client_accuracy"] == {}
    assert summary["rounds"] == 6
    plain = replace(settings, training_backend="plain")
    sealed, open_ = (run(simulated(each), each, observer) for each in (settings, plain))
    assert sealed["client_accuracy"] == open_["client_accuracy"]


def test_sealed_training_ends_where_plain_training_does(sealed, observer):
    settings = replace(sealed, rounds=30, patience=2, learning_rate=0.05)
    plain = replace(settings, training_backend="plain")
    first, second = (run(simulated(each), each, observer) for each in (settings, plain))
    assert [stage["rounds"] for stage in first["stages"]] == [
        stage["rounds"] for stage in second["stages"]
    ]
    assert first["rounds"] < 60


def test_the_ledger_says_that_nobody_reads_what_leaves(scene, observer):
    summary = run(deployed(scene), scene.settings, observer)
    folder = scene.store("bank-01") / "jobs" / training_job(summary["run_id"])
    ledger = json.loads((folder / "ledger.json").read_text())
    sent = {entry["kind"]: entry for entry in ledger["entries"] if entry["way"] == "sent"}
    assert ledger["state"] == "finished"
    assert sent.pop("published counts")["readable_by"] == ["server"]
    assert {each: entry["messages"] for each, entry in sent.items()} == {
        "sealed weights": 2, "sealed changes and scores": 6, "sealed scores": 4,
    }  # fmt: skip
    assert all(entry["readable_by"] == ["nobody"] for entry in sent.values())
    assert all(entry["sum_readable_by"] == ["all members"] for entry in sent.values())


def test_a_finished_job_leaves_no_key_behind(scene, observer):
    run(deployed(scene), scene.settings, observer)
    names = [path.name for path in scene.store("bank-01").iterdir()]
    assert not [name for name in names if name.startswith("trainings-")]
    assert [name.rpartition("-")[2] for name in names if name.startswith("training-")] == ["said"]


def test_noise_on_updates_is_accounted_for(sealed, observer):
    """Never seeded, the same at all, and told in the summary with what it leaves out."""
    noisy = replace(sealed, dp_noise=2.0, dp_clip=0.5, resume=False)
    told = [run(simulated(noisy), noisy, observer) for _ in range(2)]
    for summary in told:
        assert summary["privacy"]["releases"] == 6
        assert summary["privacy"]["epsilon"] == pytest.approx(epsilon(2.0, 6, 1e-5))
        assert "scores of every round" in summary["privacy"]["omits"]
    some, others = (model_of(summary) for summary in told)
    assert not same(some, others)


def test_the_ledger_adds_up_the_noise_of_all_runs(scene, observer):
    noisy = {"dp_noise": 3.0, "dp_clip": 0.5, "self_training": 0}
    settings = replace(scene.settings, **noisy)
    for runs in (1, 2):
        summary = run(deployed(scene, **noisy), settings, observer)
        assert "privacy" in summary
        job = Store(scene.store("bank-01")).job(training_job(summary["run_id"]))
        about = job.read_json("ledger.json")["differential privacy"]
        assert about["releases"] == 3
        assert about["releases in all runs"] == 3 * runs
        assert about["epsilon of all runs"] == pytest.approx(epsilon(3.0, 3 * runs, 1e-5))
    models = [own_model(scene, name, summary) for name in scene.names]
    assert same(*models)


def test_noise_may_hide_nodes(scene, observer):
    """All members go on from one model; the ledger says what is hidden, and from whom it is not."""
    noisy = {
        "dp_noise": 3.0, "dp_clip": 0.5, "dp_unit": "node", "optimizer_at": "server",
        "local_epochs": 1, "model": "decoupled", "hops": 0, "training_bits": 26,
    }  # fmt: skip
    scene.settings = replace(scene.settings, **noisy)
    for name in scene.names:
        scene.add(name, "policy", "server-steps = true")
    summary = run(deployed(scene), scene.settings, observer)
    assert summary["privacy"]["unit"].startswith("one node's own features and label")
    assert "its row of a basis" in summary["privacy"]["unit"]
    assert summary["privacy"]["epsilon"] == pytest.approx(epsilon(3.0, 6, 1e-5))
    job = Store(scene.store("bank-01")).job(training_job(summary["run_id"]))
    about = job.read_json("ledger.json")["differential privacy"]
    assert about["epsilon of all runs"] == pytest.approx(epsilon(3.0, 6, 1e-5))
    models = [own_model(scene, name, summary) for name in scene.names]
    assert all(same(models[0], model) for model in models[1:])


def test_noise_from_which_nobody_is_left_is_refused(sealed, observer):
    settings = replace(sealed, dp_noise=1.0, dp_colluders=sealed.clients)
    with pytest.raises(RunError, match="dp-colluders = 3"):
        run(simulated(settings), settings, observer)
