"""Everything that the server sees of a recorded run, and what a dishonest server can do with it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.store.packing import pack, unpack, unpack_named
from fedlap_app.sums.backend import SumBackend
from fedlap_app.sums.header import Header

SCALE = 2.0**44
GRAPH = {"nodes": 120, "edges": 400, "clients": 4}


def body(data):
    data = bytes(data)
    return data[Header.unpack(data)[1] :]


def contribution(reply):
    """Header and body of all that a reply contributes, if anything."""
    parts = unpack(reply)
    if bytes(parts[0]) != b"contribution":
        return None
    return Header.unpack(parts[1])[0], body(parts[1])


def slots_of(reply):
    """What a reply contributes to each sum."""
    header, words = contribution(reply)
    found, at = {}, 0
    for each in header.sums:
        size = 8 * (each.length + 3)
        found[each.recipient] = words[at : at + size]
        at += size
    return found


@pytest.fixture
def recorded(make_phase, monkeypatch):
    """A run with all its messages, and every plaintext that was sealed or opened in it."""
    plain = []
    seal, opened = SumBackend.seal_sheet, SumBackend.open

    def sealing(self, sheet, **options):
        plain.extend(each.copy() for each in sheet.rooms.values())
        return seal(self, sheet, **options)

    def opening(self, data, header, **options):
        numbers = opened(self, data, header, **options)
        plain.append(numbers.numbers.copy())
        return numbers

    monkeypatch.setattr(SumBackend, "seal_sheet", sealing)
    monkeypatch.setattr(SumBackend, "open", opening)
    phase = make_phase(graph=GRAPH, vectors=40, block=10)
    phase.run()
    return phase, plain


def seen_by_server(phase):
    """Bodies of all contributions, and of all sums."""
    single, sums = [], {}
    for _, request, reply in phase.log:
        if request.kind in ("pairs", "sums"):
            single += [contribution(reply)[1]] if contribution(reply) else []
        if request.kind == "sums":
            # The small sum goes to all members; it counts once.
            sums |= dict.fromkeys(body(data) for data in (request.common, request.own) if data)
    return single, list(sums)


def test_contributions_and_sums_are_uniform(recorded):
    phase, _ = recorded
    for some in seen_by_server(phase):
        counts = np.bincount(np.frombuffer(b"".join(some), np.uint8), minlength=256)
        assert counts.sum() > 50_000
        assert chisquare(counts).pvalue > 1e-6


def test_no_plaintext_value_crosses_the_server(recorded):
    phase, plain = recorded
    numbers = np.concatenate(plain)
    numbers = numbers[np.abs(numbers) > 1e-9]
    wire = b"".join(bytes(part) for _, q, r in phase.log for part in (q.common, q.own, r))
    for offset in range(8):
        words = np.frombuffer(wire, "<u8", offset=offset, count=(len(wire) - offset) // 8)
        assert not np.isin(numbers.view(np.uint64), words).any()
        fixed = np.rint(numbers * SCALE).astype(np.int64)
        large = fixed[np.abs(fixed) > 2**24].view(np.uint64)
        assert large.size > 1000
        assert not np.isin(large, words).any()


def test_no_result_id_or_key_crosses_the_server(recorded):
    phase, _ = recorded
    wire = b"".join(bytes(part) for _, q, r in phase.log for part in (q.common, q.own, r))
    U, values = phase.gathered()
    for numbers in (U.ravel(), values):
        assert not any(float(x).hex().encode() in wire for x in numbers[:50])
        assert not any(np.float64(x).tobytes() in wire for x in numbers if abs(x) > 1e-9)
    for part in phase.parts:
        secrets = phase.make_secrets(part.name)
        assert secrets.organisation not in wire
        assert secrets.identity.signing_key not in wire
        assert secrets.identity.agreement_key not in wire
        assert not any(f"{node}".encode() in wire for node in part.ids)


def test_pair_messages_have_one_length_whatever_is_shared(make_phase):
    phase = make_phase(graph={"nodes": 60, "edges": 40, "clients": 4})
    phase.run(rounds=2)
    for _, request, reply in phase.log:
        if request.kind == "cards":
            sealed = unpack_named(unpack(reply)[1])
            assert len({len(data) for data in sealed.values()}) == 1


def test_everyone_sends_to_everyone(recorded):
    phase, _ = recorded
    for name, request, reply in phase.log:
        if request.kind == "sums" and (sent := contribution(reply)) and len(sent[0].sums) > 1:
            recipients = {each.recipient for each in sent[0].sums}
            assert recipients == {"", *(p.name for p in phase.parts)} - {name}


def test_headers_count_the_vectors_exchanged_so_far(recorded):
    phase, _ = recorded
    vectors = [
        contribution(reply)[0].vectors
        for name, request, reply in phase.log
        if name == "org-00" and request.kind == "sums" and contribution(reply)
    ]
    assert vectors == [0, 10, 20, 30, 40]


class TestServerRefuses:
    """Contributions that the server must not add."""

    @pytest.fixture
    def scene(self, make_phase):
        """A coordinator that waits for the third sums, and the replies it would get."""
        phase = make_phase(graph=GRAPH)
        coordinator = phase.run(rounds=5)
        replies = {
            name: bytes(member.answer(coordinator.requests[name]))
            for name, member in phase.members.items()
        }
        old = {name: reply for name, request, reply in phase.log if request.kind == "sums"}
        return coordinator, replies, old

    def changed(self, reply, change):
        """The reply with another header and body."""
        header, words = change(*contribution(reply))
        return pack(b"contribution", header.pack() + words)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("key_id", "00" * 8),
            ("job", "00" * 16),
            ("members", "00" * 16),
            ("step", 2),
            ("vectors", 0),
            ("profile", "q36"),
        ],
    )
    def test_a_foreign_header(self, scene, field, value):
        coordinator, replies, _ = scene
        coordinator.take("org-00", replies["org-00"])
        bad = self.changed(
            replies["org-01"], lambda header, words: (header._replace(**{field: value}), words)
        )
        with pytest.raises(ProtocolError, match=f"says {field} = "):
            coordinator.take("org-01", bad)

    @pytest.mark.parametrize("recipient", ["", "org-02"])
    def test_another_length_of_a_sum(self, scene, recipient):
        coordinator, replies, _ = scene
        coordinator.take("org-00", replies["org-00"])

        def change(header, words):
            sums = tuple(
                each._replace(length=8) if each.recipient == recipient else each
                for each in header.sums
            )
            return header._replace(sums=sums), words

        with pytest.raises(ProtocolError, match="says length = 8"):
            coordinator.take("org-01", self.changed(replies["org-01"], change))

    def test_a_wrong_length(self, scene):
        coordinator, replies, _ = scene
        bad = self.changed(replies["org-01"], lambda header, words: (header, words[:-8]))
        with pytest.raises(ProtocolError, match="cut or altered"):
            coordinator.take("org-01", bad)

    def test_a_stale_contribution(self, scene):
        coordinator, _, old = scene
        with pytest.raises(ProtocolError, match="says step = 3 where 4 was expected"):
            coordinator.take("org-01", old["org-01"])

    def test_a_doubled_contribution(self, scene):
        coordinator, replies, _ = scene
        coordinator.take("org-01", replies["org-01"])
        with pytest.raises(ProtocolError, match="second or foreign reply"):
            coordinator.take("org-01", replies["org-01"])
        with pytest.raises(ProtocolError, match=r"contributed to .* already"):
            coordinator.take("org-02", replies["org-01"])

    def test_a_contribution_in_the_name_of_another(self, scene):
        coordinator, replies, _ = scene
        with pytest.raises(ProtocolError, match="in the name of another"):
            coordinator.take("org-02", replies["org-01"])

    def test_a_dropped_contribution(self, scene):
        coordinator, replies, _ = scene

        def without(header, words):
            left = slots_of(replies["org-01"])
            del left["org-02"]
            sums = tuple(each for each in header.sums if each.recipient in left)
            return header._replace(sums=sums), b"".join(left.values())

        replies["org-01"] = self.changed(replies["org-01"], without)
        for name, reply in replies.items():
            coordinator.take(name, reply)
        with pytest.raises(ProtocolError, match="lacks org-01"):
            coordinator.advance()

    def test_a_missing_reply(self, scene):
        coordinator, replies, _ = scene
        coordinator.take("org-00", replies["org-00"])
        with pytest.raises(ProtocolError, match="No reply from org-01, org-02, org-03"):
            coordinator.advance()


class TestMembersRefuse:
    """What a dishonest server may try with the sums."""

    @pytest.fixture
    def scene(self, make_phase):
        phase = make_phase(graph=GRAPH)
        coordinator = phase.run(rounds=6)
        return phase, coordinator.requests["org-01"]

    @pytest.mark.parametrize("field", ["common", "own"])
    @pytest.mark.parametrize("place", [5, 40, 150, -4, -100])
    def test_a_flipped_byte(self, scene, field, place):
        phase, request = scene
        data = bytearray(getattr(request, field))
        data[place] ^= 0x10
        with pytest.raises(ProtocolError):
            phase.members["org-01"].answer(replace(request, **{field: bytes(data)}))

    @pytest.mark.parametrize("field", ["common", "own"])
    def test_a_sum_that_lacks_or_doubles_a_contribution(self, scene, field):
        phase, request = scene
        recipient = "" if field == "common" else "org-01"
        reply = next(r for n, q, r in reversed(phase.log) if n == "org-02" and q.kind == "sums")
        one = np.frombuffer(slots_of(reply)[recipient], "<u8")
        data = getattr(request, field)
        size = Header.unpack(data)[1]
        for sign in (np.add, np.subtract):
            words = sign(np.frombuffer(data[size:], "<u8"), one)
            forged = data[:size] + words.tobytes()
            with pytest.raises(ProtocolError, match="pads do not cancel"):
                phase.members["org-01"].answer(replace(request, **{field: forged}))

    @pytest.mark.parametrize("field", ["common", "own"])
    def test_a_replayed_sum(self, scene, field):
        phase, request = scene
        old = [q for n, q, _ in phase.log if n == "org-01" and q.kind == "sums"][-1]
        with pytest.raises(ProtocolError, match="says step = "):
            phase.members["org-01"].answer(replace(request, **{field: getattr(old, field)}))

    def test_the_sum_of_another_member(self, scene):
        phase, request = scene
        other = phase.run(rounds=0, resume=True)  # a second server that knows nothing
        assert other.request.kind == "hello"
        foreign = [q for n, q, _ in phase.log if n == "org-02" and q.kind == "sums"][-1]
        with pytest.raises(ProtocolError):
            phase.members["org-01"].answer(replace(request, own=foreign.own))

    def test_a_missing_block_sum(self, scene):
        phase, request = scene
        with pytest.raises(ProtocolError, match="dropped or misrouted"):
            phase.members["org-01"].answer(replace(request, own=b""))

    def test_a_solution_that_was_altered_or_is_not_the_leaders(self, make_phase):
        phase = make_phase()
        coordinator = phase.run(rounds=8)
        request = coordinator.requests["org-01"]
        assert request.kind == "share"
        data = bytearray(request.common)
        data[-3] ^= 1
        with pytest.raises(ProtocolError, match="altered"):
            phase.members["org-01"].answer(replace(request, common=bytes(data)))

    def test_members_that_were_told_different_sums_find_out(self, make_phase):
        """The last sums differ: the leader's message does not fit the others' transcript."""
        from fedlap_app.sums.job import iteration

        phase = make_phase()
        coordinator = phase.run(rounds=8)
        extend = iteration.Transcript.extend
        leader = coordinator.roster.leader
        victim = next(part.name for part in phase.parts if part.name != leader)
        # The victim's own view of the last sums is replaced, as if it had opened other ones.
        from fedlap_app.sums.job import live

        path = phase.members[victim].party.job(coordinator.request.job).at("")
        kept = live._live[path].work
        kept.transcript = extend(kept.transcript, b"other")
        with pytest.raises(ProtocolError, match="told other sums"):
            phase.members[victim].answer(coordinator.requests[victim])

    def test_altered_pair_messages_and_senders(self, make_phase):
        phase = make_phase()
        request = phase.run(rounds=2).requests["org-01"]
        member = phase.members["org-01"]
        data = bytearray(request.own)
        data[-30] ^= 1
        with pytest.raises(ProtocolError, match="altered"):
            member.answer(replace(request, own=bytes(data)))
        with pytest.raises(ProtocolError, match="against the settings"):
            member.answer(replace(request, common=b'{"org-01": ["org-00"]}'))

    def test_a_wrong_list_of_senders(self, make_phase):
        phase = make_phase(hide_topology=False)
        request = phase.run(rounds=2).requests["org-01"]
        bad = b'{"org-00": [], "org-01": ["org-00"], "org-02": []}'
        with pytest.raises(ProtocolError, match="does not fit the edges"):
            phase.members["org-01"].answer(replace(request, common=bad))


def test_one_organisation_is_not_enough(make_phase):
    with pytest.raises(RunError, match="two or more"):
        make_phase(graph={"clients": 1}).run()
