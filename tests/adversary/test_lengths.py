"""Lengths, counts and indexes of others: nobody makes room for what a message only claims."""

import io
import resource
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

from fedlap_app.errors import FedLapError
from fedlap_app.store.packing import pack, unpack
from fedlap_app.sums.header import Header
from fedlap_app.sums.job import handshake, parts
from fedlap_app.sums.kdf import encode
from fedlap_app.sums.layout import Layout

from .phases import FIRST_NODE, Grid, ask, asked_of, bases, phase, same, settings_in, with_body

JOB = "0123456789abcdef" * 2
LIAR = FIRST_NODE + 2


@pytest.fixture
def settings(tmp_path):
    return settings_in(tmp_path)


@pytest.mark.parametrize(
    ("slots", "multiple", "reason"),
    [
        (2**31, 1, "claims 2147483648 slots in a message of"),
        (2**63 - 1, 64, "claims 9223372036854775807 slots in a message of"),
        (2**20, 64, "claims 1048576 slots in a message of"),
        (0, 2**40, "multiple of 1099511627776"),
    ],
)
def test_a_member_that_claims_a_giant_layout(settings, monkeypatch, slots, multiple, reason):
    """`frame.slots` and `frame.multiple` say how much memory all others take."""

    class Lying(Grid):
        def _deliver(self, message, context):
            with monkeypatch.context() as patch:
                if message.metadata.dst_node_id == LIAR:
                    patch.setattr(
                        Layout,
                        "share",
                        lambda layout, rows, unheard: encode(
                            slots or layout.frame.slots,
                            multiple,
                            layout.slot_of[rows].astype("<u4").tobytes(),
                        ),
                    )
                return super()._deliver(message, context)

    with pytest.raises(FedLapError, match=reason):
        phase(settings, Lying(settings))


def test_a_member_that_fills_its_handshake_to_claim_a_giant_layout(tmp_path, monkeypatch):
    """4 MB from one member would make each of the others take 1 GB for its products."""
    slots = 2**20
    settings = settings_in(tmp_path, vectors=130, block=130)
    share = Layout.share

    class Lying(Grid):
        def _deliver(self, message, context):
            with monkeypatch.context() as patch:
                if message.metadata.dst_node_id == LIAR:
                    patch.setattr(handshake, "room_for", lambda _: 4 * slots)
                    patch.setattr(
                        Layout,
                        "share",
                        lambda layout, *rows: share(
                            replace(layout, frame=replace(layout.frame, slots=slots)), *rows
                        ),
                    )
                return super()._deliver(message, context)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FedLapError, match="where 134217728 are the most; set a smaller block"):
        phase(settings, Lying(settings))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**20, "in kB"


@pytest.mark.parametrize("length", [2**31, 2**47])
def test_a_contribution_that_claims_a_giant_sum(settings, length):
    """The server makes room for a running sum by the header of the first contribution."""

    class Lying(Grid):
        def alter_reply(self, message, reply):
            kind, _, _ = asked_of(message)
            if kind == "pairs" and message.metadata.dst_node_id == FIRST_NODE:
                tag, data = unpack(reply.content["reply"]["body"], 2)
                header, size = Header.unpack(data)
                sums = tuple(each._replace(length=length) for each in header.sums)
                altered = header._replace(sums=sums).pack() + bytes(data[size:])
                reply.content["reply"]["body"] = pack(tag, altered)
            return reply

    with pytest.raises(FedLapError, match=r"Contributions of \d+ bytes came"):
        phase(settings, Lying(settings))


@pytest.mark.parametrize(
    "price",
    [
        b"[" * 100_000,
        b'{"round_trips": 1e308, "bytes_up": 1, "bytes_down": 1, "seconds": 1}',
        b'{"round_trips": 1, "bytes_up": NaN, "bytes_down": 1, "seconds": 1}',
        b'{"round_trips": "9", "bytes_up": 1, "bytes_down": 1, "seconds": 1}',
        b"{}",
        b"",
    ],
)
def test_a_price_that_is_none(settings, price):
    class Lying(Grid):
        def alter(self, message):
            return with_body(message, "own", price) if asked_of(message)[0] == "share" else message

    with pytest.raises(FedLapError, match=r"A price of \d+ bytes came"):
        phase(settings, Lying(settings))


