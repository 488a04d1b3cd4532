"""What others send reaches no parser but that of the agreed settings, and breaks none."""

import copy
import random
import shutil

import pytest
from flwr.app import ConfigRecord, Context

from client_app.app import app
from fedlap_app.errors import FedLapError
from fedlap_app.store.packing import pack, unpack
from fedlap_app.sums.ckks import tenseal_vectors, wire
from fedlap_app.sums.ckks.tenseal_parameters import TENSEAL_DEFAULT
from fedlap_app.sums.header import Header
from fedlap_app.sums.job import step_sums as sums
from fedlap_app.sums.job.checkpoint import Checkpoints
from fedlap_app.sums.job.coordinator import Choices, Coordinator
from fedlap_app.sums.kdf import encode

from .phases import FIRST_NODE, Grid, asked_of, bases, phase, same, settings_in

LENGTHS = (0xFFFFFFFF, 2**31, 2**63 - 1, 2**63, 2**64 - 1, 1, 7)


@pytest.fixture
def settings(tmp_path):
    return settings_in(tmp_path)


def foreign(data, **changes):
    """A contribution under another header."""
    header, size = Header.unpack(data)
    return header._replace(**changes).pack() + bytes(data[size:])


def for_tenseal(data):
    """A contribution that the accumulator of TenSEAL would hand to its parser."""
    header, _ = Header.unpack(data)
    header = header._replace(backend="ckks", profile="tenseal-default", sums=header.sums[:1])
    tag = wire.tag(TENSEAL_DEFAULT, wire.VECTORS, bytes(8))
    room = (16).to_bytes(8, "little") + bytes(16)
    return header.pack() + tag + room.ljust(tenseal_vectors.VECTOR_BYTES, b"\0")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (for_tenseal, "says backend = 'ckks' where 'mask' was expected"),
        (lambda data: foreign(data, backend="plain"), "says backend = 'plain' where 'mask'"),
        (lambda data: foreign(data, profile="q36"), "says profile = 'q36' where 'q44'"),
        (lambda data: foreign(data, phase="ritz"), "says phase = 'ritz' where 'krylov'"),
        (lambda data: foreign(data, step=9), "says step = 9 where"),
        (lambda data: foreign(data, attempt=3), "says attempt = 3 where 0"),
    ],
)
def test_the_first_contribution_chooses_no_parser(settings, monkeypatch, change, reason):
    """The server makes its accumulator by the agreed settings; a header only has to fit them."""

    class Lying(Grid):
        def alter_reply(self, message, reply):
            kind, _, _ = asked_of(message)
            if kind == "pairs" and message.metadata.dst_node_id == FIRST_NODE:
                tag, data = unpack(reply.content["reply"]["body"], 2)
                reply.content["reply"]["body"] = pack(tag, change(data))
            return reply

    made = []
    honest = sums.make_accumulator
    monkeypatch.setattr(sums, "make_accumulator", lambda *about: made.append(1) or honest(*about))
    with pytest.raises(FedLapError, match=reason):
        phase(settings, Lying(settings))
    assert not made


