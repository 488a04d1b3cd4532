"""A coordinator that sends models of its own making and reads the data out of their scores."""

import numpy as np
import pytest
from flwr.app import ConfigRecord, RecordDict

from fedlap_app.flower.client.organisation import _organisations
from fedlap_app.flower.records import to_arrays
from fedlap_app.methods.scores import LARGEST_LOSS, LOSS_DECIMALS
from fedlap_app.methods.task import Late
from tests.adversary.dishonest import (
    Coordinator,
    always,
    class_counts,
    model_of,
    scores_of,
    settings_of,
    watching,
    write_organisations,
)

SPLITS = ("train_mask", "val_mask", "test_mask")


@pytest.fixture
def victim(tmp_path):
    """Folders, and the data of the organisation that is asked."""
    folders, subgraphs = write_organisations(tmp_path / "orgs")
    return folders, subgraphs[0]


def begun(folders, **changed):
    """A run that the organisation joined."""
    server = Coordinator(folders, settings_of(**changed))
    assert not isinstance(server.join(), str)
    return server


def test_no_class_histogram_from_questions_outside_of_a_run(victim):
    folders, subgraph = victim
    server = Coordinator(folders, settings_of())
    answers = [
        scores_of(server.evaluate(always(subgraph, number)))
        for number in range(subgraph.num_classes)
    ]
    assert all(scores is None for scores in answers)


def test_a_stage_answers_one_question_after_its_rounds(victim):
    """The number of each class is what a model that always says this class gets right."""
    folders, subgraph = victim
    server = begun(folders)
    assert scores_of(server.train(model_of(subgraph))) is not None
    truth = class_counts(subgraph, subgraph.test_mask)
    found = {}
    for number in range(subgraph.num_classes):
        scores = scores_of(server.evaluate(always(subgraph, number)))
        if scores is not None:
            found[number] = int(scores[2, 1])
    assert found == {0: truth[0]}, "the stated ration: one model scored a stage"


def test_a_run_answers_one_model_a_round_one_scoring_and_one_keeping(victim):
    folders, subgraph = victim
    server, answered = begun(folders), 0
    for number in range(1, 20):
        for attempt in (0.0, 1.0):
            model = always(subgraph, number % subgraph.num_classes, attempt)
            answered += scores_of(server.train(model, number)) is not None
    for attempt in range(10):
        model = always(subgraph, attempt % subgraph.num_classes, 1.0 + attempt)
        answered += scores_of(server.evaluate(model)) is not None
        answered += scores_of(server.keep(model)) is not None
    assert answered == server.settings.rounds + 2