@pytest.mark.parametrize("count", [2**31, 2**45])
def test_an_array_that_claims_a_giant_shape(settings, count):
    """The header inside of an array says how much memory its reader takes."""
    true = Array(np.ones(3, dtype=np.float32))
    buffer = io.BytesIO()
    facts = {"descr": "<f4", "fortran_order": False, "shape": (count, 4)}
    np.lib.format.write_array_header_1_0(buffer, facts)
    false = Array(true.dtype, (count, 4), true.stype, buffer.getvalue() + b"\0" * 64)
    grid = Grid(replace(settings, method="fedavg", spectral=False, training_backend="plain"))
    config = ConfigRecord({"run": grid.run.run_id, "stage": 0, "server-round": 1})
    content = RecordDict({"arrays": ArrayRecord({"a": false}), "config": config})
    (reply,) = grid.send_and_receive([Message(content, FIRST_NODE, "train")])
    assert "does not hold the numbers that it names" in str(reply.content["refusal"]["reason"])


@pytest.mark.parametrize("step", [1, 7, 99_999_999])
def test_cards_at_any_other_step_than_the_first(settings, step):
    seen = []

    class Lying(Grid):
        def alter(self, message):
            kind, job, _ = asked_of(message)
            if kind == "cards":
                seen.append(job)
                message = with_body(message, "common", message.content["common"]["body"])
                message.content["own"]["asked"] = parts.asked(kind, job, step)
            return message

    with pytest.raises(FedLapError, match=rf"asks for 'cards' at step {step} where step 0"):
        phase(settings, Lying(settings))
    assert not [*(settings_root(settings)).glob(f"*/offline-{seen[0]}-*")]


def test_a_message_with_another_filling(settings):
    """The bytes between two parts are part of the message."""

    class Lying(Grid):
        def alter(self, message):
            if asked_of(message)[0] != "pairs":
                return message
            body = bytearray(message.content["own"]["body"])
            name = len(unpack(body)[0])
            assert name % 8
            body[8 + name] = 1
            return with_body(message, "own", bytes(body))

    with pytest.raises(FedLapError, match="not filled up with zeros"):
        phase(settings, Lying(settings))


def settings_root(settings):
    return Path(settings.store_dir)


def files(settings):
    return {path for path in settings_root(settings).rglob("*") if path.is_file()}


