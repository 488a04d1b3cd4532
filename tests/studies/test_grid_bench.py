import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedlap_app.flower.grids.in_process import run_in_process
from fedlap_app.graphs.federation import load_federation
from fedlap_app.models.evaluation import evaluate
from fedlap_app.models.networks import build_model
from fedlap_app.models.parameters import load_parameters
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.settings import Settings
from fedlap_app.studies.grid_bench import BareLoop, Pacer, bench_grid


@pytest.fixture
def settings():
    return replace(
        Settings(), method="fedavg", model="decoupled", accounts=240, clients=2, rounds=3,
        local_epochs=1, hidden="8", self_training=0, standardise="none", training_backend="plain",
    )  # fmt: skip


def test_the_report_is_the_difference_of_two_medians(settings):
    report = bench_grid(settings, repeats=1)
    assert report["overhead_ms"] == pytest.approx(report["grid_ms"] - report["bare_ms"])
    assert min(report["grid_ms"], report["bare_ms"], report["bare_ms"] + report["scoring_ms"]) > 0
    assert report["rounds"] == settings.rounds


def test_the_first_round_does_not_count(settings):
    pacer = Pacer(BareLoop(settings), BareLoop(settings))
    run_in_process(settings, pacer)
    assert [len(each) for each in (pacer.grid, pacer.bare, pacer.scored)] == [2, 2, 2]


def test_the_bare_loop_trains_what_the_grid_trains(settings):
    bare, scored = BareLoop(settings), BareLoop(settings)
    for number in range(1, settings.rounds + 1):
        bare.round(number, scored=False)
        scored.round(number, scored=True)
    summary = run_in_process(settings, Pacer(BareLoop(settings), BareLoop(settings)))
    rows = (Path(summary["run_folder"]) / "metrics.jsonl").read_text().splitlines()
    correct = nodes = 0
    for member in load_federation(settings.data_spec):
        spec = settings.model_spec(member.num_features, member.num_classes)
        model = build_model(spec, settings.seed)
        load_parameters(model, bare.parameters)
        scores = evaluate(model, GraphTensors.from_subgraph(member, spec, "cpu")).test
        correct, nodes = correct + scores.correct, nodes + scores.count
    assert json.loads(rows[-1])["test_accuracy"] == pytest.approx(correct / nodes)
    for name, value in bare.parameters.items():
        np.testing.assert_allclose(scored.parameters[name], value)
