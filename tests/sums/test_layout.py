import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.layout import as_rows, make_layout, read_shared

SIZES = st.integers(1, 60)


@given(
    rows=SIZES,
    columns=st.integers(1, 7),
    multiple=st.integers(1, 64),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**32),
)
def test_what_is_placed_is_read_back(rows, columns, multiple, share, seed):
    rng = np.random.default_rng(seed)
    boundary = rng.random(rows) < share
    layout = make_layout(rows, rng, boundary=boundary, columns=columns, multiple=multiple)
    inside = np.flatnonzero(boundary)
    frame, slots = read_shared(layout.share(inside), inside.size)
    block = rng.normal(size=(inside.size, columns))
    vector = np.zeros(frame.length(block.shape[1]))
    frame.place(as_rows(block), slots, vector)
    assert vector.size == layout.frame.length(columns)
    assert vector.size % multiple == 0
    expected = np.zeros((rows, columns))
    expected[inside] = block
    np.testing.assert_array_equal(layout.read(vector, columns), expected)
    np.testing.assert_array_equal(np.sort(vector[vector != 0]), np.sort(block[block != 0]))


def test_blocks_of_several_partners_add_up_row_by_row():
    rng = np.random.default_rng(0)
    layout = make_layout(30, rng, columns=3, multiple=64)
    expected, total = np.zeros((30, 3)), 0.0
    for _ in range(4):
        rows = rng.choice(30, 12, replace=False)
        frame, slots = read_shared(layout.share(rows), 12)
        block = rng.normal(size=(12, 3))
        expected[rows] += block
        vector = np.zeros(frame.length(3))
        frame.place(as_rows(block), slots, vector)
        total = total + vector
    np.testing.assert_allclose(layout.read(total, 3), expected, atol=1e-15)


def test_length_is_rounded_and_hides_the_count():
    lengths = {
        make_layout(n, np.random.default_rng(0), columns=10).frame.length(10)
        for n in range(205, 410)
    }
    assert lengths == {4096}
    narrow = make_layout(271, np.random.default_rng(0), columns=10, multiple=64)
    assert narrow.frame.length(10) == 2752
    assert narrow.frame.length(4) <= 1152


def test_free_slots_lie_anywhere_and_jobs_differ():
    one, two = (make_layout(100, np.random.default_rng(s), multiple=256) for s in (0, 1))
    assert one.slot_of.max() > 100
    assert np.mean(one.slot_of == two.slot_of) < 0.2


def test_a_shared_row_without_a_slot_is_refused():
    layout = make_layout(3, np.random.default_rng(0), boundary=np.array([True, False, True]))
    with pytest.raises(ProtocolError, match="1 of 2 shared rows"):
        layout.share(np.array([0, 1]))


def test_a_partner_checks_the_slots_it_is_told():
    layout = make_layout(10, np.random.default_rng(0), multiple=16)
    good = layout.share(np.arange(5))
    with pytest.raises(ProtocolError, match="slots of 6 shared"):
        read_shared(good, 6)
    with pytest.raises(ProtocolError, match="repeat"):
        read_shared(layout.share(np.array([1, 1])), 2)
    with pytest.raises(ProtocolError, match="lie beyond"):
        read_shared(good[:-4] + b"\x10\0\0\0", 5)


def test_rows_to_which_nobody_may_contribute_have_no_slot_for_partners():
    layout = make_layout(10, np.random.default_rng(0), multiple=16)
    unheard = np.arange(10) % 2 == 0
    told = layout.share(np.arange(5), unheard)
    assert len(told) == len(layout.share(np.arange(5)))  # its length tells nothing
    _, slots = read_shared(told, 5, unheard=True)
    assert slots.tolist() == [-1, layout.slot_of[1], -1, layout.slot_of[3], -1]
    with pytest.raises(ProtocolError, match="lie beyond"):
        read_shared(told, 5)
