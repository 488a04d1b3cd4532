"""A coordinator that asks whatever it likes of organisations as they are deployed."""

from dataclasses import replace

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict

from client_app.app import app
from fedlap_app.flower.grids.local_grid import InProcessGrid, folder_configs, new_run_id
from fedlap_app.flower.records import numbers, to_arrays
from fedlap_app.graphs.federation import load_federation
from fedlap_app.graphs.folder import write_folder
from fedlap_app.settings import Settings

HIDDEN = 8
FIRST = 101  # number of the first node


def settings_of(**changed):
    """A run that helps the coordinator: a model without norms, dropout and neighbours."""
    plain = {
        "method": "fedavg", "accounts": 240, "clients": 3, "rounds": 3, "local_epochs": 2,
        "standardise": "none", "model": "decoupled", "hops": 0, "hidden": str(HIDDEN),
        "dropout": 0.0,
        "input_dropout": 0.0, "input_norm": False, "weight_decay": 0.0,
        "self_training": 0, "patience": 0, "relay": False, "training_backend": "plain",
    }  # fmt: skip
    return replace(Settings(), **plain | changed)


def write_organisations(root, policy=()):
    """Folders of three organisations, each with the lines of a policy; and their data."""
    subgraphs = load_federation(settings_of().data_spec)
    folders = [root / subgraph.name for subgraph in subgraphs]
    for subgraph, folder in zip(subgraphs, folders, strict=True):
        write_folder(subgraph, folder)
        lines = ["[policy]", 'training-backends = ["plain", "mask"]', *policy]
        with (folder / "org.toml").open("a") as file:
            file.write("\n".join(lines) + "\n")
    return folders, subgraphs


class Coordinator:
    """One run, or what claims to be one, at the first of the organisations."""

    def __init__(self, folders, settings, run=None):
        self.folders, self.settings = folders, settings
        self.run = run or new_run_id()
        configs = folder_configs(folders)
        self._grid = InProcessGrid(app, configs, settings.to_config(), run_id=self.run)

    def switched(self, **changed):
        """The same run with another run configuration."""
        return Coordinator(self.folders, replace(self.settings, **changed), self.run)

    def ask(self, kind, content):
        """Content of the reply, or the sentence of a refusal."""
        message = Message(content, FIRST, kind)
        (reply,) = self._grid.send_and_receive([message])
        if reply.has_error():
            return f"error: {reply.error.reason}"
        refusal = reply.content.get("refusal")
        return str(refusal["reason"]) if refusal else reply.content

    def join(self):
        """Say that the run begins."""
        return self.ask("query.join", RecordDict({"config": ConfigRecord({"version": "any"})}))

    def train(self, model, number=1, *, stage=0, run=None, pull=0.0):
        """Ask for a round."""
        task = {"run": run or self.run, "stage": stage, "server-round": number}
        task |= {"proximal-mu": pull}
        return self.ask("train", _content(model, task))

    def evaluate(self, model, *, stage=0, run=None):
        """Ask for the scores of a model."""
        return self.ask("evaluate", _content(model, {"run": run or self.run, "stage": stage}))

    def keep(self, model, *, stage=0, run=None):
        """Ask for the scores of a model and to keep it."""
        return self.ask("evaluate.keep", _content(model, {"run": run or self.run, "stage": stage}))

    def alone(self):
        """Scores of the rounds and of the end of training without exchange, or a sentence."""
        task = ConfigRecord({"run": self.run, "stage": 0})
        reply = self.ask("train.alone", RecordDict({"config": task}))
        if isinstance(reply, str):
            return reply
        return [np.reshape(numbers(reply, key), (-1, 4)) for key in ("history", "scores")]


def _content(model, task):
    return RecordDict({"arrays": to_arrays(model), "config": ConfigRecord(task)})


def scores_of(reply):
    """Count, correct, sum of losses and F1 of train, val and test; None: refused."""
    return None if isinstance(reply, str) else np.reshape(numbers(reply, "scores"), (3, 4))


def model_of(subgraph, *, class_bias=None):
    """A model that says the same of every node."""
    classes = subgraph.num_classes
    bias = np.zeros(classes) if class_bias is None else class_bias
    arrays = {
        "layers.0.weight": np.zeros((subgraph.num_features, HIDDEN)),
        "layers.0.bias": np.zeros(HIDDEN),
        "layers.1.weight": np.zeros((HIDDEN, classes)),
        "layers.1.bias": bias,
    }
    return {name: np.asarray(value, dtype=np.float32) for name, value in arrays.items()}


def watching(subgraph, feature, threshold, strength=1.0):
    """A model whose first unit fires for nodes with more than `threshold` of a feature."""
    model = model_of(subgraph)
    model["layers.0.weight"][feature, 0] = 1.0
    model["layers.0.bias"][0] = -threshold
    model["layers.1.weight"][0, 0] = strength
    return model


def always(subgraph, number, strength=50.0):
    """A model that predicts one class for every node."""
    bias = np.zeros(subgraph.num_classes)
    bias[number] = strength
    return model_of(subgraph, class_bias=bias)


def class_counts(subgraph, mask):
    """How many nodes of a split are of each class."""
    return np.bincount(subgraph.labels[mask], minlength=subgraph.num_classes)
