"""One organisation's internal nodes and edges as tensors on a device."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedlap_app.errors import ConfigError
from fedlap_app.models.features import Features, features_on
from fedlap_app.models.guesses import Guesses
from fedlap_app.models.propagation import Links, neighbour_mean, random_walk, symmetric
from fedlap_app.models.smoothness import LaplacianShare
from fedlap_app.models.sparse import Propagation, RelayedMatrix, SparseMatrix
from fedlap_app.models.specs import Kind, ModelSpec

if TYPE_CHECKING:
    from fedlap_app.graphs.subgraph import Subgraph

NO_LABEL = -1
SPLITS = ("train", "val", "test")
NORMALISATION = {"sage": neighbour_mean, "gcn": symmetric, "decoupled": random_walk}


@dataclass(frozen=True, eq=False)
class Missing:
    """What is missing of a part, and what a generator of it learns from.

    Attributes
    ----------
    nodes : Tensor
        Nodes with foreign neighbours, in the order of the empty nodes that stand for these.
    dense : Tensor
        (n, d) features as the network reads them.
    edges : Tensor
        (2, E) internal edges.
    means : Tensor
        Means of groups of own nodes, by which rows of others are judged.
    """

    nodes: Tensor
    dense: Tensor
    edges: Tensor
    means: Tensor


@dataclass(frozen=True, eq=False)
class GraphTensors:
    """What a model of one kind reads: features, a propagation matrix, labels and splits.

    Attributes
    ----------
    kind : Kind
        The kind of model that ``propagation`` is for.
    x : Features
        Features, normalised if the model asks for it.
    propagation : Propagation
        (n, n) over internal edges, and over external nodes if these relay; they have no features
        here.
    targets : Tensor
        (n,) class of the training nodes, -1 for all others.
    labels : NDArray
        (n,) class of every node, -1 when unknown.
    splits : dict
        Node numbers of "train", "val" and "test".
    device : torch.device
        Where the tensors are.
    basis : Tensor | None
        (n, rank) rows of a spectral basis, for models that read the structure of the whole graph.
    eigenvalues : Tensor | None
        Eigenvalues of its columns; columns beyond them are zero.
    guesses : tuple of Tensor | None
        Guessed class probabilities (n, classes) and weights (n,) of nodes without a label for
        training.
    share : LaplacianShare | None
        Share of the Laplacian regulariser, for models with learned rows.
    others : Mapping
        Propagation matrices of further kinds of models, for those that are trained together.
    class_weights : Tensor | None
        (classes,) weight of each class in the loss; None: all weigh 1.
    softmax_twice : bool
        Whether the loss takes probabilities for logits.
    sums : Features | None
        Sums over the neighbours' features, for models that read them beside ``x``.
    walks : SparseMatrix | None
        (n, all nodes) weights of walks, for models that learn rows of all nodes.
    missing : Missing | None
        What a generator of missing neighbours reads, of a part that was grown for them.
    """

    kind: Kind
    x: Features
    propagation: Propagation
    targets: Tensor
    labels: NDArray[np.int64]
    splits: dict[str, NDArray[np.int64]]
    device: torch.device
    basis: Tensor | None = None
    eigenvalues: Tensor | None = None
    guesses: tuple[Tensor, Tensor] | None = None
    share: LaplacianShare | None = None
    class_weights: Tensor | None = None
    softmax_twice: bool = False
    sums: Features | None = None
    walks: SparseMatrix | None = None
    missing: Missing | None = None
    others: Mapping[Kind, Propagation] = field(default_factory=dict)

    def propagation_of(self, kind: Kind) -> Propagation:
        """The propagation matrix of a kind of model."""
        if kind == self.kind:
            return self.propagation
        if kind not in self.others:
            raise ConfigError(
                f"The model is {kind!r} and the tensors are for "
                f"{', '.join(map(repr, (self.kind, *self.others)))}; build both from one ModelSpec."
            )
        return self.others[kind]

    @property
    def num_nodes(self) -> int:
        """Number of internal nodes."""
        return len(self.labels)

    @classmethod
    def from_subgraph(
        cls,
        subgraph: "Subgraph",
        spec: ModelSpec,
        device: torch.device | str = "cpu",
        *,
        others: Iterable[Kind] = (),
    ) -> Self:
        """Bring a subgraph to the device in the form that the model of ``spec`` reads.

        With `others`, models of these kinds read it as well.
        """
        if subgraph.features.shape[1] != spec.num_features:
            raise ConfigError(
                f"{subgraph.name} has {subgraph.features.shape[1]} features and the model takes "
                f"{spec.num_features}; give the model the number of features of the data."
            )
        if len(subgraph.classes) != spec.num_classes:
            raise ConfigError(
                f"{subgraph.name} has {len(subgraph.classes)} classes and the model gives "
                f"{spec.num_classes}; give the model the number of classes of the data."
            )
        device = torch.device(device)
        links = Links.of(subgraph, relay=spec.relay)
        targets = np.where(subgraph.train_mask, subgraph.labels, NO_LABEL)
        masks = (subgraph.train_mask, subgraph.val_mask, subgraph.test_mask)
        return cls(
            kind=spec.kind,
            x=features_on(subgraph.features, normalise=spec.input_norm, device=device),
            propagation=_propagation(NORMALISATION.get(spec.kind, random_walk)(links), device),
            targets=torch.from_numpy(targets).to(device),
            labels=subgraph.labels,
            splits={name: np.flatnonzero(mask) for name, mask in zip(SPLITS, masks, strict=True)},
            device=device,
            others={kind: _propagation(NORMALISATION[kind](links), device) for kind in others},
        )

    def with_basis(
        self, basis: NDArray[np.floating], eigenvalues: NDArray[np.floating]
    ) -> "GraphTensors":
        """The same data with rows of a spectral basis."""
        return replace(
            self,
            basis=torch.as_tensor(basis, dtype=torch.float32, device=self.device),
            eigenvalues=torch.as_tensor(eigenvalues, dtype=torch.float32, device=self.device),
        )

    def balanced(self, classes: int, counts: NDArray[np.number] | None = None) -> "GraphTensors":
        """The same data with classes that weigh the same in the loss, however rare they are.

        Parameters
        ----------
        classes
            How many there are.
        counts
            Training nodes of every class (default: the own ones); one without any keeps weight 1.
        """
        if counts is None:
            labels = self.labels[self.splits["train"]]
            counts = np.bincount(labels, minlength=classes)
        weights = np.ones(classes, dtype=np.float32)
        present = counts > 0
        weights[present] = counts.sum() / (np.count_nonzero(present) * counts[present])
        return replace(self, class_weights=torch.from_numpy(weights).to(self.device))

    def with_guesses(self, guesses: Guesses) -> "GraphTensors":
        """The same data with guessed labels."""
        if len(guesses.weights) != self.num_nodes:
            raise ConfigError(
                f"There are {len(guesses.weights)} label guesses for {self.num_nodes} nodes: "
                "the data changed since they were made."
            )
        targets, weights = (
            torch.from_numpy(values).to(self.device)
            for values in (guesses.targets, guesses.weights)
        )
        return replace(self, guesses=(targets, weights))


def _propagation(links: Links, device: torch.device) -> Propagation:
    own = SparseMatrix.from_scipy(links.own, device)
    if links.back is None or links.relay is None:
        return own
    back, relay = (SparseMatrix.from_scipy(each, device) for each in (links.back, links.relay))
    return RelayedMatrix(own, back, relay)
