import copy
import json
import logging
import math
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from fedlap_app.store.packing import pack
from fedlap_app.sums.opened import Opened

SECRET = 0.123456789


@pytest.mark.parametrize(
    "leak",
    [
        pickle.dumps,
        json.dumps,
        np.asarray,
        np.array,
        float,
        int,
        list,
        bytes,
        copy.copy,
        lambda opened: opened[0],
        lambda opened: np.add(opened, 1),
        lambda opened: np.savez(open("/dev/null", "wb"), opened),  # noqa: PTH123, SIM115
    ],
)
def test_numbers_do_not_leave(leak):
    with pytest.raises(TypeError):
        leak(Opened(np.array([SECRET])))


@pytest.mark.parametrize(
    "leak",
    [
        lambda opened: ConfigRecord({"x": opened}),
        lambda opened: ConfigRecord({"x": [opened]}),
        lambda opened: MetricRecord({"x": opened}),
        lambda opened: MetricRecord({"x": [opened]}),
        lambda opened: ArrayRecord([opened]),
        lambda opened: RecordDict({"x": opened}),
        lambda opened: pack(b"reply", opened),
        lambda opened: memoryview(opened),
        lambda opened: f"{opened:.3f}",
        lambda opened: math.floor(opened),
        vars,
    ],
)
def test_numbers_do_not_get_into_a_message_a_metric_or_a_text(leak):
    with pytest.raises(TypeError):
        leak(Opened(np.array([SECRET])))


def test_a_log_record_shows_how_many_they_are(caplog):
    logging.getLogger("fedlap").warning("opened %s", Opened(np.array([SECRET])))
    assert caplog.records[0].getMessage() == "opened <Opened: 1 numbers>"


def test_only_the_iteration_takes_numbers_out():
    """Whoever carries messages never sees what a sum opens to."""
    root = Path(__file__).parents[2]
    folders = (root / name for name in ("fedlap_app", "server_app", "client_app"))
    files = [path for folder in folders for path in folder.rglob("*.py")]
    users = [p for p in files if re.search(r"\)\.numbers\b|opened\.numbers", p.read_text())]
    assert [p.name for p in users] == ["iteration.py"]


def test_numbers_do_not_print_and_can_be_used():
    opened = Opened(np.array([SECRET]))
    assert "0.12" not in f"{opened} {opened!r}"
    assert len(opened) == 1
    assert opened.numbers[0] == SECRET
