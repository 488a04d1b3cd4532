"""A week of a federation: accounts come every day, an organisation joins, one leaves, one dies."""

import csv
import shutil
import subprocess

import numpy as np
import pytest

from fedlap_app.api.run import open_run
from fedlap_app.api.updating import settings_elsewhere
from fedlap_app.deploy.coordinator import Wishes, issue
from fedlap_app.deploy.request import FILE as REQUEST
from fedlap_app.deploy.request import read_request
from fedlap_app.graphs.federation import DataSpec, load_federation
from fedlap_app.graphs.folder import write_folder
from fedlap_app.graphs.without import without
from tests.integration.federation import Federation, environment
from tests.integration.processes import PATIENCE, wait_for

pytestmark = pytest.mark.faults
BANKS = DataSpec(dataset="banks", clients=4, accounts=320)
JOINS, LEAVES, VICTIM = "bank-03", "bank-01", "bank-00"
FIRST = ("bank-00", "bank-01", "bank-02")
CONFIG = {
    "rounds": 2,
    "local-epochs": 1,
    "self-training": 0,
    "hidden": "16",
    "structure-width": 16,
    "vectors": 10,
    "step-timeout": 400.0,
}
LIMIT = 900.0
DAYS = range(1, 8)


class Week:
    """The federation with what its members hold on a day.

    Parameters
    ----------
    federation
        Four organisations, of which one is no member yet.
    """

    def __init__(self, federation):
        self.federation = federation
        self.parts = load_federation(BANKS)
        rng = np.random.default_rng(0)
        self.arrivals = {
            day: np.concatenate([rng.choice(part.ids, size=1) for part in self.parts])
            for day in DAYS
        }
        self.members = FIRST

    def change_members(self, *, joins=(), leaves=()):
        """A new federation file for all, and nothing else for those who stay."""
        coordinator = self.federation.demo.out / "coordinator"
        requests = [read_request(self.federation.folder(name) / REQUEST) for name in joins]
        issue(coordinator, requests, Wishes(remove=tuple(leaves)))
        self.members = tuple(sorted({*self.members, *joins} - set(leaves)))
        for name in self.members:
            given = coordinator / "organisations" / name
            shutil.copytree(given, self.federation.folder(name), dirs_exist_ok=True)

    def begins(self, day):
        """Every member writes down what it holds on that day."""
        for part in self.parts:
            if part.name in self.members:
                write_folder(self.held(part, day), self.federation.folder(part.name) / "data")

    def held(self, part, day):
        """What an organisation holds on a day, with edges to members only."""
        away = [other.ids for other in self.parts if other.name not in self.members]
        later = [ids for came, ids in self.arrivals.items() if came > day]
        return without(part, np.concatenate([*away, *later]))

    def predicts(self, day):
        """Predictions of every member, by its own script; the kinds of rows that it used."""
        kinds = set()
        for part in self.parts:
            if part.name not in self.members:
                continue
            folder = self.federation.folder(part.name)
            done = subprocess.run(
                ["sh", str(folder / "start.sh"), "predict"],
                env=environment(),
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            with (folder / "data" / "predictions.csv").open(encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            assert {row["id"] for row in rows} == set(self.held(part, day).ids.tolist())
            kinds |= {row["basis"] for row in rows}
        return kinds

    def trains(self, settings, *, kill=False):
        """A run of the members of now; one of them may die in its middle."""
        run = self.federation.submit({**settings, "clients": len(self.members)})
        if kill:
            victim = self.federation.organisations[VICTIM]

            def busy():
                since = victim.output.partition(f"[RUN {run}]")[2]
                return since.count("Receiving: query.offline message") >= 5

            wait_for(f"{VICTIM} is in the offline phase", busy, LIMIT)
            assert victim.kill()
        outcome = self.federation.wait(run, LIMIT)
        assert outcome.summary["clients"] == len(self.members)
        return outcome


@pytest.fixture
def week(tmp_path):
    federation = Federation(tmp_path, BANKS)
    found = Week(federation)
    found.members = (*FIRST, JOINS)
    found.change_members(leaves=(JOINS,))
    try:
        found.begins(0)
        federation.start_superlink()
        federation.register()
        for name in found.members:
            federation.organisations[name].start()
        yield found
    finally:
        federation.close()


def test_a_week(week):
    outcome = week.trains(CONFIG)
    for day in DAYS:
        if day == 3:
            week.change_members(joins=(JOINS,))
            week.begins(day)
            week.federation.register()
            week.federation.organisations[JOINS].start()
            earlier, before = open_run(outcome.folder), outcome.offline["round_trips"]
            outcome = week.trains(settings_elsewhere(earlier, joined=True))
            assert outcome.offline["job"] != earlier.offline["job"]
            assert outcome.offline["round_trips"] <= before
        elif day == 6:
            script = week.federation.script("unregister.sh", LEAVES)
            assert script.returncode == 0, script.stdout + script.stderr
            week.federation.organisations[LEAVES].stop()
            week.change_members(leaves=(LEAVES,))
            week.begins(day)
            outcome = week.trains(settings_elsewhere(open_run(outcome.folder)), kill=True)
        else:
            week.begins(day)
        kinds = week.predicts(day)
        assert "computed" in kinds
        assert (kinds == {"computed"}) == (day in (3, 6)), f"day {day}: {kinds}"
