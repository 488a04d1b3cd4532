"""From a subgraph to tensors."""

import numpy as np
import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.models.specs import ModelSpec
from fedlap_app.models.tensors import GraphTensors


def test_targets_are_the_labels_of_training_nodes_only(make_subgraph):
    subgraph = make_subgraph()
    tensors = GraphTensors.from_subgraph(subgraph, ModelSpec("gcn", 6, 3))
    targets = tensors.targets.numpy()
    assert np.array_equal(targets[subgraph.train_mask], subgraph.labels[subgraph.train_mask])
    assert (targets[~subgraph.train_mask] == -1).all()
    assert np.array_equal(tensors.splits["val"], np.flatnonzero(subgraph.val_mask))
    assert tensors.num_nodes == 30


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        (ModelSpec("sage", 5, 3), "6 features and the model takes 5"),
        (ModelSpec("sage", 6, 4), "3 classes and the model gives 4"),
    ],
)
def test_a_model_of_another_width_is_refused(make_subgraph, spec, named):
    with pytest.raises(ConfigError, match=named):
        GraphTensors.from_subgraph(make_subgraph(), spec)
