import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.banks import make_banks
from fedlap_app.graphs.federation import DataSpec, load_federation
from fedlap_app.graphs.graph import join
from fedlap_app.models.evaluation import evaluate
from fedlap_app.models.networks import build_model
from fedlap_app.models.specs import ModelSpec, TrainSpec
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.models.training import train_epochs


def own_edges_only(part):
    index, weight = part.intra_edges
    return dataclasses.replace(
        part, edge_index=index, edge_weight=weight, external_ids=[], external_owners=[]
    )


def accuracy(whole, kind, seed):
    spec = ModelSpec(kind, whole.num_features, whole.num_classes)
    model, tensors = build_model(spec, seed), GraphTensors.from_subgraph(whole, spec)
    train_epochs(model, tensors, TrainSpec(epochs=60), seed)
    return evaluate(model, tensors).test.accuracy


@pytest.mark.parametrize("kind", ["sage", "decoupled"])
@pytest.mark.parametrize(("banks", "seed"), [(2, 0), (5, 1), (10, 2)])
def test_hiding_the_transfers_between_banks_costs_five_points(kind, banks, seed):
    parts = load_federation(DataSpec(clients=banks, accounts=800, seed=seed))
    everything = accuracy(join(parts), kind, seed)
    hidden = accuracy(join([own_edges_only(part) for part in parts]), kind, seed)
    assert everything > 0.85
    assert everything - hidden > 0.05


def test_the_low_end_of_the_spectrum_tells_the_classes_apart():
    graph = make_banks(800, 4, 0)
    adjacency = graph.adjacency()
    scale = sp.diags_array(adjacency.sum(axis=1) ** -0.5)
    _, vectors = np.linalg.eigh((scale @ adjacency @ scale).toarray())
    basis = vectors[:, -10:]
    targets = np.eye(3)[graph.labels]
    fitted = basis @ (basis.T @ targets)  # least squares on an orthonormal basis
    assert (fitted.argmax(axis=1) == graph.labels).mean() > 0.85


def test_the_same_seed_gives_the_same_network():
    first, again, other = make_banks(300, 4, 5), make_banks(300, 4, 5), make_banks(300, 4, 6)
    np.testing.assert_array_equal(first.ids, again.ids)
    np.testing.assert_array_equal(first.edge_index, again.edge_index)
    np.testing.assert_array_equal(first.features, again.features)
    assert not np.array_equal(first.labels, other.labels)


def test_every_id_is_a_valid_iban():
    for iban in make_banks(200, 3, 0).ids.tolist():
        assert len(iban) == 22
        assert iban.startswith("DE")
        moved = iban[4:] + str(int("D", 36)) + str(int("E", 36)) + iban[2:4]
        assert int(moved) % 97 == 1


def test_the_bank_code_is_the_owner():
    graph = make_banks(200, 12, 0)
    assert [f"bank-{int(iban[8:12]):02d}" for iban in graph.ids.tolist()] == graph.owner.tolist()


def test_most_transfers_leave_their_bank_and_classes_are_unequal():
    graph = make_banks(4000, 2, 0)
    source, target = graph.owner[graph.edge_index]
    assert 0.2 < (source == target).mean() < 0.3
    shares = np.bincount(graph.labels) / 4000
    np.testing.assert_allclose(shares, [0.5, 0.3, 0.2], atol=0.03)


def test_directed_transfers_have_one_direction_and_the_same_weights():
    both, one = make_banks(300, 3, 0), make_banks(300, 3, 0, directed=True)
    arrows = one.adjacency()
    assert arrows.sum(axis=1).min() > 0
    assert abs(arrows - arrows.T).nnz > 0
    np.testing.assert_allclose(arrows.maximum(arrows.T).toarray(), both.adjacency().toarray())
    assert one.edge_weight.min() >= 1
    assert one.edge_weight.max() <= 4


@pytest.mark.parametrize("banks", [1, 2, 7, 200])
def test_every_bank_has_an_account(banks):
    graph = make_banks(200, banks, 0)
    names, sizes = np.unique(graph.owner, return_counts=True)
    assert names.size == banks
    assert sizes.sum() == 200
    assert sizes[0] == sizes.max()


@pytest.mark.parametrize(("accounts", "banks"), [(199, 2), (10**8, 2), (200, 0), (200, 201)])
def test_impossible_sizes_are_refused(accounts, banks):
    with pytest.raises(ConfigError, match="out of range"):
        make_banks(accounts, banks, 0)
