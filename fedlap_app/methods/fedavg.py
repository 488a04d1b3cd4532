"""Federated averaging of a feature model on the edges inside of each organisation."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.base import (
    MODEL,
    Found,
    Method,
    Parameters,
    Records,
    Schema,
    State,
    Turn,
    Update,
)
from fedlap_app.seeds import round_seed
from fedlap_app.sums.programs import FeatureMoments

if TYPE_CHECKING:
    from torch import Tensor, nn

    from fedlap_app.methods.organisation import Organisation
    from fedlap_app.models.specs import ModelSpec
    from fedlap_app.models.tensors import GraphTensors


class FedAvg(Method):
    """Each organisation trains the global model for some epochs; the models are averaged."""

    name: ClassVar[str] = "fedavg"
    summary: ClassVar[str] = "averages models"
    reveals: ClassVar[tuple[str, str, str]] = (
        "The server sees every organisation's model and counts of scores after each round, from "
        "which attacks guess labels; sealed training leaves it their sums.",
        "Organisations see the mean model of every round.",
        "No edge between organisations is used, so nobody learns of one.",
    )
    steps_at_server: ClassVar[bool] = True

    def model(self, schema: Schema, seed: int, *, held: int = 0) -> "nn.Module":
        """The feature model."""
        from fedlap_app.models.networks import build_model

        return build_model(self.spec(schema), seed)

    def spec(self, schema: Schema) -> "ModelSpec":
        """What the feature model looks like."""
        return self.settings.model_spec(schema.features, schema.classes)

    def inputs(self, part: Subgraph, found: Mapping[str, Any]) -> "GraphTensors":
        """Features and internal edges on the device of the settings."""
        from fedlap_app.models.device import pick_device
        from fedlap_app.models.tensors import GraphTensors

        spec = self.spec(Schema(part.num_features, part.num_classes))
        tensors = GraphTensors.from_subgraph(part, spec, pick_device(self.settings.device))
        tensors = replace(tensors, softmax_twice=self.settings.softmax == "twice")
        if self.settings.class_weights != "balanced":
            return tensors
        read = found.get(FeatureMoments.name)
        summed = None if read is None or not read.class_counts.size else read.class_counts
        return tensors.balanced(part.num_classes, summed)

    def loss(self, model: "nn.Module", inputs: "GraphTensors") -> "Tensor":
        """Cross-entropy over the training nodes."""
        from fedlap_app.models.training import cross_entropy

        return cross_entropy(model, inputs)

    def train(self, org: "Organisation", received: Records, turn: Turn) -> Update:
        """Score the received model, then train it."""
        from fedlap_app.models.determinism import one_thread
        from fedlap_app.models.fusion import evaluate_weights
        from fedlap_app.models.optimizer import Optimizer
        from fedlap_app.models.parameters import load_parameters, parameters_of
        from fedlap_app.models.training import proximal, train_epochs

        settings, model, inputs = self.settings, org.model, org.inputs(turn.task)
        spec = settings.server_step_spec if self.server_steps else settings.train_spec
        seed = turn.seed
        if seed is None:
            seed = round_seed(settings.seed, turn.task.stage, org.name, turn.number)
        with one_thread():
            load_parameters(model, self.received(org, received))
            scores = evaluate_weights(model, inputs, bins=settings.score_bins)
            pull = settings.pull
            loss = proximal(self.loss, pull, model) if pull else self.loss
            rule = Optimizer(model.parameters(), spec)
            if turn.moments:
                rule.load_moments(turn.moments)
            train_epochs(model, inputs, spec, seed, objective=loss, optimizer=rule)
            kept = rule.moments() if turn.moments is not None else {}
            records = self.returned(org, received, parameters_of(model))
        return Update(records, self.weight(org), scores, kept)

    def returned(self, org: "Organisation", received: Records, parameters: Parameters) -> Records:
        """What leaves of the trained network's parameters."""
        return {MODEL: parameters}

    def start(self, schema: Schema, seed: int, found: Mapping[str, Found]) -> State:
        """A fresh model."""
        from fedlap_app.models.parameters import parameters_of

        return State(parameters_of(self.model(schema, seed)))
