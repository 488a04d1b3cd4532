"""Three banks whose names of classes and features, and whose ids, are easy to find again."""

import dataclasses

import numpy as np
import pytest

import fedlap_app as fedlap

CLASSES = ("Class-mark-one", "Class-mark-two", "Class-mark-three")
QUICK = {
    "rounds": 3, "local_epochs": 1, "hidden": "8", "self_training": 1, "vectors": 12,
}  # fmt: skip


def _marked(part):
    names = tuple(f"Feature-mark-{at}" for at in range(part.num_features))
    return dataclasses.replace(
        part,
        ids=np.array([f"Node-mark-{each}" for each in part.ids]),
        external_ids=np.array([f"Node-mark-{each}" for each in part.external_ids]),
        classes=CLASSES,
        feature_names=names,
    )


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Folders of three organisations."""
    root = tmp_path_factory.mktemp("marked")
    orgs = fedlap.load("banks", clients=3, accounts=300)
    for part in orgs:
        from fedlap_app.graphs.folder import write_folder

        write_folder(_marked(part), root / part.name)
    return root


@pytest.fixture(scope="session")
def run(folders, tmp_path_factory):
    """A run over them, whose stores are kept."""
    orgs = fedlap.read(folders)
    return fedlap.train(orgs, store=tmp_path_factory.mktemp("store"), **QUICK)
