"""Jobs of feature moments: equality with one table, death at any moment, consent, ledger, plan."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fedlap_app.errors import ConsentError, ProtocolError
from fedlap_app.graphs.graph import join
from fedlap_app.graphs.learned import learn
from fedlap_app.graphs.moments import ROUNDS
from fedlap_app.privacy.ledger import FILE
from fedlap_app.privacy.policy import SAFE
from fedlap_app.store.job_files import JobFiles
from fedlap_app.store.newest import Newest
from fedlap_app.sums.job.live import forget as forget_live
from fedlap_app.sums.program import Extent
from fedlap_app.sums.programs import FeatureMoments
from tests.sums.job.conftest import Deadly

from .test_neighbour_jobs import with_policy

PROGRAM = FeatureMoments(classes=True)
NUMBERS = ("bound", "centre", "unit", "mean", "deviation", "class_counts")


@pytest.fixture
def make_sums(make_phase, random_federation):
    """Federations of one graph with columns of many sizes."""

    def build(*, clients=4, **spec):
        spec.setdefault("program", PROGRAM)
        parts = random_federation(7, clients=clients)
        sizes = np.array([1.0, 2e4, 1e-5, 1.0, 3e6, 1.0, 1.0])
        offsets = np.array([0.0, 3e4, 0.0, 1e3, 0.0, 0.0, -50.0])
        moved = [
            part.with_features(
                np.asarray(part.features * sizes + offsets, np.float32), part.feature_names
            )
            for part in parts
        ]
        return make_phase(moved, **spec)

    return build


def encodings(phase):
    """What every organisation holds."""
    held = [phase.members[part.name].party.results for part in phase.parts]
    return [results.load(results.facts()[0]).encoding for results in held]


@pytest.fixture
def undisturbed(make_sums):
    phase = make_sums()
    phase.run()
    return phase


def same(first, second):
    pairs = zip(encodings(first), encodings(second), strict=True)
    return all(one.to_bytes() == other.to_bytes() for one, other in pairs)


@pytest.mark.parametrize(("backend", "bound"), [("mask", 1e-9), ("ckks", 1e-4)])
def test_sealed_sums_say_what_one_table_says(make_sums, backend, bound):
    phase = make_sums(backend=backend)
    phase.run()
    expected = learn([join(phase.parts)], classes=True)
    for found in encodings(phase):
        assert np.array_equal(found.rule, expected.rule)
        for name in NUMBERS:
            assert np.allclose(getattr(found, name), getattr(expected, name), rtol=bound, atol=1e-6)


def test_the_rounds_are_those_of_the_schedule(undisturbed):
    kinds = [request.kind for name, request, _ in undisturbed.log if name == "org-00"]
    assert kinds == ["hello", "cards", "pairs", *["sums"] * ROUNDS]
    extent = Extent(features=7, classes=1)
    assert PROGRAM.rounds(extent) == ROUNDS
    assert PROGRAM.columns(extent) == 1


def test_a_new_process_for_every_message(make_sums, undisturbed):
    phase = make_sums()

    def fresh(member, request):
        forget_live()
        return member.answer(request)

    phase.run(around=fresh)
    assert same(phase, undisturbed)
    assert [reply for *_, reply in phase.log] == [reply for *_, reply in undisturbed.log]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("owner", "name"), [(JobFiles, "write"), (Newest, "_fill")])
def test_a_client_killed_at_every_write(make_sums, undisturbed, monkeypatch, owner, name, moment):
    deadly = Deadly(monkeypatch, owner, name, moment)
    phase = make_sums()
    phase.run(around=deadly.answer)
    assert len(deadly.died) >= 3
    assert same(phase, undisturbed)


@pytest.mark.parametrize("rounds", [2, 5, 3 + ROUNDS])
def test_a_server_killed_goes_on_and_a_result_is_kept(make_sums, undisturbed, rounds):
    phase = make_sums()
    phase.run(rounds=rounds)
    forget_live()
    second = phase.run()
    assert second.reused == (rounds == 3 + ROUNDS)
    assert same(phase, undisturbed)


@pytest.mark.parametrize("step", [2, 5, 9])
def test_an_altered_sum_ends_the_job(make_sums, step):
    phase = make_sums()
    coordinator = phase.run(rounds=step + 1)
    member, request = phase.members["org-01"], coordinator.requests["org-01"]
    data = bytearray(request.common)
    data[-1] ^= 1
    with pytest.raises(ProtocolError):
        member.answer(replace(request, common=bytes(data)))
    with pytest.raises(ProtocolError, match="has ended"):
        member.answer(request)


ALLOWED = replace(SAFE, trust_on_first_use=True, most_feature_moments=1)


def test_a_second_computation_is_counted_whatever_the_graph_is(make_sums, random_federation):
    phase = with_policy(make_sums(), ALLOWED)
    phase.run()
    consent = phase.members["org-00"].party.consent
    assert (consent.exchanged("feature moments"), consent.all_exchanged()) == (1, 0)
    assert phase.run().reused
    # One value has changed: the difference of the sums would show it.
    changed = with_policy(make_sums(), ALLOWED)
    changed.root = phase.root
    part = changed.parts[2]
    features = np.array(part.features)
    features[0, 0] += 1.0
    changed.parts[2] = part.with_features(features, part.feature_names)
    with pytest.raises(ConsentError, match="most-feature-moments = 1 does not allow another"):
        changed.run()
    # Another graph is no new count.
    other = with_policy(make_sums(), ALLOWED)
    other.root = phase.root
    other.parts[:] = random_federation(8, clients=4)
    with pytest.raises(ConsentError, match="1 were made"):
        other.run()


def test_what_travels_is_in_the_ledger(undisturbed):
    (path,) = (undisturbed.root / "org-00" / "jobs").glob(f"*/{FILE}")
    ledger = json.loads(path.read_text())
    assert (ledger["program"], ledger["counted"]) == ("feature-moments", "feature moments")
    assert ledger["state"] == "finished"
    kinds = {each["kind"] for each in ledger["entries"] if each["way"] == "sent"}
    assert "counts of values" in str(kinds)


def test_it_says_what_it_gives_away(undisturbed):
    found = PROGRAM.reveals(undisturbed.parts)
    assert (found["numbers"], found["categories"]) == (7, 0)
    assert any("difference" in line for line in found["says"])


def test_two_organisations_would_show_each_other_theirs():
    def site(members, *, simulated):
        secrets = SimpleNamespace(simulated=simulated)
        return SimpleNamespace(members=members, secrets=secrets)

    with pytest.raises(ConsentError, match="they need 3: set standardise = 'alone'"):
        PROGRAM.half(site(2, simulated=False))
