import json
import os
import time

import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.store.folders import Store
from fedlap_app.sums.identity import Identity

SMALL = [
    "--accounts", "240", "--clients", "3", "--rounds", "2", "--self-training", "0", "--hidden", "8",
    "--vectors", "12",
]  # fmt: skip


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


JOB, BASIS, MODEL = "77aa" * 8, f"basis-{'ab12' * 8}", f"jobs/train-{1:020d}/model.npz"


def organisation(tmp_path):
    """An organisation folder with a store that has something of everything."""
    root = tmp_path / "bank-a" / "store"
    Identity.generate().save(root / "offline" / "identity")
    (tmp_path / "bank-a" / "org.toml").write_text("")
    for name in (
        "lock",
        "errors.log",
        BASIS,
        "offline-card",
        f"offline-{JOB}-answered-1",
        f"offline-{JOB}-columns",
        "offline/secret",
        "offline/peers.json",
        f"offline/post/own-{JOB}-1-0",
        MODEL,
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x" * 1000)
    return tmp_path / "bank-a", root


def left(root):
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


KEPT = {
    "lock",
    "fedlap-store",
    "offline/identity",
    "offline/secret",
    "offline/peers.json",
}
FOREIGN = (
    "lock",
    "basis-2024.csv",
    "basis-of-calculation.xlsx",
    "offline-edges/edges.csv",
    "offline-notes-answered-1",
    "jobs/train-1/model.npz",
    "sub/.download.part",
)


def write(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("mine")


def test_who_one_is_always_stays(tmp_path):
    folder, root = organisation(tmp_path)
    done = run("clean-store", folder, "--all", "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.output)
    assert facts["bytes"] == 7000
    assert left(root) == KEPT
    kinds = facts["stores"][str(root)]
    assert {kind: each["count"] for kind, each in kinds.items()} == {
        "models": 1,
        "bases": 1,
        "jobs": 2,
        "leftovers": 2,
    }


def test_what_sealed_training_left_goes(tmp_path):
    folder, root = organisation(tmp_path)
    files = ("settled-0", "listed-1", "reply-even-0", "reply-odd-1", "best-0", "kept-1", "home")
    write(root, *(f"training-{JOB}-{each}" for each in files), f".training-{JOB}-said.part")
    write(root, f"trainings-{JOB}", f"feature-moments-{JOB}", f"{MODEL[:-9]}rounds.jsonl")
    write(root, f"{MODEL[:-9]}graph", f"jobs/train-{2:020d}/.graph.part", "training-notes-home")
    done = run("clean-store", folder, "--all", "--json")
    assert done.exit_code == 0, done.output
    assert left(root) == {*KEPT, "training-notes-home"}


def test_a_dry_run_deletes_nothing(tmp_path):
    folder, root = organisation(tmp_path)
    before = left(root)
    done = run("clean-store", folder, "--all", "--dry-run")
    assert done.output.endswith("Would free 0.01 MB\n")
    assert left(root) == {*before, "fedlap-store"}


def test_only_what_is_old_enough_goes(tmp_path):
    folder, root = organisation(tmp_path)
    long_ago = time.time() - 40 * 86_400
    os.utime(root / BASIS, (long_ago, long_ago))
    before = left(root)
    assert run("clean-store", folder).exit_code == 0
    assert before - left(root) == {BASIS}


def test_only_what_was_named_goes(tmp_path):
    _, root = organisation(tmp_path)
    before = left(root)
    assert run("clean-store", root, "--all", "--only", "models").exit_code == 0
    assert before - left(root) == {MODEL}


def test_a_store_in_use_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("fedlap_app.flower.client.cleaning._LOCK_SECONDS", 0.05)
    folder, root = organisation(tmp_path)
    before = left(root)
    with Store(root).lock():
        done = run("clean-store", folder, "--all")
    assert done.exit_code == 2
    assert "in use" in done.output
    assert left(root) == {*before, "fedlap-store"}


def test_a_folder_without_a_store_is_refused(tmp_path):
    done = run("clean-store", tmp_path)
    assert done.exit_code == 2
    assert "neither a client store" in done.output
    assert run("clean-store").exit_code == 2


def test_a_lock_alone_makes_no_store(tmp_path):
    write(tmp_path, *FOREIGN, "errors.log")
    done = run("clean-store", tmp_path, "--all")
    assert done.exit_code == 2
    assert "neither a client store" in done.output
    assert left(tmp_path) == {*FOREIGN, "errors.log"}


def test_files_of_others_stay_in_a_store(tmp_path):
    folder, root = organisation(tmp_path)
    write(root, *FOREIGN[1:])
    (root / f"basis-{'cd' * 16}").symlink_to(root / "basis-2024.csv")
    (root / f"jobs/train-{2:020d}").symlink_to(root / "sub")
    assert run("clean-store", folder, "--all").exit_code == 0
    assert left(root) == {*KEPT, *FOREIGN[1:], f"basis-{'cd' * 16}"}


def test_an_organisation_folder_stands_for_its_store(tmp_path):
    folder, root = organisation(tmp_path)
    write(folder, *FOREIGN, "errors.log", BASIS)
    before = left(folder) - {f"store/{name}" for name in left(root)}
    done = run("clean-store", folder, "--all", "--json")
    assert list(json.loads(done.output)["stores"]) == [str(root)]
    assert left(root) == KEPT
    assert left(folder) - {f"store/{name}" for name in KEPT} == before


def test_an_organisation_folder_without_a_store_is_refused(tmp_path):
    write(tmp_path, "org.toml", "lock", BASIS)
    assert run("clean-store", tmp_path, "--all").exit_code == 2
    assert left(tmp_path) == {"org.toml", "lock", BASIS}


@pytest.mark.parametrize("sign", [BASIS, MODEL, f"jobs/offline-{JOB}/ledger.json"])
def test_a_simulated_store_without_marker_is_known_by_its_files(tmp_path, sign):
    write(tmp_path, "lock", sign, "errors.log")
    assert run("clean-store", tmp_path, "--all", "--only", "leftovers").exit_code == 0
    assert left(tmp_path) == {"lock", "fedlap-store", sign}


def test_after_cleaning_a_run_gives_the_same_result(own_home):
    first = json.loads(run("train", *SMALL, "--json").stdout)
    done = run("clean-store", "--all", "--json")
    assert len(json.loads(done.output)["stores"]) == 3
    assert not list((own_home / "stores").glob("*/basis-*"))
    again = json.loads(run("train", *SMALL, "--json").stdout)
    assert again["accuracies"] == first["accuracies"]
