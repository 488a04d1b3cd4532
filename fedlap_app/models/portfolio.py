"""Several models of a node that are trained together, each on its own loss, and weighed.

The log-probabilities of the branches are added with weights that are not negative. The server
moves the weights by one step a round towards the least validation cross-entropy of all
organisations (`fedlap_app.methods.weighing`), so that a branch which does not help ends at zero:
the features alone, or the structure alone. The feature models read one product of the features,
with one draw of input dropout.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from fedlap_app.errors import ConfigError
from fedlap_app.models.determinism import seeded
from fedlap_app.models.evaluation import Evaluation, score
from fedlap_app.models.networks import FeatureModel, Intercept
from fedlap_app.models.rows import LearnedRows
from fedlap_app.models.specs import BRANCH_WEIGHTS, ModelSpec, Reading, StructureSpec
from fedlap_app.models.structure import StructureHead, StructureModel, rayleigh_quotient
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.models.training import loss_of

FLOOR = -10.0
"""Log-probabilities below it count as it, so that no single node decides about a branch."""


class FeatureBranches(nn.ModuleDict):
    """Feature models on one product of the features with all their first weights."""

    def __init__(self, specs: dict[str, ModelSpec]) -> None:
        first = next(iter(specs.values()))
        single = {"bias": Intercept(first.num_classes)}
        super().__init__(
            {name: FeatureModel(spec) for name, spec in specs.items()}
            if first.num_features
            else single
        )
        self.input_dropout = first.input_dropout

    def forward(self, tensors: GraphTensors) -> list[Tensor]:
        """Logits of every branch."""
        models = [each for each in self.values() if isinstance(each, FeatureModel)]
        if not models:
            return [each(tensors) for each in self.values()]
        weights: list[Tensor] = [each.first.weight for each in models]
        dropout = self.input_dropout if self.training else 0.0
        product = tensors.x.times(torch.cat(weights, dim=1), dropout)
        parts = torch.split(product, [weight.shape[1] for weight in weights], dim=1)
        return [
            model.finish(part.contiguous(), tensors)
            for model, part in zip(models, parts, strict=True)
        ]


class BasisBranch(StructureModel):
    """A structure model with a way of its own to read the basis."""

    def __init__(self, spec: StructureSpec, reading: Reading) -> None:
        super().__init__(spec)
        self.reading = reading
        self._scaled: tuple[Tensor, Tensor] | None = None

    def logits(self, tensors: GraphTensors) -> Tensor:
        """Logits of all nodes from their rows of the basis."""
        if tensors.basis is None or tensors.eigenvalues is None:
            raise ConfigError("The model reads a spectral basis, but none is attached to the data.")
        features = tensors.basis[:, : self.spec.rank] @ (self._scale(tensors.eigenvalues) * self.W)
        return StructureHead.forward(self, features)

    def _scale(self, eigenvalues: Tensor) -> Tensor:
        """Weights of the columns, (rank, 1), worked out once for the same eigenvalues."""
        if self._scaled is None or self._scaled[0] is not eigenvalues:
            weights = self.reading.weights(eigenvalues.cpu().numpy().astype(np.float64))
            found = min(len(weights), self.spec.rank)
            with torch.inference_mode(mode=False):  # training reads it, too
                scale = torch.zeros(self.spec.rank, 1, device=eigenvalues.device)
                scale[:found, 0] = torch.from_numpy(weights[:found].astype(np.float32))
            self._scaled = eigenvalues, scale
        return self._scaled[1]

    def roughness(self, tensors: GraphTensors) -> Tensor | float:
        """The regulariser of W."""
        if not self.reading.smoothing or tensors.eigenvalues is None:
            return 0.0
        return self.reading.smoothing * rayleigh_quotient(
            self.W, tensors.eigenvalues[: self.spec.rank]
        )


class Portfolio(nn.Module):
    """Branches and their weights.

    Parameters
    ----------
    features : FeatureBranches | None
        Models of the features and the own edges.
    structure : nn.ModuleDict
        Models of a node's place in the whole graph.
    """

    def __init__(self, features: FeatureBranches | None, structure: nn.ModuleDict) -> None:
        super().__init__()
        self.features = features
        self.structure = structure
        count = len(self.names)
        self.register_buffer(BRANCH_WEIGHTS, torch.full((count,), 1.0 / max(count, 1)))

    @property
    def names(self) -> list[str]:
        """What the branches are called, in their order."""
        features = [] if self.features is None else list(self.features)
        return [*features, *self.structure]

    def branches(self, tensors: GraphTensors) -> list[Tensor]:
        """Logits of every branch."""
        features = [] if self.features is None else self.features(tensors)
        return [*features, *self.structure_branches(tensors)]

    def structure_branches(self, tensors: GraphTensors) -> list[Tensor]:
        """Logits of the branches that read the structure of the whole graph."""
        branches = [each for each in self.structure.values() if isinstance(each, BasisBranch)]
        return [branch.logits(tensors) for branch in branches]

    def forward(self, tensors: GraphTensors) -> Tensor:
        """Weighted sum of the log-probabilities, (n, classes).

        In training all branches count alike, so that a loss of its own that a method computes from
        it trains all of them.
        """
        found = self.log_probabilities(tensors)
        return found.mean(dim=0) if self.training else self.fused(found)

    def log_probabilities(self, tensors: GraphTensors) -> Tensor:
        """Log-probabilities of every branch, (branches, n, classes)."""
        return torch.stack([_floored(logits) for logits in self.branches(tensors)])

    def fused(self, log_probabilities: Tensor) -> Tensor:
        """Their weighted sum."""
        weights = self.get_buffer(BRANCH_WEIGHTS)
        return (weights[:, None, None] * log_probabilities).sum(dim=0)

    def without_structure(self, tensors: GraphTensors) -> Tensor:
        """What the feature models say together; all alike where validation chose none of them."""
        if self.features is None:
            raise ConfigError("The model has no feature models: name some in branches.")
        found = torch.stack([_floored(logits) for logits in self.features(tensors)])
        weights = self.get_buffer(BRANCH_WEIGHTS)[: len(found)]
        weights = weights if weights.any() else torch.ones_like(weights)
        return (weights[:, None, None] * found).sum(dim=0)

    def objective(self, tensors: GraphTensors) -> Tensor:
        """Every branch's own loss: of the feature models, which share an input, the mean."""
        losses = [loss_of(logits, tensors) for logits in self.branches(tensors)]
        count = len(losses) - len(self.structure)
        total = torch.stack(losses[count:]).sum() if self.structure else torch.zeros(())
        if count:
            total = total + torch.stack(losses[:count]).mean()
        return total + self.regulariser(tensors)

    def regulariser(self, tensors: GraphTensors) -> Tensor | float:
        """What the structure models add to their losses."""
        found = [each for each in self.structure.values() if isinstance(each, BasisBranch)]
        return sum((each.roughness(tensors) for each in found), start=0.0)


