import json
import os
import time

from click.testing import CliRunner

from client_app.store import Store
from fedlap_app.cli import main

SMALL = ["--accounts", "240", "--clients", "3", "--rounds", "2", "--hidden", "8", "--vectors", "12"]


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def organisation(tmp_path):
    """An organisation folder with a store that has something of everything."""
    root = tmp_path / "bank-a" / "store"
    for name in (
        "lock",
        "errors.log",
        "basis-ab12",
        "offline-refreshed",
        "offline-pending",
        "offline-77aa-answered-1",
        "offline-77aa-columns",
        "offline/identity",
        "offline/secret",
        "offline/peers.json",
        "offline/post/own-1",
        "jobs/train-1/model.npz",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x" * 1000)
    return tmp_path / "bank-a", root


def left(root):
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


KEPT = {"lock", "offline-refreshed", "offline/identity", "offline/secret", "offline/peers.json"}


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


def test_a_dry_run_deletes_nothing(tmp_path):
    folder, root = organisation(tmp_path)
    before = left(root)
    done = run("clean-store", folder, "--all", "--dry-run")
    assert done.output.endswith("Would free 0.01 MB\n")
    assert left(root) == before


def test_only_what_is_old_enough_goes(tmp_path):
    folder, root = organisation(tmp_path)
    long_ago = time.time() - 40 * 86_400
    os.utime(root / "basis-ab12", (long_ago, long_ago))
    before = left(root)
    assert run("clean-store", folder).exit_code == 0
    assert before - left(root) == {"basis-ab12"}


def test_only_what_was_named_goes(tmp_path):
    _, root = organisation(tmp_path)
    before = left(root)
    assert run("clean-store", root, "--all", "--only", "models").exit_code == 0
    assert before - left(root) == {"jobs/train-1/model.npz"}


def test_a_store_in_use_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("client_app.cleaning._LOCK_SECONDS", 0.05)
    folder, root = organisation(tmp_path)
    before = left(root)
    with Store(root).lock():
        done = run("clean-store", folder, "--all")
    assert done.exit_code == 2
    assert "in use" in done.output
    assert left(root) == before


def test_a_folder_without_a_store_is_refused(tmp_path):
    done = run("clean-store", tmp_path)
    assert done.exit_code == 2
    assert "neither a client store" in done.output
    assert run("clean-store").exit_code == 2


def test_after_cleaning_a_run_gives_the_same_result(own_home):
    first = json.loads(run("train", *SMALL, "--json").stdout)
    done = run("clean-store", "--all", "--json")
    assert len(json.loads(done.output)["stores"]) == 3
    assert not list((own_home / "stores").glob("*/basis-*"))
    again = json.loads(run("train", *SMALL, "--json").stdout)
    assert again["accuracies"] == first["accuracies"]
