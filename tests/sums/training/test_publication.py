import numpy as np
import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.header import Header
from fedlap_app.sums.training.publication import (
    Counts,
    counts_place,
    counts_shape,
    published,
    told_splits,
)
from tests.adversary.scene import is_uniform

SPLITS = ("train", "val", "test")
COUNTS = [None, Counts(50, 41), Counts(900, 700)]


def tell(some, counts=None, members=None):
    """What all members tell, each what is given for it or what the others do."""
    members = members or some.names
    attempt = some.jobs[members[0]].listed.number
    adder = some.adder(counts_place(0, attempt), members, counts_shape(3))
    for name in members:
        adder.add(name, some.jobs[name].tell((counts or {}).get(name, COUNTS)))
    return published(adder.result(), SPLITS, len(members))


def test_counts_on_which_all_agree_are_read(federation):
    some = federation(4).begin()
    assert tell(some) == {"val": (50, 41), "test": (900, 700)}
    assert told_splits(some.jobs["client-02"].tell(COUNTS), 3) == 2


@pytest.mark.parametrize("who", ["client-00", "client-03"])
def test_one_who_withholds_a_split_withholds_it_for_all(federation, who):
    some = federation(4).begin()
    assert tell(some, {who: [None, None, COUNTS[2]]}) == {"test": (900, 700)}


def test_a_part_alone_and_one_that_is_missing_say_nothing(federation):
    some = federation(4).begin()
    parts = []
    for name in some.names[:2]:
        data = some.jobs[name].tell([Counts(0, 0)] * 400)
        words = np.frombuffer(data, "<u8", offset=Header.unpack(data)[1])[:1600].reshape(400, 4)
        parts.append(words[:, 1:].copy())
    assert all(is_uniform(part.reshape(-1)) for part in (*parts, parts[0] + parts[1]))


def test_parts_after_other_sums_do_not_agree(federation):
    some = federation(4).begin()
    drawn, turn = some.draw(), some.turn(1)
    data = some.add(turn, some.seal(turn, drawn))
    for name in some.names[:3]:
        some.jobs[name].open(turn, data)
        some.jobs[name].settle(b"after one")
    with pytest.raises(ProtocolError, match="do not tell the same scores"):
        tell(some)
