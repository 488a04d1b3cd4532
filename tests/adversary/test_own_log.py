"""Whatever protects less than the defaults is in the organisation's own log, run by run."""

import logging

import pytest

from fedlap_app.privacy.policy import SAFE, Policy, parse_policy

from .dishonest import Coordinator, settings_of, write_organisations

WEAKER = {
    "hide-topology": False,
    "unpadded-sums": True,
    "trust-on-first-use": True,
    "server-steps": True,
    "score-histograms": True,
    "jobs-a-day": 25,
    "runs-a-day": 25,
    "most-rounds": 1001,
    "most-stages": 11,
    "most-evaluations": 33,
    "most-feature-columns": 1,
    "least-scored-nodes": 9,
    "backends": ["ckks", "plain"],
    "methods": {"own": "00"},
    "most-feature-moments": 11,
    "most-walk-columns": 1,
    "training-backends": ["mask", "plain"],
    "two-members": True,
    "list-changes": 3,
    "publish-model": True,
}
STRICTER = {
    "jobs-a-day": 1,
    "most-rounds": 10,
    "least-scored-nodes": 100,
    "least-members": 5,
    "least-published-nodes": 51,
    "least-straggler-timeout": 60,
    "backends": ["mask"],
    "most-vectors": 10**6,
    "largest-auc": 1.0,
    "operators": ["sym", "directed"],
}


def said(tmp_path, caplog, policy, **changed):
    folders, _ = write_organisations(tmp_path / "orgs", policy)
    with caplog.at_level(logging.WARNING, "fedlap"):
        assert not isinstance(Coordinator(folders, settings_of(**changed)).join(), str)
    return [each.getMessage() for each in caplog.records if each.name == "fedlap"]


@pytest.mark.parametrize("key", WEAKER)
def test_every_key_that_allows_more_is_named(key):
    assert parse_policy({key: WEAKER[key]}).weaker == (key,)


@pytest.mark.parametrize("key", STRICTER)
def test_no_key_that_allows_less_is(key):
    assert parse_policy({key: STRICTER[key]}).weaker == ()
    assert SAFE.weaker == ()


def test_every_key_with_a_default_can_be_weaker():
    floors = {"least-members", "least-published-nodes", "least-straggler-timeout"}
    limits = {"most-vectors", "least-pinned-partners", "largest-auc", "operators"}
    names = {name.replace("_", "-") for name in Policy.__dataclass_fields__}
    assert names - limits - floors == set(WEAKER)


def test_a_run_under_the_defaults_is_quiet(tmp_path, caplog):
    (told,) = said(tmp_path, caplog, [])
    assert told.endswith("its policy allows more than the defaults in training-backends")


@pytest.mark.parametrize(
    ("line", "changed", "what"),
    [
        ("server-steps = true", {"optimizer": "sgd", "local_epochs": 1}, "single gradients"),
        ("score-histograms = true", {"metric": "roc-auc"}, "histograms of its labels"),
    ],
)
def test_a_run_that_shows_more_says_so(tmp_path, caplog, line, changed, what):
    lines = said(tmp_path, caplog, [line], **changed)
    assert any(what in each for each in lines)
    assert any(f"more than the defaults in {line.split(' ')[0]}" in each for each in lines)
