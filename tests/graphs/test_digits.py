import numpy as np
import pytest
from scipy.spatial.distance import cdist

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.digits import make_digits


def test_neighbours_are_mutual_and_nearest():
    graph = make_digits(5)
    assert graph.num_nodes == 1797
    distance = cdist(graph.features, graph.features)
    np.fill_diagonal(distance, np.inf)
    limit = np.sort(distance, axis=1)[:, 4]
    source, target = graph.edge_index
    assert (distance[source, target] <= np.minimum(limit[source], limit[target]) + 1e-9).all()
    assert np.bincount(source).max() <= 5
    assert (distance <= np.minimum.outer(limit, limit) - 1e-9).sum() <= source.size


def test_alike_digits_are_joined():
    graph = make_digits(10)
    source, target = graph.labels[graph.edge_index]
    assert (source == target).mean() > 0.95


@pytest.mark.parametrize("neighbours", [0, 1797])
def test_impossible_numbers_are_refused(neighbours):
    with pytest.raises(ConfigError, match="1 to 1796"):
        make_digits(neighbours)
