"""Three small banks, and settings that train on them in a second."""

import pytest

import fedlap_app as fedlap
from fedlap_app.knobs import key_of
from fedlap_app.relevance import read_by

QUICK = {
    "rounds": 2, "local_epochs": 1, "hidden": "8", "self_training": 0, "patience": 0,
    "operator": "sym", "vectors": 12, "backend": "mask",
}  # fmt: skip


@pytest.fixture
def quick():
    return dict(QUICK)


@pytest.fixture
def quick_for(quick):
    """The settings that a method reads."""
    return lambda method: {k: v for k, v in quick.items() if key_of(k) in read_by(method)}


@pytest.fixture
def orgs():
    return fedlap.load("banks", clients=3, accounts=240)
