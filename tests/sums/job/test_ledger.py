"""What the offline phase enters into ledgers, also when processes die."""

import json

import pytest

from fedlap_app.privacy.ledger import FILE
from fedlap_app.privacy.tally import Tally
from fedlap_app.store.newest import Newest
from fedlap_app.store.rewritten import RewrittenFile
from fedlap_app.sums.job.live import forget as forget_live


class KilledError(Exception):
    """Stands for the end of a process."""


def ledgers(phase):
    """Ledger of every organisation, by name."""
    found = {}
    for part in phase.parts:
        (path,) = (phase.root / part.name / "jobs").glob(f"*/{FILE}")
        found[part.name] = json.loads(path.read_text())
    return found


def entry(ledger, way, kind):
    (found,) = (e for e in ledger["entries"] if (e["way"], e["kind"]) == (way, kind))
    return found


def kinds(ledger, way):
    return [each["kind"] for each in ledger["entries"] if each["way"] == way]


def test_everything_that_travels_is_entered(make_phase):
    phase = make_phase()
    phase.run()
    found = ledgers(phase)
    for name, ledger in found.items():
        assert ledger["state"] == "finished"
        assert ledger["vectors"] == 12
        assert ledger["members"] == ["org-00", "org-01", "org-02"]
        blocks = entry(ledger, "sent", "block products")
        assert blocks["readable_by"] == ["nobody"]
        assert blocks["sum_readable_by"] == ["recipient"]
        assert blocks["messages"] == 3 * 2
        others = [each for each in found if each != name]
        received = {o: entry(found[o], "received", "block sums")["values"] for o in others}
        assert blocks["values"] == sum(received.values())
        smalls = entry(ledger, "sent", "small sums")
        assert smalls["values"] == entry(ledger, "received", "small sums")["values"]
        assert smalls["key_ids"] == blocks["key_ids"]
        assert len(smalls["key_ids"]) == 1
        assert entry(ledger, "received", "leader's solution")["values"] == 12 * 12 + 12 + 2
    leaders = [n for n in found if "leader's solution" in kinds(found[n], "sent")]
    assert len(leaders) == 1


def test_pair_keys_have_the_same_name_on_both_sides(make_phase):
    phase = make_phase()
    phase.run()
    ids = [set(entry(each, "sent", "edge check")["key_ids"]) for each in ledgers(phase).values()]
    assert all(len(one & other) == 1 for one in ids for other in ids if one is not other)


def test_plain_says_that_the_server_reads_all(make_phase):
    phase = make_phase(backend="plain")
    phase.run()
    for ledger in ledgers(phase).values():
        for kind in ("block products", "small sums", "totals of the graph"):
            assert entry(ledger, "sent", kind)["readable_by"] == ["server"]
            assert entry(ledger, "sent", kind)["key_ids"] == []


def test_with_two_members_each_reads_the_other(make_phase):
    phase = make_phase(graph={"clients": 2})
    phase.run()
    for ledger in ledgers(phase).values():
        assert entry(ledger, "sent", "block products")["readable_by"] == ["recipient"]
        assert entry(ledger, "sent", "small sums")["readable_by"] == ["all members"]


def test_ciphertexts_are_under_keys_of_two(make_phase):
    phase = make_phase(backend="ckks", vectors=4)
    phase.run()
    found = ledgers(phase)
    sent = {
        name: set(entry(ledger, "sent", "block products")["key_ids"])
        for name, ledger in found.items()
    }
    for name, ledger in found.items():
        assert set(entry(ledger, "received", "block sums")["key_ids"]) == sent[name]
        assert len(sent[name]) == len(found) - 1
        for other in sent.keys() - {name}:
            assert len(sent[name] & sent[other]) == 1


def test_ciphertexts_of_tenseal_are_under_the_recipients_keys(make_phase):
    phase = make_phase(backend="ckks", profile="tenseal-default", vectors=4)
    phase.run()
    found = ledgers(phase)
    for name, ledger in found.items():
        sent = set(entry(ledger, "sent", "block products")["key_ids"])
        own = {
            key
            for other in found
            if other != name
            for key in entry(found[other], "received", "block sums")["key_ids"]
        }
        assert sent == own
        assert len(sent) == 2


def test_shown_topology_is_entered(make_phase):
    phase = make_phase(hide_topology=False)
    phase.run()
    for ledger in ledgers(phase).values():
        assert entry(ledger, "sent", "names of partners")["readable_by"] == [
            "server",
            "all members",
        ]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("victim", ["RewrittenFile", "Newest"])
def test_deaths_at_every_write_change_no_count(make_phase, monkeypatch, moment, victim):
    expected = make_phase()
    expected.run()
    owner, name = {"RewrittenFile": (RewrittenFile, "write"), "Newest": (Newest, "write")}[victim]
    original, asked, died = getattr(owner, name), [], set()

    def deadly(self, *parts):
        where = str(self.path) if owner is RewrittenFile else ""
        first_time = bool(asked) and (*asked, where) not in died
        died.add((*asked, where))
        if first_time and moment == "before":
            raise KilledError
        original(self, *parts)
        if first_time:
            raise KilledError

    def restarted(member, request):
        asked[:] = member.party.name, request.kind, request.step
        while True:
            try:
                return member.answer(request)
            except KilledError:
                forget_live()

    phase = make_phase()
    monkeypatch.setattr(owner, name, deadly)
    phase.run(around=restarted)
    assert len(died) > 20
    assert ledgers(phase) == ledgers(expected)
    for part in phase.parts:
        member = phase.member(part)
        assert member.party.consent.exchanged() == 12


def test_a_resent_reply_counts_once(make_phase):
    phase = make_phase()
    phase.run(around=lambda member, request: [member.answer(request) for _ in range(3)][-1])
    for ledger in ledgers(phase).values():
        assert entry(ledger, "sent", "block products")["messages"] == 6
    for part in phase.parts:
        member = phase.member(part)
        assert member.party.consent.exchanged() == 12
        counted = Tally(phase.root / part.name, durable=False)
        assert counted.exchanged(member.party.consent.graph) == 12
