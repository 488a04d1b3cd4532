"""Limits of one organisation among real SuperNodes: each one stops the run, at its client alone."""

import json

import pytest

from fedlap_app.graphs.federation import DataSpec
from fedlap_app.studies.audit.ledger_report import job_report
from tests.integration.federation import Federation
from tests.integration.network import Loopback

pytestmark = pytest.mark.integration
BANKS = DataSpec(dataset="banks", clients=3, accounts=300)
CONFIG = {
    "method": "fedlap+",
    "rounds": 1,
    "local-epochs": 1,
    "self-training": 0,
    "hidden": "8",
    "structure-width": 8,
    "vectors": 4,
    "block": 2,
    "backend": "mask",
    "step-timeout": 600.0,
}


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    with Federation(tmp_path_factory.mktemp("consent"), BANKS, Loopback()) as made:
        yield made


@pytest.fixture(scope="module")
def limited(federation):
    """Name of the organisation that has limits."""
    return federation.names[1]


def limit(federation, name, *lines):
    """Put other limits into an organisation's org.toml."""
    path = federation.folder(name) / "data" / "org.toml"
    kept = path.read_text(encoding="utf-8").split("[consent]")[0].rstrip("\n")
    path.write_text("\n".join([kept, "[consent]", *lines, ""]), encoding="utf-8")


def count(federation, name):
    """Vectors that the organisation's store counts."""
    path = federation.store(name) / "consent.json"
    if not path.exists():
        return 0
    graphs = json.loads(path.read_text(encoding="utf-8"))["graphs"]
    return sum(each["before"] + sum(each["jobs"].values()) for each in graphs.values())


@pytest.mark.parametrize(
    ("line", "changed", "reason"),
    [
        ("most-vectors = 3", {}, "its limit most-vectors = 3 does not allow the 4 vectors"),
        ("least-pinned-partners = 3", {}, "its limit least-pinned-partners = 3 is not met"),
        ("largest-auc = 0.55", {}, "its limit largest-auc = 0.55 does not allow"),
        ('backends = ["ckks"]', {}, "its limit backends = ckks does not allow backend = 'mask'"),
        (
            'operators = ["rw"]',
            {},
            "its limit operators = rw does not allow operator = 'regularised'",
        ),
        ("hide-topology = true", {"hide-topology": False}, "its limit hide-topology = true does"),
    ],
)
def test_each_limit_stops_the_run(federation, limited, line, changed, reason):
    limit(federation, limited, line)
    outcome = federation.run({**CONFIG, **changed}, timeout=900)
    assert outcome.status == "finished:failed"
    who, _, said = outcome.error.partition(": ")
    assert said.startswith(reason)
    # Topology stays hidden without a line, too: whoever answers first refuses.
    assert who == limited or line == "hide-topology = true"
    assert not (outcome.folder / "summary.json").exists()
    assert not any(count(federation, name) for name in federation.names)


def test_the_count_survives_restarts_and_other_jobs(federation, limited):
    limit(federation, limited, "most-vectors = 7", "least-pinned-partners = 2")
    assert federation.run(CONFIG).summary["clients"] == 3
    assert count(federation, limited) == 4
    federation.restart(limited)
    outcome = federation.run({**CONFIG, "operator": "rw"})
    assert outcome.error.startswith(f"{limited}: its limit most-vectors = 7 does not allow")
    assert "set vectors to at most 3" in outcome.error
    assert count(federation, limited) == 4
    report = job_report(federation.store(limited))
    assert report["graphs"][0]["vectors"] == 4
    assert {"block products", "model updates"} <= {each["kind"] for each in report["sent"]}
