"""Sealed training beside plain training on real SuperNodes."""

import json

import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.deploy.supernode_bench import table_of

WORDS = ["--dataset", "banks", "--accounts", "240", "--clients", "3", "--method", "fedavg"]


def test_the_table_has_a_ratio_and_the_parts_of_both():
    about = {"dataset": "banks", "method": "fedavg", "clients": 3, "rounds": 1}
    plain = {"bytes": 1000, "ms": 200.0, "parts_s": {"keys": 0.0, "later rounds": 4.0}}
    mask = {"bytes": 900, "ms": 210.0, "parts_s": {"keys": 1.5, "later rounds": 4.2}}
    ratios = {"bytes_ratio": 0.9, "ms_ratio": 1.05}
    head, _, of_bytes, of_time, _, keys, _ = table_of(
        {**about, "plain": plain, "mask": mask, **ratios}
    ).splitlines()
    assert head.endswith("median of 1 round")
    assert of_bytes.split() == ["bytes", "1,000", "900", "0.900"]
    assert of_time.split() == ["ms", "a", "round", "200", "210", "1.050"]
    assert keys.split() == ["keys", "0.0", "1.5"]


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
