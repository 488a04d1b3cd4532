"""FedTAD: who is reliable for what, and a mean that learns what reliable models say."""

import numpy as np
import torch

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.fedtad import reliability
from fedlap_app.models.determinism import one_thread, seeded
from fedlap_app.models.distilled import (
    NEIGHBOURS,
    NOISE,
    NodeGenerator,
    Teachers,
    distil,
    pseudo_graph,
)
from fedlap_app.models.networks import build_model
from fedlap_app.models.specs import ModelSpec, TrainSpec
from fedlap_app.models.start import normal


def make_part(rows, edges, train):
    """A path whose first half is of one class."""
    size, nothing = len(rows), np.empty(0, dtype="<U1")
    return Subgraph(
        name="a", classes=("x", "y"), feature_names=("p", "q"),
        ids=np.array([str(n) for n in range(size)]), external_ids=nothing, external_owners=nothing,
        edge_index=edges, edge_weight=np.ones(edges.shape[1]), features=rows,
        labels=np.arange(size) * 2 // size, train_mask=train,
        val_mask=np.zeros(size, dtype=bool), test_mask=np.zeros(size, dtype=bool), directed=False,
    )  # fmt: skip


def test_a_mean_taught_on_made_up_graphs_says_more_of_what_its_teachers_say():
    spec = ModelSpec("gcn", 12, 3, hidden=(8,), dropout=0.0, relay=False)
    with one_thread(), seeded(3):
        teachers = [build_model(spec, seed) for seed in (1, 2)]
        student, untaught = build_model(spec, 5), build_model(spec, 5)
        generator = NodeGenerator(3, 12)
        shares = torch.tensor([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
        rule = TrainSpec(learning_rate=0.01, weight_decay=0.0)
        for _ in range(10):
            distil(student, Teachers(teachers, shares), generator, spec, rule)
        classes = torch.arange(60) % 3
        graph = pseudo_graph(generator(normal(1.0, 60, NOISE), classes), spec)

        def apart(model):
            said = model(graph).softmax(dim=1)
            gaps = [(said - each(graph).softmax(dim=1)).abs().sum(dim=1) for each in teachers]
            return (torch.stack(gaps) * shares[:, classes]).sum().item()

        assert apart(student) < 0.9 * apart(untaught)
    degrees = graph.propagation.forward.crow_indices().diff()
    assert int(degrees.min()) > NEIGHBOURS  # those most alike, and itself


def test_an_organisation_is_reliable_where_neighbours_are_alike():
    rows = np.array([[1, 0], [1, 0], [1, 0], [0, 1]], dtype=np.float32)
    edges = np.array([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    everybody, nobody = np.ones(4, dtype=bool), np.zeros(4, dtype=bool)
    part = make_part(rows, edges, everybody)
    found = reliability(part)
    assert found.shape == (2,)
    assert found[0] > found[1] > 0.0
    assert reliability(make_part(rows, edges, nobody)).tolist() == [0.0, 0.0]
