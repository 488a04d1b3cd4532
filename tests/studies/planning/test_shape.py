import numpy as np
import pytest

from fedlap_app.graphs.federation import load_federation
from fedlap_app.settings import parse_settings
from fedlap_app.studies.planning.shape import equal_parts, shape_of


def test_the_sizes_are_those_of_the_subgraphs():
    settings = parse_settings({"dataset": "banks", "accounts": 240, "clients": 4})
    subgraphs = load_federation(settings.data_spec)
    shape = shape_of(subgraphs[::-1])
    assert shape.names == tuple(part.name for part in subgraphs)
    assert shape.nodes == 240
    for part, subgraph in zip(shape.parts, subgraphs, strict=True):
        rows = subgraph.out_adjacency()
        assert part.entries == rows.nnz
        assert part.shared == rows[:, subgraph.num_nodes :].nnz
        assert part.boundary == np.count_nonzero(rows[:, subgraph.num_nodes :].sum(axis=1))


def test_equal_parts_are_what_a_random_partition_gives():
    shape = equal_parts(1003, 4, 3000)
    assert [part.nodes for part in shape.parts] == [251, 251, 251, 250]
    assert shape.assumed
    rng = np.random.default_rng(0)
    owner = rng.permutation(np.arange(1003) % 4)
    ends = rng.integers(1003, size=(2, 3000))
    both = np.hstack([ends, ends[::-1]])
    foreign = (owner[both[0]] == 0) & (owner[both[1]] != 0)
    assert shape.parts[0].shared == pytest.approx(foreign.sum(), rel=0.1)
    assert shape.parts[0].external == pytest.approx(np.unique(both[1][foreign]).size, rel=0.1)