def mutations(data, rng):
    """Bytes that differ from some others in one way."""
    content = bytearray(data)
    if not content:
        return b"\0" * 8
    at = rng.randrange(len(content))
    match rng.randrange(6):
        case 0:
            content[at] ^= 1 << rng.randrange(8)
        case 1:
            del content[at:]
        case 2:
            content += rng.randbytes(rng.choice((1, 8, 64)))
        case 3:
            place = 8 * rng.randrange(max(1, len(content) // 8))
            content[place : place + 8] = rng.choice(LENGTHS).to_bytes(8, "little")
        case 4:
            place = 4 * rng.randrange(max(1, len(content) // 4))
            content[place : place + 4] = (rng.choice(LENGTHS) & 0xFFFFFFFF).to_bytes(4, "little")
        case 5:
            content[at : at + 16] = content[: len(content[at : at + 16])]
    return bytes(content)


class Recorder(Grid):
    """Keeps what crosses it, and sends each client's store some mutated messages first."""

    def __init__(self, settings, copies, rng, clones):
        super().__init__(settings)
        self.copies, self.rng, self.clones = copies, rng, clones
        self.rounds = []
        self.reasons = []

    def _deliver(self, message, context):
        kind, _, _ = asked_of(message)
        for _ in range(self.copies if kind else 0):
            self._attack(message, context)
        reply = super()._deliver(message, context)
        if kind:
            if not self.rounds or kind != self.rounds[-1][0] or len(self.rounds[-1][1]) == 3:
                self.rounds.append((kind, {}))
            self.rounds[-1][1][message.metadata.dst_node_id] = copy.deepcopy(reply)
            if kind == "hello":
                self.hello = message.content["common"]["body"].decode()
        return reply

    def _attack(self, message, context):
        """One mutated message, to the real ClientApp with a copy of the store."""
        altered = copy.deepcopy(message)
        which = self.rng.choice([n for n in ("own", "common") if "body" in altered.content[n]])
        body = mutations(altered.content[which]["body"], self.rng)
        altered.content[which] = ConfigRecord({**altered.content[which], "body": body})
        clone = self.clones / str(context.node_id)
        shutil.rmtree(clone, ignore_errors=True)
        shutil.copytree(self.stores[context.node_id], clone)
        node = {**context.node_config, "store-dir": str(clone)}
        run = context.run_id, context.node_id
        elsewhere = Context(*run, node, copy.deepcopy(context.state), dict(context.run_config))
        reply = app(altered, elsewhere)
        refusal = reply.content.get("refusal")
        self.reasons.append("" if refusal is None else str(refusal["reason"]))


def recorded(settings, tmp_path, copies, seed):
    rng = random.Random(seed)
    grid = Recorder(settings, copies, rng, tmp_path / "clones")
    names = [f"bank-{number:02d}" for number in range(3)]
    grid.stores = {FIRST_NODE + n: tmp_path / "stores" / name for n, name in enumerate(names)}
    phase(settings, grid)
    return grid, names


def attack(settings, tmp_path, copies, seed):
    """Mutated messages to all clients and to the server; gives how many of each."""
    grid, names = recorded(settings, tmp_path, copies, seed)
    (tmp_path / "other").mkdir(exist_ok=True)
    calm = settings_in(tmp_path / "other")
    phase(calm)
    assert same(bases(settings), bases(calm))
    # Neither another kind of error nor a place on the disk of the organisation.
    odd = [why for why in grid.reasons if " in the client; " in why or str(tmp_path) in why]
    assert not odd, odd[:3]
    assert sum(map(bool, grid.reasons)) > 0.8 * len(grid.reasons)
    return len(grid.reasons), mutate_replies(settings, grid, names, tmp_path, copies, seed)


def mutate_replies(settings, grid, names, tmp_path, copies, seed):
    """Let a server take the replies of a run again, each time with one that is mutated."""
    rng, count = random.Random(seed), 0
    spec = settings.offline_spec
    choices = Choices(grid.hello, spec.program, backend=spec.backend, profile=spec.profile)
    coordinator = Coordinator(names, choices, Checkpoints(tmp_path / "server"))
    stated = {"round_trips": 1, "bytes_up": 2, "bytes_down": 3, "seconds": 4.0}
    price = dict.fromkeys(names, stated)
    for kind, replies in grid.rounds:
        assert coordinator.request.kind == kind
        bodies = {
            names[node - FIRST_NODE]: each.content["reply"].get("body", b"")
            for node, each in replies.items()
        }
        for name in names:
            for _ in range(copies):
                count += 1
                other = copy.deepcopy(coordinator)
                try:
                    for each, body in bodies.items():
                        other.take(each, mutations(body, rng) if each == name else body)
                    other.advance(price)
                    # Another kind of the next message is for nobody but the members.
                    assert set(other.requests) <= set(names)
                except FedLapError:
                    continue
        for name, body in bodies.items():
            coordinator.take(name, body)
        coordinator.advance(price)
    assert coordinator.done
    return count


def test_mutated_messages_break_nobody(settings, tmp_path):
    """Only sentences come back, and an honest run still gives the same bytes."""
    clients, server = attack(settings, tmp_path, copies=9, seed=1)
    assert clients >= 200
    assert server >= 200


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_many_mutated_messages_break_nobody(settings, tmp_path, seed):
    assert sum(attack(settings, tmp_path, copies=60, seed=seed)) > 2500


def test_an_unreadable_contribution_ends_with_a_sentence():
    agreed = sums.Agreed("mask", "", "0" * 32, "0" * 32, "krylov", 1)
    for data in (b"", b"FLS", encode("x"), b"FLS" + b"\xff" * 200, b"\0" * 4096):
        with pytest.raises(FedLapError, match=r"does not begin with a header|format version"):
            sums.StepSums(agreed, lambda recipient: ("a", "b")).add("a", data)
