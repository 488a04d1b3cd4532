"""Sealed training beside plain training on real SuperNodes."""

import json
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.deploy import supernode_bench
from fedlap_app.errors import RunError
from fedlap_app.flower.grids.in_process import run_in_process
from fedlap_app.flower.server.observer import Unwatched
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.settings import Settings, parse_settings

WORDS = ["--dataset", "banks", "--accounts", "240", "--clients", "3", "--method", "fedavg"]


def test_the_table_has_a_ratio_and_the_parts_of_both():
    about = {"dataset": "banks", "method": "fedavg", "clients": 3, "rounds": 1}
    plain = {"bytes": 1000, "ms": 200.0, "parts_s": {"keys": 0.0, "later rounds": 4.0}}
    mask = {"bytes": 900, "ms": 210.0, "parts_s": {"keys": 1.5, "later rounds": 4.2}}
    ratios = {"bytes_ratio": 0.9, "ms_ratio": 1.05}
    head, _, of_bytes, of_time, _, keys, _ = supernode_bench.table_of(
        {**about, "plain": plain, "mask": mask, **ratios}
    ).splitlines()
    assert head.endswith("median of 1 round")
    assert of_bytes.split() == ["bytes", "1,000", "900", "0.900"]
    assert of_time.split() == ["ms", "a", "round", "200", "210", "1.050"]
    assert keys.split() == ["keys", "0.0", "1.5"]


class AtOnce:
    """In place of Flower: a run is over when it is submitted."""

    def __init__(self, root):
        self.root = root

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        pass

    def submit(self, config, nodes):
        settings = parse_settings({**config, "run-dir": str(self.root / "runs")})
        assert settings.clients == nodes
        return run_in_process(settings, Unwatched())["run_id"]


@pytest.fixture
def at_once(tmp_path, monkeypatch):
    """Runs of the bench take place in this process; gives the folder of the demonstration."""
    superlink = tmp_path / "superlink"
    demo = SimpleNamespace(
        superlink=superlink,
        federation=SimpleNamespace(own_address="", members=[None] * 3),
    )
    flower = AtOnce(superlink / "state" / "fedlap")
    monkeypatch.setattr(supernode_bench, "_demo", lambda folder, settings: demo)
    monkeypatch.setattr(supernode_bench, "_running", lambda demo, logs: nullcontext())
    monkeypatch.setattr(supernode_bench, "RemoteFlower", lambda *_: flower)
    return demo


def test_rounds_keys_and_bytes_are_those_of_the_runs(at_once, tmp_path):
    settings = replace(
        Settings(), method="fedavg", accounts=240, clients=3, rounds=3, standardise="none"
    )
    report = supernode_bench.bench_supernodes(settings, 1, tmp_path)
    runs = [RunFolder(each) for each in sorted((tmp_path / "superlink").rglob("runs/*"))]
    for folder in runs:
        used = report[folder.read_json("config.json")["training-backend"]]
        summary = folder.read_json("summary.json")
        assert sum(used["parts_s"].values()) == pytest.approx(summary["seconds"]["train"])
        both = (*summary["bytes_up"].values(), *summary["bytes_down"].values())
        assert used["bytes"] == sum(both)
        first, middle, last = (row["seconds"] for row in folder.read_rounds())
        assert used["ms"] == pytest.approx(1000 * (last - first) / 2)
        assert used["parts_s"]["later rounds"] == pytest.approx(last - first)
        assert middle < last
    assert len(runs) == 2
    assert report["plain"]["parts_s"]["keys"] == 0.0 < report["mask"]["parts_s"]["keys"]
    assert report["bytes_ratio"] == report["mask"]["bytes"] / report["plain"]["bytes"]


def test_a_run_that_fails_ends_the_bench_with_its_reason(at_once, tmp_path, monkeypatch):
    def fail(flower, config, nodes):
        path = flower.root / "runs" / "run-7"
        path.mkdir(parents=True)
        (path / "error.json").write_text('{"error": "bank-00: the disk is full"}')
        return 7

    monkeypatch.setattr(AtOnce, "submit", fail)
    with pytest.raises(RunError, match="a run of the bench failed: bank-00: the disk is full"):
        supernode_bench.bench_supernodes(Settings(clients=3), 1, tmp_path)


@pytest.mark.integration
def test_both_are_trained_on_the_same_supernodes():
    words = ["bench", "training", "--supernodes", *WORDS, "--rounds", "2", "--repeats", "1"]
    result = CliRunner().invoke(main, [*words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["clients"] == 3
    assert report["ms_ratio"] == pytest.approx(report["mask"]["ms"] / report["plain"]["ms"])
    # Only sealed training agrees on keys first.
    assert report["plain"]["parts_s"]["keys"] == 0.0 < report["mask"]["parts_s"]["keys"]