class RowPortfolio(Portfolio, LearnedRows):
    """Feature models and one model of learned rows."""

    learns_unlabelled = True  # the regulariser moves rows where no node has a label

    def __init__(
        self, features: FeatureBranches | None, head: StructureHead, held: int, smoothing: float
    ) -> None:
        super().__init__(features, nn.ModuleDict({"rows": head}))
        self.rows = nn.Parameter(torch.zeros(held, head.spec.width))
        self.smoothing = smoothing

    def structure_branches(self, tensors: GraphTensors) -> list[Tensor]:
        """Logits from the learned rows of the internal nodes."""
        return [self.structure["rows"](self.structure_features(tensors))]

    def objective(self, tensors: GraphTensors) -> Tensor:
        """The losses and the regulariser of the rows, which needs no training node."""
        if len(tensors.splits["train"]):
            return super().objective(tensors)
        return torch.as_tensor(self.regulariser(tensors))

    def regulariser(self, tensors: GraphTensors) -> Tensor | float:
        """The organisation's share of the rows' Rayleigh quotient."""
        return self.smoothing * self.rayleigh(tensors)


def build_portfolio(
    features: dict[str, ModelSpec],
    structure: StructureSpec | None,
    readings: Sequence[Reading],
    seed: int,
) -> Portfolio:
    """Make all branches on the CPU; the same seed gives the same weights everywhere."""
    with seeded(seed):
        own = FeatureBranches(features) if features else None
        branches = nn.ModuleDict()
        for reading in readings if structure is not None else ():
            assert structure is not None
            spec = replace(structure, rank=reading.columns(structure.rank))
            branches[reading.name] = BasisBranch(spec, reading)
        return Portfolio(own, branches)


def build_row_portfolio(
    features: dict[str, ModelSpec], structure: StructureSpec, seed: int, held: int, smoothing: float
) -> RowPortfolio:
    """Make feature models and one of `held` learned rows on the CPU."""
    with seeded(seed):
        own = FeatureBranches(features) if features else None
        return RowPortfolio(own, StructureHead(structure), held, smoothing)


def evaluate_branches(
    model: Portfolio, tensors: GraphTensors, *, bins: int = 0
) -> tuple[Evaluation, NDArray[np.float64]]:
    """Scores, and every branch's log-probabilities of the validation nodes, in one forward pass."""
    model.eval()
    nodes = torch.from_numpy(tensors.splits["val"]).to(tensors.device)
    with torch.inference_mode():
        found = model.log_probabilities(tensors)
        fused = model.fused(found).log_softmax(dim=1).cpu().numpy()
        validation: NDArray[np.float64] = found[:, nodes].cpu().numpy().astype(np.float64)
    return score(fused, tensors, bins=bins), validation


def _floored(logits: Tensor) -> Tensor:
    return functional.log_softmax(logits, dim=1).clamp(min=FLOOR)
