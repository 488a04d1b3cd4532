import numpy as np
import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.edgecheck import EdgeHashes, EdgeList

KEY = b"k" * 32


def hashed(edges, directed=False, key=KEY):
    columns = zip(*edges, strict=True) if edges else ((), (), ())
    return EdgeHashes(key, *columns, directed=directed)


MINE = [("a1", "b1", 1.0), ("a1", "b2", 2.5), ("a2", "b1", 1.0)]


def test_the_other_side_of_undirected_edges_matches_in_any_order():
    theirs = [(t, s, w) for s, t, w in reversed(MINE)]
    found = hashed(MINE).compare(hashed(theirs).hashes())
    assert (found.matched, found.only_mine, found.only_theirs) == (3, 0, 0)


def test_direction_counts_when_directed():
    theirs = [("b1", "a1", 1.0), *MINE[1:]]
    one, two = hashed(MINE, directed=True), hashed(theirs, directed=True)
    found = one.compare(two.hashes())
    assert (found.matched, found.only_mine, found.only_theirs) == (2, 1, 1)
    assert found.unmatched == (0,)


def test_differences_are_counted_and_only_my_own_are_named():
    theirs = [("b1", "a1", 1.0), ("b2", "a1", 2.0), ("b9", "a1", 1.0), ("b8", "a1", 1.0)]
    found = hashed(MINE).compare(hashed(theirs).hashes())
    assert (found.matched, found.only_mine, found.only_theirs) == (1, 2, 3)
    assert found.unmatched == (1, 2)


def test_repeated_edges_count_as_often_as_they_are_listed():
    found = hashed([MINE[0]] * 3).compare(hashed([MINE[0]] * 2).hashes())
    assert (found.matched, found.only_mine, found.only_theirs) == (2, 1, 0)


def test_ids_are_not_run_together():
    assert hashed([("a", "bc", 1.0)]).hashes() != hashed([("ab", "c", 1.0)]).hashes()


def test_hashes_depend_on_the_key():
    assert hashed(MINE).hashes() != hashed(MINE, key=b"K" * 32).hashes()


class TestDigest:
    LIST = (("a1", "a2"), ("b1", "b2"), ((0, 0), (0, 1), (1, 0)), (False,) * 3, (1.0, 2.5, 1.0))

    @staticmethod
    def digest(first, second, ends, against, weights, key=KEY):
        edges = EdgeList(
            np.array(first),
            np.array(second),
            np.array(ends, dtype=np.int64).reshape(-1, 2).T,
            np.array(against, dtype=bool),
            np.array(weights, dtype=float),
        )
        return edges.digest(key)

    def test_the_order_of_the_edges_does_not_count(self):
        first, second, *edges = self.LIST
        turned = [each[::-1] for each in edges]
        assert self.digest(first, second, *turned) == self.digest(*self.LIST)

    @pytest.mark.parametrize(
        ("position", "value"),
        [
            (0, ("a1", "a3")),
            (0, ("a1a", "2")),
            (1, ("b1", "b20")),
            (2, ((0, 0), (0, 1), (1, 1))),
            (3, (False, True, False)),
            (4, (1.0, 2.5, 1.5)),
            (4, (2.5, 1.0, 1.0)),
        ],
    )
    def test_everything_else_counts(self, position, value):
        other = list(self.LIST)
        other[position] = value
        assert self.digest(*other) != self.digest(*self.LIST)

    def test_repeated_edges_count_as_often_as_they_are_listed(self):
        first, second, *edges = self.LIST
        doubled = [each + each[-1:] for each in edges]
        assert self.digest(first, second, *doubled) != self.digest(*self.LIST)

    def test_it_has_one_size_and_depends_on_the_key(self):
        nothing = self.digest((), (), (), (), ())
        assert len(nothing) == len(self.digest(*self.LIST)) == 32
        assert self.digest(*self.LIST, key=b"K" * 32) != self.digest(*self.LIST)


def test_no_edges_on_both_sides_agree():
    found = hashed([]).compare(b"")
    assert (found.only_mine, found.only_theirs) == (0, 0)


def test_cut_hashes_are_refused():
    with pytest.raises(ProtocolError, match="no multiple"):
        hashed(MINE).compare(hashed(MINE).hashes()[:-1])
