"""Objects in place of names: models and Flower's strategies."""

import pytest
from flwr.serverapp.strategy import FedAvg, FedAvgM, FedMedian, FedProx
from pandas.testing import assert_frame_equal
from torch import nn

import fedlap_app as fedlap
from fedlap_app.methods import fedavg as methods
from fedlap_app.models.networks import DenseLayer


class Linear(nn.Module):
    """What "decoupled" is without hidden layers and hops."""

    def __init__(self, features, classes):
        super().__init__()
        self.layers = nn.ModuleList([DenseLayer(features, classes)])

    def forward(self, inputs):
        (layer,) = self.layers
        return layer(inputs.x.times(layer.weight), inputs.propagation)


class Unnamed(methods.FedAvg):
    """A method that forgot to have a name of its own."""


@pytest.fixture
def train(orgs):
    quick = {
        "training_backend": "plain",
        "rounds": 3,
        "self_training": 0,
        "dropout": 0.0,
        "input_dropout": 0.0,
    }
    return lambda method="fedavg", **more: fedlap.train(orgs, method, **{**quick, **more})


def test_a_model_of_ones_own(train, tmp_path):
    named = train(model="decoupled", hidden="", hops=0)
    own = train(model=Linear)
    assert own.summary["loss"] == named.summary["loss"]
    assert isinstance(own.model, Linear)
    assert_frame_equal(own.predict("bank-00"), named.predict("bank-00"))
    own.save(tmp_path / "run")
    saved = fedlap.open_run(tmp_path / "run")
    assert_frame_equal(saved.predict("bank-01"), named.predict("bank-01"))


def test_a_network_is_where_training_begins(train, orgs):
    first = orgs["bank-00"]
    start = Linear(first.num_features, first.num_classes)
    nn.init.zeros_(start.layers[0].weight)
    before = start.layers[0].weight.clone()
    run = train(model=start)
    assert (start.layers[0].weight == before).all()
    assert (run.model.layers[0].weight != before).any()
    assert train(model=start).summary["loss"] == run.summary["loss"]


def test_a_model_of_ones_own_beside_a_basis(train):
    few = {"vectors": 6, "block": 3, "backend": "mask", "structure_width": 4}
    run = train("fedlap+", model=Linear, **few)
    assert isinstance(run.model.features, Linear)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (FedAvg, {}),
        (FedMedian(), {"strategy": "fedmedian"}),
        (
            FedAvgM(server_momentum=0.5, server_learning_rate=1.0),
            {"strategy": "fedavgm", "server_momentum": 0.5},
        ),
        (FedProx(proximal_mu=0.5), {"strategy": "fedprox", "proximal_mu": 0.5}),
    ],
)
def test_a_strategy_as_an_object(train, given, named):
    expected = train(hidden="4", **named).summary["loss"]
    for _ in range(2):  # it begins anew in every run
        assert train(hidden="4", strategy=given).summary["loss"] == expected


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"strategy": 3}, "strategy = 3 is no strategy"),
        ({"strategy": dict}, "is no strategy"),
        ({"strategy": FedProx}, "whose pull the clients compute"),
        ({"model": lambda features, classes: "net"}, "where a torch.nn.Module was expected"),
        ({"model": 3}, "wrong type"),
        ({"model": "Linaer"}, "is not one of"),
        ({"method": 3}, "method = 3 is none"),
        ({"method": Unnamed}, "'fedavg' comes with the app"),
        ({"preset": {"rounds": 2}}, "give the name of one in conf/"),
        ({"progress": "yes"}, "with step_done and round_done"),
        ({"store": 3}, "store = 3 is no path"),
        ({"hidden": [16, "x"]}, "hidden = '16,x'"),
    ],
)
def test_what_is_none_is_told(train, given, sentence):
    with pytest.raises(fedlap.FedLapError, match=sentence):
        train(**given)
