"""A coalition of the server and all members but two: the pads of these two are what is left."""

from dataclasses import replace

import numpy as np
import pytest

from fedlap_app.sums.header import Place
from fedlap_app.sums.kdf import derive
from fedlap_app.sums.keyring import KeyRing
from fedlap_app.sums.mask import MaskBackend
from fedlap_app.sums.pads import Pads
from fedlap_app.sums.transcript import Transcript

from .scene import Scene, is_uniform

PLACE = Place("krylov", 3)


def rings(count):
    """Key rings of so many members of one job; the first two are honest."""
    names = tuple(f"client-{i:02d}" for i in range(count))
    return [
        KeyRing(
            me=me,
            members=names,
            job="ab" * 16,
            members_hash="ab" * 16,
            roots={peer: derive(bytes(32), *sorted((me, peer))) for peer in names if peer != me},
            group_key=derive(bytes(32), "group"),
        )
        for me in names
    ]


@pytest.mark.parametrize("members", [4, 22, 40, 64])
@pytest.mark.parametrize("to_all", [True, False])
def test_a_coalition_of_all_but_two_reads_nothing(members, to_all):
    victim, friend, *coalition = rings(members)
    recipient = "" if to_all else coalition[0].me
    backend = MaskBackend(victim)
    lengths = {recipient: 4096}
    sheet = backend.sheet(lengths, PLACE)
    seen = backend.step_weights(sheet.header, b"").key
    _, body = backend.seal_sheet(sheet)
    words = np.frombuffer(body, "<u8")[:4096].copy()
    # The first by name adds all pads; the coalition takes off every one that it knows.
    for ring in coalition:
        Pads(ring).change(words, PLACE, recipient, subtract=[victim.me], seen=seen)
    if to_all:
        Pads(coalition[0]).change(words, PLACE, recipient, subtract=[""], seen=seen)
    assert is_uniform(words)
    Pads(friend).change(words, PLACE, recipient, subtract=[victim.me], seen=seen)
    assert not words.any()


def test_two_honest_organisations_among_many(small, tmp_path):
    """Real clients, more than twenty: the server holds the stores of all but two of them."""
    scene = Scene(tmp_path, replace(small, clients=21, accounts=420))
    victim, friend, *others = scene.names
    job = scene.run("h1", rounds=3).roster.job
    rings = {name: scene.keys(name, job) for name in (friend, *others)}
    context = Transcript.start(job).extend(b"").digest
    backend = MaskBackend(rings[others[0]])
    sent = [found for found in scene.sent(victim) if found[0] == job]
    assert len(sent) == 1
    seen = backend.step_weights(sent[0][2], context).key
    small_sum = False
    for (_, step, recipient), (words,) in scene.contributions(victim).items():
        place, senders = Place("krylov", step), {*others} - {recipient}
        left, small_sum = words.copy(), small_sum or not recipient
        for name in senders:
            Pads(rings[name]).change(left, place, recipient, subtract=[victim], seen=seen)
        group = [""] if not recipient else []
        if recipient in others:  # what the owner of the sum takes off
            Pads(rings[recipient]).change(left, place, recipient, subtract=[victim], seen=seen)
        Pads(rings[others[0]]).change(left, place, recipient, subtract=group, seen=seen)
        if recipient == friend:
            continue
        assert words.size < 200 or is_uniform(left)
        Pads(rings[friend]).change(left, place, recipient, subtract=[victim], seen=seen)
        values = left[:-3].view("<i8")  # fixed point, below 2^62 and mostly nothing
        assert abs(values).max() < 2**62
    assert small_sum
