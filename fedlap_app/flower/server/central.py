"""The method `central`: all subgraphs in one place, as an upper bound."""

from typing import Any

from fedlap_app.flower.server.observer import Observer
from fedlap_app.flower.server.outcome import Outcome, StageScores
from fedlap_app.flower.server.parts import Parts, subgraphs_of
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.flower.server.summary import Clock, write_summary
from fedlap_app.graphs.graph import join
from fedlap_app.graphs.schema import schema_digest
from fedlap_app.methods.base import Schema
from fedlap_app.methods.features import own_encoding
from fedlap_app.methods.local import Local
from fedlap_app.methods.registry import method_class
from fedlap_app.methods.scores import Layout, pack, total, unpack
from fedlap_app.settings import Settings
from fedlap_app.store import names


def run_central(
    settings: Settings, run_id: int, observer: Observer, parts: Parts = ()
) -> dict[str, Any]:
    """Train one model on the whole graph and write the run folder."""
    clock = Clock()
    folder = RunFolder.create(settings, run_id)
    folder.write_json(names.CONFIG, settings.to_config())
    whole = join(subgraphs_of(settings, parts))
    method = method_class(settings.method).of(settings)
    assert isinstance(method, Local), "a method that needs all data in one place trains alone"
    encoding = own_encoding(whole, settings)
    part = encoding.apply(whole) if encoding else whole
    inputs = method.inputs(part, {})
    layout = Layout.of(settings, whole.num_classes)
    clock.lap("gather")
    results = method.train_alone(Schema(part.num_features, part.num_classes), inputs, whole.name)
    stages: list[StageScores] = []
    for stage, result in enumerate(results):
        for number, scores in enumerate(result.history, start=1):
            totals = total([unpack(scores, layout)])
            folder.add_round({"stage": stage, "round": number, **totals})
            count = len(results) * settings.rounds
            observer.round_done(stage * settings.rounds + number, count, totals)
        clients = {whole.name: unpack(pack(result.evaluation), layout)}
        rounds = len(result.history)
        stages.append(StageScores(result.best_stage, result.best_round, rounds, clients))
    clock.lap("train")
    read = encoding.to_bytes() if encoding else b""
    outcome = Outcome(stages, results[-1].parameters, encoding=read)
    schema = schema_digest(whole)
    return write_summary(folder, settings, outcome, run_id=run_id, schema=schema, clock=clock)
