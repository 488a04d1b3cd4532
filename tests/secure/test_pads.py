import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from fedlap_app.errors import ProtocolError
from fedlap_app.secure.header import Place
from fedlap_app.secure.pads import PadLedger, Pads, pad_partners

PLACE = Place("krylov", 3)
SEED = b"seed"


def pad(ring, peer, place=PLACE, recipient="client-02", size=64):
    words = np.zeros(size, dtype=np.uint64)
    Pads(ring).change(words, place, recipient, add=[peer])
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
        pad(one, peer, Place(phase, step, attempt), recipient, 50)
        for peer in (two.me, three.me, "")
        for phase in ("krylov", "gram")
        for step in (0, 1, 256)
        for attempt in (0, 1, 256)
        for recipient in ("", "client-00", "client-03")
    ]
    words = np.concatenate(uses)
    assert np.unique(words).size == words.size


@pytest.mark.parametrize("size", [2, 3, 20])
def test_few_senders_share_pads_with_all(size):
    names = [f"n{i:02d}" for i in range(size)]
    assert pad_partners(names[1], names, SEED) == tuple(n for n in names if n != names[1])


@pytest.mark.parametrize("size", [21, 22, 30, 49, 50, 100])
def test_many_senders_share_pads_with_a_connected_few(size):
    names = [f"n{i:03d}" for i in range(size)]
    graph = np.zeros((size, size), dtype=bool)
    for row, me in enumerate(names):
        partners = pad_partners(me, names[::-1], SEED)
        graph[row, [names.index(partner) for partner in partners]] = True
    np.testing.assert_array_equal(graph, graph.T)
    assert not graph.diagonal().any()
    assert graph.sum(axis=1).min() >= 2 * np.log2(size)
    assert graph.sum(axis=1).max() <= 2 * np.log2(size) + 4
    assert connected_components(graph)[0] == 1


def test_partners_depend_on_the_seed():
    names = [f"n{i:03d}" for i in range(60)]
    assert pad_partners("n000", names, b"one") != pad_partners("n000", names, b"two")


def test_a_pad_is_used_once_unless_for_the_same_content():
    ledger = PadLedger()
    ledger.claim(PLACE, "a", b"content")
    ledger.claim(PLACE, "a", b"content")
    ledger.claim(PLACE, "b", b"other")
    ledger.claim(Place("krylov", 3, 1), "a", b"other")
    with pytest.raises(ProtocolError, match="used once"):
        ledger.claim(PLACE, "a", b"other")