def test_no_histogram_in_the_digits_of_one_loss(victim):
    """Losses of one class 10^3 times those of another carry the count of each in one sum."""
    folders, subgraph = victim
    server, base = begun(folders), 1000
    bias = np.array([-float(base**power) for power in range(subgraph.num_classes)])
    scores = scores_of(server.train(model_of(subgraph, class_bias=bias)))
    for split, mask in zip(scores, SPLITS, strict=True):
        count, loss_sum = int(split[0]), split[2]
        total = round(loss_sum) + count  # each loss lacks the part of the likeliest class
        digits = [total // base**power % base for power in range(subgraph.num_classes)]
        assert digits[1:] != list(class_counts(subgraph, getattr(subgraph, mask)))[1:]
        mean = loss_sum / count if count else 0.0
        assert mean <= LARGEST_LOSS
        assert mean == pytest.approx(round(mean, LOSS_DECIMALS), abs=1e-9)


def test_no_feature_of_a_chosen_node_by_bisection(victim):
    """A unit that fires above a threshold tells by the loss whether any node is above it."""
    folders, subgraph = victim
    column = np.asarray(subgraph.features)[subgraph.test_mask, 0]
    server = begun(folders)
    assert scores_of(server.train(model_of(subgraph))) is not None
    low, high, answered = float(column.min()), float(column.max()) + 1.0, 0
    silent = np.log(subgraph.num_classes)
    for _ in range(30):
        middle = (low + high) / 2
        scores = scores_of(server.evaluate(watching(subgraph, 0, middle, 1e4)))
        if scores is None:
            continue
        answered += 1
        fired = abs(scores[2, 2] / scores[2, 0] - silent) > 0.01
        low, high = (middle, high) if fired else (low, middle)
    assert high - low > 0.4 * (column.max() + 1.0 - column.min()), (
        f"the largest value, {column.max():.6f}, is between {low:.6f} and {high:.6f}"
    )
    assert answered == 1, "the stated ration: one model scored a stage"


def test_the_ration_survives_the_client(victim):
    folders, subgraph = victim
    server = begun(folders)
    first = server.train(always(subgraph, 0))
    assert scores_of(first) is not None
    _organisations.clear()  # as in a new process
    assert "one model a round" in server.train(always(subgraph, 1))
    again = server.train(always(subgraph, 0))
    assert again == first, "the same message has the same answer"


@pytest.mark.parametrize(
    ("number", "stage", "sentence"),
    [(4, 0, "beyond rounds = 3"), (0, 0, "beyond rounds"), (1, 1, "self-training = 0")],
)
def test_no_round_beyond_those_of_the_settings(victim, number, stage, sentence):
    folders, subgraph = victim
    server = begun(folders)
    assert sentence in server.train(model_of(subgraph), number, stage=stage)


@pytest.mark.parametrize("number", [Late.EVALUATE, Late.KEEP])
@pytest.mark.parametrize("after", ["train", "evaluate", "keep"])
def test_a_round_with_the_number_of_a_late_message_is_none(victim, number, after):
    """It would be one more update a stage, about a model that may be scored besides."""
    folders, subgraph = victim
    server = begun(folders)
    model = always(subgraph, 0)
    task = {"run": server.run, "stage": 0, "server-round": int(number)}
    content = RecordDict({"arrays": to_arrays(model), "config": ConfigRecord(task)})
    assert scores_of(server.train(model)) is not None
    if after != "train":
        asked = {"evaluate": "evaluate", "keep": "evaluate.keep"}[after]
        assert scores_of(server.ask(asked, content)) is not None
    assert "beyond rounds = 3" in server.ask("train", content)


def test_rounds_only_move_forward(victim):
    folders, subgraph = victim
    server = begun(folders)
    assert scores_of(server.train(always(subgraph, 0), 2)) is not None
    assert "no earlier round" in server.train(always(subgraph, 1), 1)
    assert scores_of(server.train(always(subgraph, 1), 3)) is not None
    assert "no earlier round" in server.train(always(subgraph, 0), 2)
    assert scores_of(server.keep(always(subgraph, 1))) is not None
    assert "no earlier round" in server.evaluate(always(subgraph, 1))


def test_a_later_stage_scores_nothing_before_a_round_of_it(victim):
    folders, subgraph = victim
    server = begun(folders, self_training=1)
    assert scores_of(server.train(model_of(subgraph))) is not None
    assert "took part in no round of stage 1" in server.evaluate(model_of(subgraph), stage=1)
    assert "took part in no round of stage 1" in server.keep(model_of(subgraph), stage=1)


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("most-rounds = 5", {"rounds": 3, "self_training": 1}),
        ("most-stages = 1", {"self_training": 2}),
        ("most-evaluations = 3", {"self_training": 1}),
    ],
)
def test_limits_of_the_policy_hold_before_anything_starts(tmp_path, line, changed):
    folders, subgraphs = write_organisations(tmp_path / "orgs", [line])
    server = Coordinator(folders, settings_of(**changed))
    key = line.split(" = ")[0]
    assert f"({key})" in server.join()
    assert f"({key})" in server.train(model_of(subgraphs[0]))


@pytest.mark.parametrize("method", ["fedavg", "local"])
def test_scores_of_few_nodes_are_withheld(tmp_path, method):
    folders, subgraphs = write_organisations(tmp_path / "orgs", ["least-scored-nodes = 30"])
    sizes = [int(getattr(subgraphs[0], mask).sum()) for mask in SPLITS]
    assert min(sizes) < 30 <= max(sizes)
    server = begun(folders, method=method)
    model = model_of(subgraphs[0])
    if method == "fedavg":
        replies = [server.train(model), server.evaluate(model), server.keep(model)]
        rows = np.concatenate([scores_of(reply) for reply in replies])
    else:
        rows = np.concatenate(server.alone())
    for size, row in zip(sizes * (len(rows) // 3), rows, strict=True):
        assert row[0] == (size if size >= 30 else 0)
        assert size >= 30 or not row.any()


def test_a_run_of_one_method_gets_no_answer_of_another(victim):
    folders, _ = victim
    assert "asks for no such training" in begun(folders).alone()
