"""Small runs for the tests of the server and its grids."""

import copy
from dataclasses import replace

import pytest

from client_app.app import app as client_app
from fedlap_app.flower.grids.local_grid import InProcessGrid, new_run_id, partition_configs
from fedlap_app.settings import Settings


class Silent:
    """Observer that only counts."""

    def __init__(self):
        self.rounds = []

    def step_done(self, number, steps):
        pass

    def round_done(self, number, rounds, totals):
        self.rounds.append((number, rounds, dict(totals)))


class WatchedGrid(InProcessGrid):
    """Keeps every message that crosses it."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.seen = []

    def _deliver(self, message, context):
        reply = super()._deliver(message, context)
        # A strategy may take the arrays out of a reply while it reads it.
        self.seen.append((message, copy.deepcopy(reply)))
        return reply


@pytest.fixture
def observer():
    return Silent()


@pytest.fixture
def settings():
    """Three banks with 240 accounts, two rounds, features as they are."""
    return replace(
        Settings(),
        method="fedavg",
        model="decoupled",
        accounts=240,
        clients=3,
        rounds=2,
        local_epochs=1,
        patience=0,
        self_training=0,
        fusion="sum",
        operator="sym",
        column_weights="none",
        hidden="8",
        training_backend="plain",
        standardise="none",
        step_timeout=60.0,
    )


@pytest.fixture
def make_grid():
    def build(settings, configs=None, app=client_app):
        configs = configs or partition_configs(settings.clients)
        return WatchedGrid(app, configs, settings.to_config(), run_id=new_run_id())

    return build
