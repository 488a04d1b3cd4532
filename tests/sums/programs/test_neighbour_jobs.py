"""Jobs of neighbour sums: death at any moment, altered sums, consent, ledger, reuse."""

import json
from dataclasses import replace

import numpy as np
import pytest

from fedlap_app.errors import ConsentError, ProtocolError
from fedlap_app.privacy.leakage import worst_case_auc
from fedlap_app.privacy.ledger import FILE
from fedlap_app.privacy.policy import SAFE
from fedlap_app.store.job_files import JobFiles
from fedlap_app.store.newest import Newest
from fedlap_app.studies.audit.ledger_report import job_report, report_text
from fedlap_app.sums.job.live import forget as forget_live
from fedlap_app.sums.program import Extent
from fedlap_app.sums.programs import NeighbourSums
from tests.sums.job.conftest import Deadly

from .conftest import gathered, with_policy

PROGRAM = NeighbourSums(hops=2, scaling="sym", block=3)
# Marks and three blocks of the seven columns, or of these and the marks of the second hop.
ROUNDS = 2 * (1 + 3)


@pytest.fixture
def make_sums(make_phase, random_federation):
    """Federations of one graph."""

    def build(**spec):
        spec.setdefault("program", PROGRAM)
        return make_phase(random_federation(7, clients=3), **spec)

    return build


@pytest.fixture
def undisturbed(make_sums):
    phase = make_sums()
    phase.run()
    return phase


def same(first, second):
    """Whether two phases gave the same bits, and sent them."""
    pairs = zip(gathered(first), gathered(second), strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


def test_the_rounds_are_those_of_the_schedule(undisturbed):
    kinds = [request.kind for name, request, _ in undisturbed.log if name == "org-00"]
    assert kinds == ["hello", "cards", "pairs", *["sums"] * ROUNDS]
    assert PROGRAM.rounds(Extent(features=7)) == ROUNDS
    assert PROGRAM.columns(Extent(features=7)) == 7 + 7 + 1


def test_a_new_process_for_every_message(make_sums, undisturbed):
    phase = make_sums()

    def fresh(member, request):
        forget_live()
        return member.answer(request)

    phase.run(around=fresh)
    assert same(phase, undisturbed)
    assert [reply for *_, reply in phase.log] == [reply for *_, reply in undisturbed.log]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    ("owner", "name"),
    [(JobFiles, "write"), (JobFiles, "write_at"), (Newest, "_fill"), (Newest, "_declare")],
)
def test_a_client_killed_at_every_write(make_sums, undisturbed, monkeypatch, owner, name, moment):
    """Each write of each member kills the process once, just before or just after it."""
    deadly = Deadly(monkeypatch, owner, name, moment)
    phase = make_sums()
    phase.run(around=deadly.answer)
    assert len(deadly.died) >= 3
    assert same(phase, undisturbed)
    assert [reply for *_, reply in phase.log] == [reply for *_, reply in undisturbed.log]


@pytest.mark.parametrize("rounds", range(1, 3 + ROUNDS + 1))
def test_a_server_killed_after_any_round_goes_on(make_sums, undisturbed, rounds):
    phase = make_sums()
    phase.run(rounds=rounds)
    forget_live()
    second = phase.run()
    assert second.resumed == (2 <= rounds < 3 + ROUNDS)
    assert second.reused == (rounds == 3 + ROUNDS)
    assert same(phase, undisturbed)


def test_a_finished_result_is_reused_and_a_basis_is_none(make_sums, make_phase, undisturbed):
    assert undisturbed.run().reused
    other = make_sums(program=replace(PROGRAM, hops=1))
    other.root = undisturbed.root
    assert not other.run().reused
    basis = make_phase(undisturbed.parts)
    basis.root = undisturbed.root
    assert not basis.run().reused
    assert undisturbed.run().reused
    assert basis.run().reused


@pytest.mark.parametrize("step", [2, 3, 5, 9])
@pytest.mark.parametrize("field", ["common", "own"])
def test_an_altered_sum_ends_the_job(make_sums, step, field):
    phase = make_sums()
    coordinator = phase.run(rounds=step + 1)
    member, request = phase.members["org-01"], coordinator.requests["org-01"]
    assert request.step == step
    data = bytearray(getattr(request, field))
    if not data:
        data = bytearray(8)
    data[-1] ^= 1
    with pytest.raises(ProtocolError):
        member.answer(replace(request, **{field: bytes(data)}))
    with pytest.raises(ProtocolError, match="has ended"):
        member.answer(request)


