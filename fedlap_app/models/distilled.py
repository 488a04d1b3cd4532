"""What several models know, taught to their mean on graphs that a generator makes up (FedTAD).

A generator makes features of nodes of given classes, and nodes alike are neighbours. It is trained
towards nodes that the models say are of their class and about which their mean disagrees with
them; then the mean learns to say what they say, each by how reliable it is for the class.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedlap_app.models.features import LAYER_NORM_EPSILON, DenseFeatures
from fedlap_app.models.optimizer import Optimizer
from fedlap_app.models.propagation import Links
from fedlap_app.models.sparse import SparseMatrix
from fedlap_app.models.specs import ModelSpec, TrainSpec
from fedlap_app.models.start import linear, normal
from fedlap_app.models.tensors import NO_LABEL, NORMALISATION, GraphTensors

NODES, NEIGHBOURS, NOISE = 100, 5, 32
WIDTHS = (64, 128, 256)
GRAPHS, STEPS = 5, 5
"""Graphs of a round, and the mean's steps on each; the generator makes one before them."""


class NodeGenerator(nn.Module):
    """Features of nodes of given classes, from noise."""

    def __init__(self, classes: int, features: int) -> None:
        super().__init__()
        self.names = nn.Parameter(normal(1.0, classes, classes))
        widths = (NOISE + classes, *WIDTHS, features)
        self.layers = nn.ModuleList(map(linear, widths[:-1], widths[1:]))

    def forward(self, noise: Tensor, classes: Tensor) -> Tensor:
        """Rows of features."""
        hidden = torch.cat([self.names[classes], noise], dim=1)
        *layers, last = self.layers
        for layer in layers:
            hidden = layer(hidden).tanh()
        rows: Tensor = last(hidden)
        return rows


@dataclass(frozen=True, eq=False)
class Teachers:
    """Trained models.

    Attributes
    ----------
    models
        On the CPU.
    reliability
        (models, classes) how much each counts for a class; columns add up to one, or to nothing.
    """

    models: Sequence[nn.Module]
    reliability: Tensor

    def logits(self, tensors: GraphTensors) -> Tensor:
        """Of all models, (models, n, classes)."""
        return torch.stack([model(tensors) for model in self.models])


def distil(
    student: nn.Module, teachers: Teachers, generator: NodeGenerator, spec: ModelSpec,
    rule: TrainSpec,
) -> None:  # fmt: skip
    """Train the generator and the student in place, with torch's draws."""
    student.eval()
    for model in teachers.models:
        model.eval()
    classes = torch.arange(NODES) % spec.num_classes
    made = Optimizer(generator.parameters(), rule)
    taught = Optimizer(student.parameters(), rule)
    for _ in range(GRAPHS):
        noise = normal(1.0, NODES, NOISE)
        rows = generator(noise, classes)
        tensors = pseudo_graph(rows, spec)
        found = teachers.logits(tensors)
        counts = teachers.reliability[:, classes]
        own = torch.stack([functional.cross_entropy(each, classes, reduction="none")
                           for each in found])  # fmt: skip
        alike = torch.exp(-(_gaps(noise) * _gaps(rows)).mean())
        away = _apart(student(tensors), found, counts)
        _step(made, (own * counts).sum() / NODES + alike - away)
        tensors = pseudo_graph(generator(noise, classes).detach(), spec)
        with torch.no_grad():
            found = teachers.logits(tensors)
        for _ in range(STEPS):
            _step(taught, _apart(student(tensors), found, counts))


def pseudo_graph(rows: Tensor, spec: ModelSpec) -> GraphTensors:
    """A graph of generated nodes in which each is joined to those most like it."""
    x = functional.normalize(rows.detach(), dim=1)
    near = (x @ x.T).fill_diagonal_(-2.0).topk(min(NEIGHBOURS, len(x) - 1)).indices.numpy()
    ends = np.repeat(np.arange(len(x)), near.shape[1]), near.ravel()
    one_way = sp.csr_array((np.ones(near.size), ends), shape=(len(x), len(x)))
    links = NORMALISATION[spec.kind](Links(sp.csr_array(one_way.maximum(one_way.T))))
    if spec.input_norm:
        rows = functional.layer_norm(rows, rows.shape[1:], eps=LAYER_NORM_EPSILON)
    unknown = np.full(len(x), NO_LABEL)
    return GraphTensors(
        kind=spec.kind,
        x=DenseFeatures(rows, torch.zeros(len(x), 1)),
        propagation=SparseMatrix.from_scipy(links.own),
        targets=torch.from_numpy(unknown),
        labels=unknown,
        splits={},
        device=torch.device("cpu"),
    )


def _apart(student: Tensor, teachers: Tensor, counts: Tensor) -> Tensor:
    """Mean distance of the student's probabilities from the teachers', by their reliability."""
    gaps = (student.softmax(dim=1) - teachers.softmax(dim=2)).abs().mean(dim=2)
    return (gaps * counts).sum() / NODES


def _gaps(rows: Tensor) -> Tensor:
    """(n, n) mean squared distances."""
    squares = rows.square().sum(dim=1)
    return (squares[:, None] + squares - 2.0 * rows @ rows.T).clamp(min=0.0) / rows.shape[1]


def _step(rule: Optimizer, loss: Tensor) -> None:
    rule.step(torch.autograd.grad(loss, rule.parameters, allow_unused=True, materialize_grads=True))
