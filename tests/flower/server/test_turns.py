"""Runs at the same time on one machine, over the same simulated organisations."""

import json
import subprocess
import sys
import threading
import time

import pytest

from fedlap_app.errors import RunError
from fedlap_app.flower.grids.turns import turn


def test_another_turn_of_the_same_store_is_not_given(own_home):
    with (
        turn(["bank-00", "bank-01"], "", 1.0),
        pytest.raises(RunError, match="used the store of bank-01 for 0 s"),
        turn(["bank-01", "bank-02"], "", 0.3),
    ):
        pytest.fail("two runs have the store of bank-01")


def test_others_do_not_wait(own_home, tmp_path):
    with turn(["bank-00"], "", 1.0), turn(["bank-01"], "", 0.0), turn(["bank-00"], "x", 0.0):
        held = True
    with turn(["bank-00"], "", 0.0):
        assert held


def test_whoever_waits_goes_on_when_the_other_ends(own_home):
    order = []

    def second():
        with turn(["bank-00"], "", 30.0):
            order.append("second")

    waiting = threading.Thread(target=second)
    with turn(["bank-00"], "", 1.0):
        waiting.start()
        time.sleep(0.3)
        order.append("first")
    waiting.join(timeout=30.0)
    assert order == ["first", "second"]


@pytest.mark.parametrize(
    ("method", "basis"), [("fedlap+", ["--vectors", "60", "--block", "1"]), ("fedlap", [])]
)
def test_the_same_training_twice_at_once(own_home, method, basis):
    command = [
        sys.executable, "-c", "from fedlap_app.cli import main; main()", "train",
        "--dataset", "banks", "--accounts", "300", "--clients", "3", "--rounds", "2",
        "--backend", "mask", "--method", method, "--json", *basis,
    ]  # fmt: skip
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    reports = [json.loads(run.communicate(timeout=300)[0]) for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert reports[0]["accuracies"] == reports[1]["accuracies"]