class TestParts:
    """Parts of messages wait in the store of a client: a server could fill its disk with them."""

    def put(self, grid, job=JOB, step=0, **changes):
        own = {"asked": parts.asked("put", job, step), "which": "own", "index": 0, "body": b"x"}
        return ask(grid, {**own, **changes})

    def test_for_jobs_that_do_not_exist(self, settings):
        grid = Grid(settings)
        ask(grid, {"asked": "hello none 00000000"}, {"body": b"now"})
        before = files(settings)
        for number in range(20):
            reason = self.put(grid, job=f"{number:032x}", step=1 + number % 3)
            assert "does not expect it" in reason
        assert files(settings) == before

    def test_for_a_job_that_nobody_said_hello_for(self, settings):
        grid = Grid(settings)
        for job in (JOB, "", "none"):
            assert "does not expect it" in self.put(grid, job=job)
        assert not [path for path in files(settings) if path.parent.name == "post"]

    def test_of_other_jobs_do_not_pile_up(self, settings):
        grid = Grid(settings)
        ask(grid, {"asked": "hello none 00000000"}, {"body": b"now"})
        for number in range(20):
            assert "seconds" in self.put(grid, job=f"{number:032x}")
        assert len([path for path in files(settings) if path.parent.name == "post"]) == 1

    def test_beyond_the_quota(self, settings):
        grid = Grid(settings)
        ask(grid, {"asked": "hello none 00000000"}, {"body": b"now"})
        assert "bytes are the most" in self.put(grid, index=2**31)
        assert "names no part" in self.put(grid, index=-1)
        assert "names no part" in self.put(grid, index="0")
        assert "does not expect it" in self.put(grid, body=bytes(33 * 2**20))
        assert "does not expect it" in self.put(grid, which="reply")

    def test_of_steps_that_are_not_next(self, settings):
        class Early(Grid):
            said = None

            def alter(self, message):
                kind, job, step = asked_of(message)
                if kind == "sums" and not self.said:
                    self.said = True
                    self.said = [
                        TestParts().put(self, job=job, step=int(step) + more)
                        for more in (1, 9, 10**6)
                    ]
                return message

        grid = Early(settings)
        phase(settings, grid)
        assert all("does not expect it" in str(each) for each in grid.said)

    def test_announced_by_hashes(self, settings):
        grid = Grid(settings)
        own = {"asked": parts.asked("cards", JOB, 0), "hashes": bytes(32 * 100_000)}
        assert "A message of 100000 parts" in ask(grid, own)
        assert "a multiple of 32" in ask(grid, {**own, "hashes": bytes(31)})

    @pytest.mark.parametrize("index", [5, 2**63 - 1, -1])
    def test_asked_for_that_are_not_there(self, settings, index):
        grid = Grid(settings)
        own = {"asked": parts.asked("get", JOB, 0), "index": index}
        reason = ask(grid, own)
        assert "cannot be read" in reason or "names no part" in reason
        assert settings.store_dir not in reason

    def test_a_reply_of_more_parts_than_a_message_has(self, settings):
        class Lying(Grid):
            def alter_reply(self, message, reply):
                if asked_of(message)[0] == "cards":
                    reply.content["reply"]["hashes"] = bytes(32 * 100_000)
                return reply

        with pytest.raises(FedLapError, match="A message of 100000 parts"):
            phase(settings, Lying(settings))


@pytest.mark.parametrize(
    "asked",
    [
        "cards ../../x 00000000",
        "cards " + JOB + " " + "9" * 5000,
        "cards " + JOB + " ٠٠٠٠٠٠٠٠",
        "x",
    ],
)
def test_a_place_that_is_none(settings, asked):
    assert "no proper job and step" in ask(Grid(settings), {"asked": asked})


def test_many_empty_parts_take_no_memory_of_their_own(settings):
    """A part of no bytes costs 8 bytes in a message and a hundred in memory."""
    grid = Grid(settings)
    reason = ask(grid, {"asked": parts.asked("cards", JOB, 0)}, {"body": bytes(8 * (2**16 + 5))})
    assert "65536 were expected" in reason


def test_a_hello_that_is_too_long(settings):
    reason = ask(Grid(settings), {"asked": "hello none 00000000"}, {"body": b"x" * 65})
    assert "A hello has 65 bytes" in reason


def test_replies_of_members_that_are_none(settings):
    """Kinds of replies with parts that are missing or too many end the run with a sentence."""
    for kind, body in (
        ("hello", pack(b"card")),
        ("cards", pack(b"")),
        ("cards", pack(b"", pack(b"nobody", b"sealed"))),
        ("pairs", pack(b"contribution")),
        ("pairs", pack(b"mismatch")),
        ("sums", pack(b"solution")),
        ("sums", b""),
    ):

        class Lying(Grid):
            def alter_reply(self, message, reply, kind=kind, body=body):
                if asked_of(message)[0] == kind:
                    reply.content["reply"]["body"] = body
                return reply

        with pytest.raises(FedLapError, match=r"."):
            phase(settings, Lying(settings))


def test_an_honest_run_is_as_before(settings, tmp_path):
    (tmp_path / "other").mkdir()
    whole, split = settings, settings_in(tmp_path / "other", message_mb=0.001)
    phase(whole)
    phase(split)
    assert same(bases(whole), bases(split))
