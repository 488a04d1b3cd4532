"""Federated averaging of a feature model on the edges inside of each organisation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods import weighing
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
from fedlap_app.methods.weighing import step
from fedlap_app.models.specs import BRANCH_WEIGHTS
from fedlap_app.seeds import round_seed
from fedlap_app.sums.programs import FeatureMoments

if TYPE_CHECKING:
    from torch import Tensor, nn

    from fedlap_app.methods.organisation import Organisation
    from fedlap_app.models.evaluation import Evaluation
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
    weighs_branches: ClassVar[bool] = True
    """Whether it trains a portfolio where the settings ask for one; else its one model."""

    @property
    def has_portfolio(self) -> bool:
        """Whether several models are trained side by side."""
        return self.weighs_branches and self.settings.has_portfolio

    @property
    def feature_models(self) -> "Mapping[str, ModelSpec]":
        """The branches, or the one model unless the structure is trained alone."""
        least = Schema(1, 1)
        if self.has_portfolio:
            return self.branch_specs(least)
        spec = self.spec(least)
        return {} if self.settings.model == "none" else {spec.kind: spec}

    def model(self, schema: Schema, seed: int, *, held: int = 0) -> "nn.Module":
        """The feature model, or several."""
        from fedlap_app.models.networks import build_model
        from fedlap_app.models.portfolio import build_portfolio

        if self.has_portfolio:
            return build_portfolio(self.branch_specs(schema), None, (), seed)
        return build_model(self.spec(schema), seed)

    def spec(self, schema: Schema) -> "ModelSpec":
        """What the feature model looks like."""
        return self.settings.model_spec(schema.features, schema.classes)

    def branch_specs(self, schema: Schema) -> "dict[str, ModelSpec]":
        """What the feature models of a portfolio look like."""
        return self.settings.branch_specs(schema.features, schema.classes)

    def inputs(self, part: Subgraph, found: Mapping[str, Any]) -> "GraphTensors":
        """Features and internal edges on the device of the settings."""
        from fedlap_app.models.device import pick_device
        from fedlap_app.models.tensors import GraphTensors

        schema = Schema(part.num_features, part.num_classes)
        spec = self.spec(schema)
        specs = self.branch_specs(schema) if self.has_portfolio else {}
        kinds = {each.kind for each in specs.values()} - {spec.kind}
        device = pick_device(self.settings.device)
        tensors = GraphTensors.from_subgraph(part, spec, device, others=sorted(kinds))
        tensors = replace(tensors, softmax_twice=self.settings.softmax == "twice")
        if self.settings.class_weights != "balanced":
            return tensors
        read = found.get(FeatureMoments.name)
        summed = None if read is None or not read.class_counts.size else read.class_counts
        return tensors.balanced(part.num_classes, summed)

    def loss(self, model: "nn.Module", inputs: "GraphTensors") -> "Tensor":
        """Cross-entropy over the training nodes; of several branches each one's own."""
        from fedlap_app.models.portfolio import Portfolio
        from fedlap_app.models.training import cross_entropy

        if isinstance(model, Portfolio):
            return model.objective(inputs)
        return cross_entropy(model, inputs)

    def train(self, org: "Organisation", received: Records, turn: Turn) -> Update:
        """Score the received model, then train it."""
        from fedlap_app.models.determinism import one_thread
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
            scores, sums = scored(model, inputs, bins=settings.score_bins)
            if settings.promise and settings.promise.by_example:
                clipped = self._clipped(org, inputs, seed, settings.promise.clip)
                records = self.returned(org, received, clipped)
                return Update(records, self.weight(org), scores, {}, sums)
            pull = settings.pull
            loss = proximal(self.loss, pull, model) if pull else self.loss
            rule = Optimizer(model.parameters(), spec)
            if turn.moments:
                rule.load_moments(turn.moments)
            train_epochs(model, inputs, spec, seed, objective=loss, optimizer=rule)
            kept = rule.moments() if turn.moments is not None else {}
            records = self.returned(org, received, parameters_of(model))
        return Update(records, self.weight(org), scores, kept, sums)

    def _clipped(
        self, org: "Organisation", inputs: "GraphTensors", seed: int, clip: float
    ) -> Parameters:
        """The model moved by the mean of its examples' gradients, each of which was clipped."""
        from fedlap_app.models.examples import Examples, clipped_sum, moved
        from fedlap_app.models.parameters import parameters_of

        model, count = org.model, self.weight(org)
        if not count:
            return parameters_of(model)
        examples = Examples.of(inputs, org.subgraph.num_classes)
        gradients = clipped_sum(model, inputs, examples, objective=self.loss, clip=clip, seed=seed)
        return moved(model, gradients, count, self.settings.weight_decay)

    def returned(self, org: "Organisation", received: Records, parameters: Parameters) -> Records:
        """What leaves of the trained network's parameters."""
        return {MODEL: parameters}

    def start(self, schema: Schema, seed: int, found: Mapping[str, Found]) -> State:
        """A fresh model."""
        from fedlap_app.models.parameters import parameters_of

        return State(parameters_of(self.model(schema, seed)))

    def num_sums(self, model: Parameters) -> int:
        """Those that weigh the branches."""
        weights = model.get(BRANCH_WEIGHTS)
        return 0 if weights is None else weighing.size(len(weights))

    def weigh(self, state: State, before: State, summed: Sequence[float]) -> State:
        """The state after a round with weights of its branches that follow from the sums."""
        if not summed or BRANCH_WEIGHTS not in state.model:
            return state
        weights = step(np.asarray(before.model[BRANCH_WEIGHTS], dtype=np.float64), summed)
        moved = {BRANCH_WEIGHTS: weights.astype(np.float32)}
        return replace(state, model={**state.model, **moved})


def scored(
    model: "nn.Module", inputs: "GraphTensors", *, bins: int = 0
) -> "tuple[list[Evaluation], list[float]]":
    """Scores of a model, and what is added to the sums that weigh its branches, if it has any."""
    from fedlap_app.models.fusion import evaluate_weights
    from fedlap_app.models.portfolio import Portfolio, evaluate_branches

    if not isinstance(model, Portfolio):
        return evaluate_weights(model, inputs, bins=bins), []
    evaluation, found = evaluate_branches(model, inputs, bins=bins)
    weights = model.get_buffer(BRANCH_WEIGHTS).cpu().numpy().astype(np.float64)
    labels = inputs.labels[inputs.splits["val"]]
    return [evaluation], weighing.sums(found, labels, weights)
