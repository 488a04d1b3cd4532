"""A coordinator that makes up runs to delete kept models and to fill the disk."""

import time

import pytest

from fedlap_app.methods.kept import MOST_FINISHED, MOST_UNFINISHED, training_job
from tests.adversary.dishonest import (
    Coordinator,
    model_of,
    scores_of,
    settings_of,
    write_organisations,
)


@pytest.fixture
def honest(tmp_path, request):
    """Folders, a model and the folder of a finished run."""
    lines = getattr(request, "param", ())
    folders, subgraphs = write_organisations(tmp_path / "orgs", lines)
    model = model_of(subgraphs[0])
    run = finish(Coordinator(folders, settings_of(rounds=1)), model)
    return folders, model, jobs(folders) / training_job(run)


def jobs(folders):
    return folders[0] / "store" / "jobs"


def finish(server, model):
    """A whole run; gives its number, or the sentence that refuses it."""
    joined = server.join()
    if isinstance(joined, str):
        return joined
    assert scores_of(server.train(model)) is not None
    assert scores_of(server.keep(model)) is not None
    return server.run


def test_numbers_of_other_runs_are_refused_and_leave_nothing(honest):
    folders, model, kept = honest
    server = Coordinator(folders, settings_of(rounds=1))
    assert not isinstance(server.join(), str)
    before = sorted(jobs(folders).iterdir())
    for number in range(1, 30):
        for ask in (server.keep, server.evaluate, server.train):
            assert "was not made by this app's server" in ask(model, run=number)
    assert sorted(jobs(folders).iterdir()) == before
    assert (kept / "model.npz").is_file()
    assert (kept / "ledger.json").is_file()


def test_a_run_that_did_not_join_leaves_nothing(honest):
    folders, model, kept = honest
    for _ in range(10):
        server = Coordinator(folders, settings_of(rounds=1))
        for ask in (server.keep, server.evaluate, server.train):
            assert "did not join" in ask(model)
    assert list(jobs(folders).iterdir()) == [kept]


def test_joining_leaves_no_folder_and_a_file_of_bounded_size(honest):
    folders, _, kept = honest
    for _ in range(150):
        Coordinator(folders, settings_of()).join()
    assert list(jobs(folders).iterdir()) == [kept]
    assert (folders[0] / "store" / "runs.json").stat().st_size < 20_000


@pytest.mark.parametrize("hours", [-1, -24 * 4000])
def test_a_clock_that_is_set_back_forgets_no_run(tmp_path, monkeypatch, hours):
    folders, subgraphs = write_organisations(tmp_path / "orgs", ["runs-a-day = 2"])
    model, now = model_of(subgraphs[0]), time.time
    for _ in range(2):
        assert isinstance(finish(Coordinator(folders, settings_of(rounds=1)), model), int)
    monkeypatch.setattr(time, "time", lambda: now() + 3600 * hours)
    for _ in range(2):
        assert "(runs-a-day)" in finish(Coordinator(folders, settings_of(rounds=1)), model)
    monkeypatch.setattr(time, "time", lambda: now() + 3600 * 25)
    assert isinstance(finish(Coordinator(folders, settings_of(rounds=1)), model), int)


def test_a_day_has_a_ration_of_runs(honest):
    folders, model, kept = honest
    begun, refused = 0, ""
    for _ in range(40):
        server = Coordinator(folders, settings_of(rounds=1))
        if isinstance(server.join(), str):
            refused = server.join()
            continue
        begun += scores_of(server.train(model)) is not None
    assert begun == 23, "the stated ration: 24 a day, with the finished one"
    assert "(runs-a-day)" in refused
    assert (kept / "model.npz").is_file()
    assert (kept / "ledger.json").is_file()


@pytest.mark.parametrize("honest", [["runs-a-day = 1000"]], indirect=True)
def test_unfinished_runs_make_room_for_each_other_only(honest):
    folders, model, kept = honest
    for _ in range(MOST_UNFINISHED + 5):
        server = Coordinator(folders, settings_of(rounds=2))
        server.join()
        assert scores_of(server.train(model)) is not None
        assert len(list(jobs(folders).iterdir())) <= MOST_UNFINISHED + 1
    assert (kept / "model.npz").is_file()
    assert (kept / "ledger.json").is_file()


@pytest.mark.parametrize("honest", [["runs-a-day = 1000"]], indirect=True)
def test_finished_runs_end_in_a_refusal_not_in_a_deleted_model(honest):
    folders, model, kept = honest
    ends = [
        finish(Coordinator(folders, settings_of(rounds=1)), model) for _ in range(MOST_FINISHED + 2)
    ]
    refused = [end for end in ends if isinstance(end, str)]
    assert len(refused) == 3
    assert "`fedlap clean-store`" in refused[0]
    assert len(list(jobs(folders).glob("*/model.npz"))) == MOST_FINISHED
    assert (kept / "model.npz").is_file()
