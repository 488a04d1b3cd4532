import tracemalloc

import numpy as np
import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.header import Header, Sum
from fedlap_app.sums.training.shape import SumShape, Tensor
from tests.sums.training.federation import Federation


@pytest.fixture
def sealed(federation):
    """A federation, its turn, and what all have sealed."""
    some = federation(4).begin()
    turn = some.turn(1)
    return some, turn, some.seal(turn, some.draw())


def with_header(data, **fields):
    header, size = Header.unpack(data)
    return header._replace(**fields).pack() + data[size:]


@pytest.mark.parametrize(
    "fields",
    [
        {"job": "cd" * 16},
        {"members": "cd" * 16},
        {"phase": "training 1"},
        {"step": 2},
        {"attempt": 1},
        {"vectors": 1},
        {"backend": "plain"},
        {"sums": (Sum("", 2**40, 4),)},
        {"sums": (Sum("", 16, 3),)},
        {"sums": ()},
        {"sender": "client-01"},
    ],
)
def test_what_does_not_belong_here_is_refused_and_changes_nothing(sealed, fields):
    some, turn, data = sealed
    adder = some.adder(turn.place, turn.members, some.agreed.shape)
    with pytest.raises(ProtocolError):
        adder.add("client-00", with_header(data["client-00"], **fields))
    for name, contribution in data.items():
        adder.add(name, contribution)
    assert adder.result() == some.add(turn, data)


def test_cut_doubled_and_foreign_contributions_are_refused(sealed):
    some, turn, data = sealed
    adder = some.adder(turn.place, turn.members, some.agreed.shape)
    for body in (data["client-00"][:-8], data["client-00"] + bytes(8)):
        with pytest.raises(ProtocolError, match="cut or altered"):
            adder.add("client-00", body)
    with pytest.raises(ProtocolError, match="Nobody contributed"):
        adder.result()
    adder.add("client-00", data["client-00"])
    with pytest.raises(ProtocolError, match=r"contributed to training 0 .* already"):
        adder.add("client-00", data["client-00"])
    with pytest.raises(ProtocolError, match="'stranger' does not contribute"):
        adder.add("stranger", with_header(data["client-00"], sender="stranger"))
    assert adder.missing == some.names[1:]
    with pytest.raises(ProtocolError, match="lacks client-01"):
        adder.result()


def test_a_foreign_key_does_not_keep_others_out(sealed):
    some, turn, data = sealed
    adder = some.adder(turn.place, turn.members, some.agreed.shape)
    with pytest.raises(ProtocolError):
        adder.add("client-00", with_header(data["client-00"][:-8], key_id="00" * 8))
    for name, contribution in data.items():
        adder.add(name, contribution)


def peak(root, count):
    shape = SumShape((Tensor("A", (500, 400)),), 6)
    some = Federation(root / str(count), count, shape=shape).begin()
    turn = some.turn(1)
    change = {"A": np.zeros((500, 400), np.float32)}
    sealed = some.seal(turn, dict.fromkeys(some.names, (change, np.zeros(6))))
    tracemalloc.start()
    some.add(turn, sealed)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def test_the_memory_does_not_grow_with_the_members(tmp_path):
    few, many = peak(tmp_path, 3), peak(tmp_path, 24)
    assert many < 1.02 * few
    assert few < 4.2 * 4 * 200_000  # the sum, its copy behind a header, and what joins them
