"""How a method gets its features and its class weights."""

import numpy as np
import pytest

from fedlap_app.graphs.federation import DataSpec, load_federation
from fedlap_app.graphs.learned import learn
from fedlap_app.methods.features import own_encoding
from fedlap_app.methods.registry import method_class
from fedlap_app.settings import Settings
from fedlap_app.sums.programs import FeatureMoments


@pytest.fixture
def parts():
    return load_federation(DataSpec(dataset="banks", clients=3, accounts=240, partition="owner"))


def test_balanced_classes_are_weighed_by_the_counts_of_all(parts):
    settings = Settings(method="fedavg", class_weights="balanced", device="cpu")
    method = method_class("fedavg").of(settings)
    encoding = learn(parts, classes=True)
    found = method.inputs(parts[0], {FeatureMoments.name: encoding}).class_weights.numpy()
    labels = np.concatenate([part.labels[part.train_mask] for part in parts])
    counts = np.bincount(labels, minlength=3)
    assert found == pytest.approx(counts.sum() / (3 * counts))
    alone = method.inputs(parts[0], {}).class_weights.numpy()
    own = np.bincount(parts[0].labels[parts[0].train_mask], minlength=3)
    assert alone == pytest.approx(np.where(own, own.sum() / ((own > 0).sum() * own), 1.0))


def test_features_stay_as_they_are_where_a_run_says_so(parts):
    settings = Settings(method="fedavg", standardise="none")
    encoding = own_encoding(parts[0], settings)
    assert encoding is not None
    assert encoding.apply(parts[0]) is parts[0]
    own = own_encoding(parts[0], Settings(method="local")).apply(parts[0]).features
    assert np.abs(own.mean(axis=0)).max() < 1e-5