def test_a_sum_of_another_program_is_refused(make_sums, make_phase):
    sums = make_sums()
    basis = make_phase(sums.parts)
    coordinator = sums.coordinator()
    coordinator.choices = replace(coordinator.choices, program=basis.spec.program)
    with pytest.raises(ProtocolError, match="phase = 'neighbour-sums' where 'krylov'"):
        sums.run(coordinator)


ALLOWED = replace(SAFE, trust_on_first_use=True, most_feature_columns=30)


def test_nobody_gives_feature_columns_by_default(make_sums):
    phase = with_policy(
        make_sums(), replace(ALLOWED, most_feature_columns=SAFE.most_feature_columns)
    )
    with pytest.raises(
        ConsentError, match="most-feature-columns = 0 does not allow the 15 feature"
    ):
        phase.run()


def test_feature_columns_are_counted_by_themselves(make_sums, make_phase):
    phase = with_policy(make_sums(), ALLOWED)
    phase.run()
    consent = phase.members["org-00"].party.consent
    assert (consent.exchanged("feature columns"), consent.exchanged()) == (15, 0)
    # Other settings are another job; two of them are all that is allowed.
    again = with_policy(make_sums(program=replace(PROGRAM, scaling="mean")), ALLOWED)
    again.root = phase.root
    again.run()
    third = with_policy(make_sums(program=replace(PROGRAM, scaling="none")), ALLOWED)
    third.root = phase.root
    with pytest.raises(ConsentError, match="30 were exchanged in other jobs"):
        third.run()
    # Vectors have their own count, and the bound on the attacker counts both.
    basis = with_policy(make_phase(phase.parts), replace(ALLOWED, most_vectors=12))
    basis.root = phase.root
    basis.run()
    assert consent.all_exchanged() == 30 + 12


def test_a_bound_on_the_attacker_counts_feature_columns(make_sums):
    phase = with_policy(make_sums(), replace(ALLOWED, largest_auc=0.6))
    with pytest.raises(ConsentError, match=r"largest-auc = 0.6 does not allow"):
        phase.run()


def test_everything_that_travels_is_in_the_ledger(undisturbed):
    ledgers = {}
    for part in undisturbed.parts:
        (path,) = (undisturbed.root / part.name / "jobs").glob(f"*/{FILE}")
        ledgers[part.name] = json.loads(path.read_text())
    for name, ledger in ledgers.items():
        assert ledger["state"] == "finished"
        assert (ledger["program"], ledger["counted"]) == ("neighbour-sums", "feature columns")
        assert ledger["vectors"] == 15
        found = {(each["way"], each["kind"]): each for each in ledger["entries"]}
        sent = found["sent", "feature columns"]
        assert (sent["readable_by"], sent["sum_readable_by"]) == (["nobody"], ["recipient"])
        assert sent["messages"] == 6 * 2
        others = [each for each in ledgers if each != name]
        received = sum(
            entry["values"]
            for other in others
            for entry in ledgers[other]["entries"]
            if (entry["way"], entry["kind"]) == ("received", "sums of neighbours' features")
        )
        assert sent["values"] == received
        assert ("received", "leader's solution") not in found


def test_the_report_of_a_store_counts_feature_columns_apart(undisturbed, make_phase):
    basis = make_phase(undisturbed.parts)
    basis.root = undisturbed.root
    basis.run()
    report = job_report(undisturbed.root / "org-00")
    (graph,) = report["graphs"]
    assert (graph["vectors"], graph["feature_columns"]) == (12, 15)
    part = undisturbed.parts[0]
    columns, density = 12 + 15, graph["density"]
    assert graph["auc"] == worst_case_auc(columns, part.num_nodes, density)
    text = report_text(report)
    assert "vectors exchanged  12 (12 in the jobs above)" in text
    assert "feature columns exchanged  15 (15 in the jobs above)" in text


def test_names_values_and_numbers_stay_away_from_the_server(undisturbed):
    wire = b"".join(reply for *_, reply in undisturbed.log)
    for part in undisturbed.parts:
        for name in part.ids.tolist():
            assert name.encode() not in wire
        for value in part.features.astype("<f8").ravel():
            assert value.tobytes() not in wire
