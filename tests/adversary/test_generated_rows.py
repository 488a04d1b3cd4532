"""A server of fedsage+ that has the others judge rows of its own making, beside their features."""

import numpy as np
import pytest
from flwr.app import ConfigRecord, RecordDict

from fedlap_app.flower.records import from_arrays, to_arrays
from fedlap_app.methods.base import Schema
from fedlap_app.methods.registry import method_class
from fedlap_app.models.mended import GROUP
from tests.adversary.dishonest import Coordinator, settings_of, write_organisations

ROWS = 4


@pytest.fixture
def victim(tmp_path):
    """A run that the organisation joined, its data, and the model that it begins with."""
    folders, subgraphs = write_organisations(tmp_path / "orgs")
    settings = settings_of(method="fedsage+", generated_rows=ROWS)
    server = Coordinator(folders, settings)
    assert not isinstance(server.join(), str)
    part = subgraphs[0]
    schema = Schema(part.num_features, part.num_classes)
    model = method_class("fedsage+").of(settings).start(schema, 0, {}).model
    return server, part, model


def asked(server, model, wanted, number=1):
    """What the organisation answers for rows of some names, or the sentence of a refusal."""
    config = ConfigRecord({"run": server.run, "stage": 0, "server-round": number})
    content = {"arrays": to_arrays(model), "wanted": to_arrays(wanted), "config": config}
    reply = server.ask("train", RecordDict(content))
    return reply if isinstance(reply, str) else from_arrays(reply.array_records["gradients"])


def test_no_node_is_in_two_of_the_means_that_it_tells(victim):
    """Else the difference of two means is that of single nodes, and enough of them say all."""
    server, part, model = victim
    features = np.asarray(part.features)
    rng, told = np.random.default_rng(0), []
    for number in (1, 2, 3):
        near = features[rng.integers(0, len(features), 1000 * ROWS)]
        rows = (near + rng.normal(size=near.shape, scale=0.3)).astype(np.float32)
        wanted = {f"m{at}": rows[ROWS * at : ROWS * (at + 1)] for at in range(1000)}
        answers = asked(server, model, wanted, number)
        told += [
            wanted[name] - gradient * part.num_features * ROWS / 2
            for name, gradient in answers.items()
        ]
    means = np.concatenate(told)
    distinct: list[np.ndarray] = []
    for mean in means:
        if all(np.abs(mean - other).max() > 1e-3 for other in distinct):
            distinct.append(mean)
    assert distinct
    assert GROUP * len(distinct) <= part.num_nodes


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((ROWS + 1, 0), np.float32),
        np.zeros(ROWS, np.float32),
        np.zeros((ROWS, 3), np.float32),
        np.full((1, 0), np.nan, np.float32),
        np.zeros((1, 0), np.int64),
    ],
    ids=["many", "flat", "narrow", "no numbers", "whole numbers"],
)
def test_other_rows_than_a_generator_makes_are_refused(victim, rows):
    server, part, model = victim
    if rows.ndim == 2 and not rows.shape[1]:
        fill = np.nan if rows.dtype.kind == "f" and rows.shape[0] == 1 else 0
        rows = np.full((len(rows), part.num_features), fill, rows.dtype)
    assert "no rows that a generator makes" in asked(server, model, {"bank-01": rows})
