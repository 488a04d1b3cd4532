"""A classifier on a graph with generated neighbours, and the generator that makes them.

Every node with edges to other organisations gets one generated neighbour, joined by as much weight
as those edges have together. The generator reads the node's features and those around it.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from fedlap_app.graphs.ball import masks_of
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.models.determinism import seeded
from fedlap_app.models.features import Features
from fedlap_app.models.networks import SAGELayer, build_model
from fedlap_app.models.specs import ModelSpec
from fedlap_app.models.start import linear
from fedlap_app.models.tensors import GraphTensors, Missing

GROUP = 5
"""Own nodes, at least, whose mean a generated row is drawn to.

No node is in two groups: whoever sends rows of its choice learns these means at most, and no
difference of two of them is that of single nodes.
"""
_BLOCK = 2_000  # nodes that are grouped among themselves


@dataclass(frozen=True, eq=False)
class MendedFeatures:
    """Features of the nodes, and rows in place of those of the last nodes."""

    known: Features
    rows: Tensor

    def times(self, weight: Tensor, dropout: float = 0.0) -> Tensor:
        """Multiply with a weight; drop entries of both."""
        product = self.known.times(weight, dropout)
        added = functional.dropout(self.rows, dropout) @ weight
        return torch.cat([product[: len(product) - len(added)], added])


class Generator(nn.Module):
    """Features of a node's missing neighbour, from the node and its neighbours."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.encoder = SAGELayer(features, width)
        self.decoder = linear(width, features)

    def forward(self, tensors: GraphTensors, nodes: Tensor) -> Tensor:
        """Generated rows for some nodes."""
        hidden = self.encoder(tensors.x.times(self.encoder.weight), tensors.propagation)
        rows: Tensor = self.decoder(hidden[nodes].relu())
        return rows


class MendedModel(nn.Module):
    """The classifier, which reads the mended graph, and the generator that mends it."""

    def __init__(self, classifier: nn.Module, generator: Generator) -> None:
        super().__init__()
        self.classifier, self.generator = classifier, generator
        self.returned: tuple[Tensor, Tensor] | None = None

    def forward(self, tensors: GraphTensors) -> Tensor:
        """Logits of all nodes, generated ones last."""
        # The labels of a few own nodes would teach a generator of one's own to say them by heart.
        rows = self.generator(tensors, missing_of(tensors).nodes).detach()
        logits: Tensor = self.classifier(replace(tensors, x=MendedFeatures(tensors.x, rows)))
        return logits

    def drawn(self, tensors: GraphTensors) -> Tensor:
        """How far generated rows are from the nearest true neighbour, and the others' gradient."""
        missing = missing_of(tensors)
        sources, targets = missing.edges
        loss = torch.zeros((), device=tensors.device)
        if len(sources):
            rows = self.generator(tensors, sources)
            gaps = (rows - missing.dense[targets]).square().mean(dim=1)
            nearest = torch.full((len(missing.dense),), torch.inf, device=tensors.device)
            nearest = nearest.scatter_reduce(0, sources, gaps, "amin")
            loss = loss + nearest[nearest.isfinite()].mean()
        if self.returned is not None:
            nodes, gradient = self.returned
            loss = loss + (self.generator(tensors, nodes) * gradient).sum()
        return loss


def build_mended(spec: ModelSpec, width: int, seed: int) -> MendedModel:
    """Make both on the CPU; the same seed gives the same weights everywhere."""
    classifier = build_model(spec, seed)
    with seeded(seed):
        return MendedModel(classifier, Generator(spec.num_features, width))


def missing_of(tensors: GraphTensors) -> Missing:
    """What is missing of a part that was grown."""
    assert tensors.missing is not None, "the part was grown before"
    return tensors.missing


def with_missing(tensors: GraphTensors, part: Subgraph) -> GraphTensors:
    """Tensors of a grown part, with what its generator learns from."""
    width = part.num_features
    dense = tensors.x.times(torch.eye(width, device=tensors.device))[: part.num_nodes]
    nodes = torch.from_numpy(_cut(part)[0]).to(tensors.device)
    edges = torch.from_numpy(np.array(part.intra_edges[0])).to(tensors.device)
    return replace(tensors, missing=Missing(nodes, dense, edges, group_means(dense)))


def _cut(part: Subgraph) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Nodes with foreign neighbours, and the weight of the edges to these."""
    weight = np.asarray(part.symmetric_adjacency()[:, part.num_nodes :].sum(axis=1)).ravel()
    nodes = np.flatnonzero(weight > 0)
    return nodes, weight[nodes]


def grown(part: Subgraph) -> Subgraph:
    """A part with an empty node in place of all foreign neighbours of each node."""
    nodes, weight = _cut(part)
    new = part.num_nodes + np.arange(nodes.size)
    index, known = part.intra_edges
    both = np.hstack([np.stack([nodes, new]), np.stack([new, nodes])])
    features = part.features
    dense = features if isinstance(features, np.ndarray) else features.toarray()
    nothing = np.empty(0, dtype="<U1")
    longest = max(map(len, part.ids.tolist()))
    names = np.array([f"{'+' * longest}{at}" for at in range(nodes.size)], dtype=str)
    return Subgraph(
        name=part.name,
        classes=part.classes,
        feature_names=part.feature_names,
        ids=np.concatenate([part.ids, names]),
        external_ids=nothing,
        external_owners=nothing,
        edge_index=np.hstack([index, both]),
        edge_weight=np.concatenate([known, np.tile(weight, 2)]),
        features=np.vstack([dense, np.zeros((nodes.size, part.num_features), np.float32)]),
        labels=np.concatenate([part.labels, np.full(nodes.size, -1)]),
        directed=part.directed,
        **masks_of(part, nodes.size),
    )


def group_means(own: Tensor) -> Tensor:
    """Means of disjoint groups of nodes that lie near each other; none of fewer than `GROUP`."""
    found = []
    for start in range(0, len(own), _BLOCK):
        block = own[start : start + _BLOCK]
        left = torch.arange(len(block), device=own.device)
        while len(left) >= GROUP:
            count = GROUP if len(left) >= 2 * GROUP else len(left)
            gaps = (block[left] - block[left[0]]).square().sum(dim=1)
            order = gaps.argsort(stable=True)
            found.append(block[left[order[:count]]].mean(dim=0))
            left = left[order[count:].sort().values]
    return torch.stack(found) if found else own[:0]


def pull(rows: NDArray[np.float32], means: Tensor) -> NDArray[np.float32]:
    """Gradient of the mean squared distance of rows to the nearest mean of a group of own nodes."""
    if not len(means):
        return np.zeros_like(rows)
    with torch.no_grad():
        asked = torch.from_numpy(np.array(rows, dtype=np.float32)).to(means.device)
        near = torch.cdist(asked, means).argmin(dim=1)
        gradient = 2.0 * (asked - means[near]) / means.shape[1] / max(len(asked), 1)
    found: NDArray[np.float32] = gradient.cpu().numpy()
    return found
