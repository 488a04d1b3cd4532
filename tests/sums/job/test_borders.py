import numpy as np
import pytest

from fedlap_app.sums.job.borders import borders_of, boundary_of

from .conftest import random_parts


@pytest.mark.parametrize("directed", [False, True])
def test_both_sides_list_the_same_nodes_and_edges(directed):
    parts = {part.name: part for part in random_parts(clients=4, directed=directed)}
    for name, part in parts.items():
        borders = borders_of(part)
        assert tuple(sorted(borders)) == part.partners
        for partner, border in borders.items():
            other = borders_of(parts[partner])[name]
            theirs = parts[partner].external_ids[other.foreign]
            np.testing.assert_array_equal(part.ids[border.own], theirs)
            assert _listed(part, border) == _listed(parts[partner], other)
            key = b"k" * 32
            assert border.digest(key, part) == other.digest(key, parts[partner])
            hashes, theirs = border.hashes(key, part), other.hashes(key, parts[partner])
            assert hashes.hashes() == theirs.hashes()


def _listed(part, border):
    pairs = zip(*border.ends(part), strict=True)
    ordered = pairs if part.directed else (sorted(pair) for pair in pairs)
    return sorted((*pair, float(w)) for pair, w in zip(ordered, border.weights, strict=True))


def test_the_boundary_is_the_union_of_the_borders():
    for part in random_parts(clients=3, edges=25):
        own = [border.own for border in borders_of(part).values()]
        expected = np.unique(np.concatenate(own)) if own else []
        np.testing.assert_array_equal(np.flatnonzero(boundary_of(part)), expected)
