"""A coalition of the server and all members but two: the pads of these two are what is left."""

import numpy as np
import pytest

from fedlap_app.sums.header import Place
from fedlap_app.sums.kdf import derive
from fedlap_app.sums.keyring import KeyRing
from fedlap_app.sums.mask import MaskBackend
from fedlap_app.sums.pads import Pads

from .scene import is_uniform

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
