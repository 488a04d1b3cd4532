import numpy as np
import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.header import Place
from fedlap_app.sums.pads import PadLedger, Pads, signed_partners

PLACE = Place("krylov", 3)


def pad(ring, peer, place=PLACE, recipient="client-02", size=64, seen=b""):
    words = np.zeros(size, dtype=np.uint64)
    Pads(ring).change(words, place, recipient, add=[peer], seen=seen)
    return words


def test_both_ends_make_the_same_pad(rings):
    one, two, *_ = rings(4)
    np.testing.assert_array_equal(pad(one, two.me), pad(two, one.me))


def test_what_is_added_is_taken_off_again(rings):
    one, two, *_ = rings(4)
    words = np.arange(20_001, dtype=np.uint64)
    pads = Pads(one)
    pads.change(words, PLACE, "", add=[two.me, ""])
    pads.change(words, PLACE, "", subtract=[two.me])
    pads.change(words, PLACE, "", subtract=[""])
    np.testing.assert_array_equal(words, np.arange(20_001))


def test_no_two_uses_share_a_word(rings):
    one, two, three, *_ = rings(4)
    uses = [
        pad(one, peer, Place(phase, step, attempt), recipient, 50, seen)
        for peer in (two.me, three.me, "")
        for phase in ("krylov", "gram")
        for step in (0, 1, 256)
        for attempt in (0, 1, 256)
        for recipient in ("", "client-00", "client-03")
        for seen in (b"", b"what the members received before")
    ]
    words = np.concatenate(uses)
    assert np.unique(words).size == words.size


@pytest.mark.parametrize("size", [2, 3, 21, 300])
def test_every_pair_of_senders_shares_a_pad_with_opposite_signs(size):
    names = [f"n{i:03d}" for i in range(size)]
    signs = np.zeros((size, size), dtype=int)
    for row, me in enumerate(names):
        plus, minus = signed_partners(me, names[::-1])
        signs[row, [names.index(name) for name in plus]] = 1
        signs[row, [names.index(name) for name in minus]] = -1
    np.testing.assert_array_equal(signs, -signs.T)
    np.testing.assert_array_equal(np.abs(signs), 1 - np.eye(size, dtype=int))


def test_a_pad_is_used_once_unless_for_the_same_content():
    ledger = PadLedger()
    ledger.claim(PLACE, "a", b"content")
    ledger.claim(PLACE, "a", b"content")
    ledger.claim(PLACE, "b", b"other")
    ledger.claim(Place("krylov", 3, 1), "a", b"other")
    with pytest.raises(ProtocolError, match="used once"):
        ledger.claim(PLACE, "a", b"other")
