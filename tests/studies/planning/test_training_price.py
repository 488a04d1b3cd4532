"""What a plan says of sealed training against a run."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fedlap_app.flower.grids.in_process import run_in_process
from fedlap_app.flower.server.observer import Unwatched
from fedlap_app.flower.server.run_folder import offline_file
from fedlap_app.graphs.federation import load_federation
from fedlap_app.methods.base import Schema
from fedlap_app.settings import Settings
from fedlap_app.studies.planning.training_price import training_price
from fedlap_app.sums.programs import Training


@pytest.mark.parametrize("ring", [32, 12])
def test_the_bytes_are_those_that_a_run_sends(ring):
    settings = replace(
        Settings(), method="fedavg", model="decoupled", accounts=240, clients=3, rounds=4,
        patience=0, self_training=1, hidden="1024", fusion="sum", standardise="none",
        training_ring=ring,
    )  # fmt: skip
    part = load_federation(settings.data_spec)[0]
    planned = training_price(settings, Schema(part.num_features, part.num_classes))
    summary = run_in_process(settings, Unwatched())
    folder = Path(summary["run_folder"])
    keys = json.loads((folder / offline_file(Training.name)).read_text(encoding="utf-8"))
    for way in ("up", "down"):
        for name, sent in summary[f"bytes_{way}"].items():
            # Headers and names come with every message.
            beside = sent - keys[way][name] - planned[f"bytes_{way}_per_client"]
            assert 0 < beside < 1000 * planned["round_trips"]
