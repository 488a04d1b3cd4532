"""What a model and its training look like, checked once where the values enter."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ConfigError
from fedlap_app.knobs import handed

Kind = Literal["sage", "gcn", "decoupled"]
Dense = Literal["none", "first", "last"]
OptimizerName = Literal["adam", "sgd"]
Activation = Literal["relu", "tanh", "none"]
ROWS = "rows"  # parameter of a model that holds learned rows
MASKS = "masks."  # parameters of a model that are multiplied with its weights
PORTFOLIO = "portfolio"
BRANCH_WEIGHTS = "branch_weights"  # value of a model that weighs its branches
FEATURE_BRANCHES: dict[str, tuple[Kind, int | None]] = {
    "sage": ("sage", None),
    "gcn": ("gcn", None),
    "decoupled": ("decoupled", None),
    "mlp": ("decoupled", 0),
}
"""Feature models of a portfolio: their kind, and hops other than those of the settings."""
STRUCTURE_BRANCHES = ("diffused", "flat", "ends")
GENERATOR = "generator."  # parameters of a model that generate missing neighbours
FUSIONS = ("sum", "validation")
FEATURE_WEIGHT = "feature_weight"  # value of a model that weights its feature model
FEATURES_ALONE, STRUCTURE_ALONE = -1.0, 0.0
FEATURE_WEIGHTS = (1.0, 0.5, 2.0, FEATURES_ALONE, STRUCTURE_ALONE)
"""What validation chooses from; of equal ones the first."""
SMOOTHERS = ("sym", "laplacian")  # operators whose regulariser organisations can share

MOST_PARAMETERS = 2**28  # 1 GiB of them: what a run may make an organisation take memory for


def _check_size(widths: Sequence[int]) -> None:
    """Refuse layers that nobody has memory for; whoever starts a run chooses their widths."""
    count = sum(one * other for one, other in pairwise(widths))
    if count > MOST_PARAMETERS:
        raise ConfigError(
            f"A model with layers of {', '.join(map(str, widths[:8]))} has {count} parameters "
            f"where {MOST_PARAMETERS} are the most; set smaller ones in hidden, structure-hidden "
            "or structure-width."
        )


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"{name} is {value!r}; choose one of {', '.join(choices)}.")


def _check_count(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name} is {value!r}; give a whole number of at least {least}.")


def _check_range(name: str, value: float, low: float, high: float, limits: str) -> None:
    if not math.isfinite(value) or not low <= value < high:
        raise ConfigError(f"{name} is {value!r}; give a number {limits}.")


@dataclass(frozen=True)
class ModelSpec:
    """A feature model.

    Parameters
    ----------
    kind : "sage" | "gcn" | "decoupled"
        GraphSAGE with mean aggregation; GCN; or an MLP followed by ``hops`` hops of D^-1 (A + I).
        Also the name of a model that was handed over; it gets what ``decoupled`` gets.
    num_features, num_classes : int
        Width of the input and of the output.
    hidden : tuple of int (default: (64,))
        Widths of the hidden layers; empty for a linear model.
    hops : int (default: 2)
        Propagation steps of ``decoupled``; the other kinds propagate once a layer.
    dropout : float (default: 0.5)
        Probability that a hidden unit is dropped in training.
    input_norm : bool (default: True)
        Normalise each node's features to mean 0 and variance 1 (LayerNorm without gain and bias,
        which the first layer has already).
    input_dropout : float (default: 0.0)
        Probability that a feature of a node is dropped in training.
    relay : bool (default: False)
        Propagate over external nodes, too: each says the mean of what its internal neighbours say.
    input_gain : bool (default: False)
        Learn a gain and a shift of each feature.
    dense : "none" | "first" | "last" (default: "none")
        A layer that does not propagate: the first, whose input is propagated already, or the last,
        which then follows the one before without relu and dropout.
    """

    kind: Kind
    num_features: int
    num_classes: int
    hidden: tuple[int, ...] = (64,)
    hops: int = 2
    dropout: float = 0.5
    input_norm: bool = True
    input_dropout: float = 0.0
    relay: bool = False
    input_gain: bool = False
    dense: Dense = "none"

    @property
    def shape(self) -> tuple[int, int]:
        """Widths of the input and of the output."""
        return self.num_features, self.num_classes

    def __post_init__(self) -> None:
        if handed("model", self.kind) is None:
            _check_choice("The model", self.kind, get_args(Kind))
        _check_count("The number of features", self.num_features, 0)
        _check_count("The number of classes", self.num_classes, 1)
        for width in self.hidden:
            _check_count("A hidden layer's width", width, 1)
        _check_size((self.num_features, *self.hidden, self.num_classes))
        _check_count("The number of hops", self.hops, 0)
        _check_range("The dropout", self.dropout, 0.0, 1.0, "from 0 up to, but not, 1")
        _check_range("The input dropout", self.input_dropout, 0.0, 1.0, "from 0 up to, but not, 1")


@dataclass(frozen=True)
class StructureSpec:
    """A structure model.

    Parameters
    ----------
    rank : int
        Columns of the basis, rows of W.
    width : int
        Columns of W: the number of structure features of a node.
    num_classes : int
        Width of the output.
    hidden : tuple of int (default: ())
        Hidden layers after the structure features.
    dropout : float (default: 0.5)
        Probability that a structure feature or hidden unit is dropped in training.
    activation : "relu" | "tanh" | "none" (default: "relu")
        Applied to U W.
    norm : bool (default: True)
        LayerNorm of the structure features.
    unit_norm : bool (default: False)
        Divide W by its Frobenius norm, as the paper's convergence proof assumes.
    """

    rank: int
    width: int
    num_classes: int
    hidden: tuple[int, ...] = ()
    dropout: float = 0.5
    activation: Activation = "relu"
    norm: bool = True
    unit_norm: bool = False

    def __post_init__(self) -> None:
        _check_count("The rank of the basis", self.rank, 1)
        _check_count("The number of structure features", self.width, 1)
        _check_count("The number of classes", self.num_classes, 1)
        for width in self.hidden:
            _check_count("A hidden layer's width", width, 1)
        _check_size((self.rank, self.width, *self.hidden, self.num_classes))
        _check_range("The dropout", self.dropout, 0.0, 1.0, "from 0 up to, but not, 1")
        _check_choice("The activation", self.activation, get_args(Activation))


@dataclass(frozen=True)
class Reading:
    """How one branch of a portfolio reads a spectral basis.

    Parameters
    ----------
    name : "diffused" | "flat" | "ends"
        All columns by the heat kernel exp(-t eigenvalue), which fades out from the smooth end; the
        first half of them, all alike; or all by the size of the adjacency's eigenvalue, which
        shows both ends.
    diffusion : float
        t of the heat kernel.
    smoothing : float
        Strength of the Rayleigh quotient of W.
    centre : float
        Where the spectrum of the operator has adjacency's zero: 1 for normalised Laplacians.
    root : bool
        Whether the eigenvalues are squares of adjacency's, as those of A A' are.
    """

    name: str
    diffusion: float = 0.0
    smoothing: float = 0.0
    centre: float = 0.0
    root: bool = False

    def __post_init__(self) -> None:
        _check_choice("A branch of the structure", self.name, STRUCTURE_BRANCHES)

    def columns(self, rank: int) -> int:
        """Columns of a basis that are read."""
        return (rank + 1) // 2 if self.name == "flat" else rank

    def weights(self, eigenvalues: NDArray[np.float64]) -> NDArray[np.float64]:
        """How much each column counts, at most 1."""
        if self.name == "flat" or not len(eigenvalues):
            return np.ones_like(eigenvalues)
        if self.name == "diffused":
            heat: NDArray[np.float64] = np.exp(-self.diffusion * (eigenvalues - eigenvalues.min()))
            return heat
        sizes = np.abs(eigenvalues - self.centre)
        sizes = np.sqrt(sizes) if self.root else sizes
        shares: NDArray[np.float64] = sizes / (sizes.max() or 1.0)
        return shares


@dataclass(frozen=True)
class TrainSpec:
    """Local training: full-batch steps of one optimiser.

    Parameters
    ----------
    epochs : int (default: 1)
        Steps a call.
    optimizer : "adam" | "sgd" (default: "adam")
        Adam with the usual moments, or plain gradient descent.
    learning_rate : float (default: 0.01)
        Above 0.
    weight_decay : float (default: 5e-4)
        Added to the gradient as a multiple of the parameters.
    """

    epochs: int = 1
    optimizer: OptimizerName = "adam"
    learning_rate: float = 0.01
    weight_decay: float = 5e-4

    def __post_init__(self) -> None:
        _check_count("The number of epochs", self.epochs, 1)
        _check_choice("The optimizer", self.optimizer, get_args(OptimizerName))
        _check_range("The learning rate", self.learning_rate, 1e-30, math.inf, "above 0")
        _check_range("The weight decay", self.weight_decay, 0.0, math.inf, "of 0 or more")


def parse_names(text: str, choices: Sequence[str], setting: str) -> tuple[str, ...]:
    """Names from a text such as ``"sage,mlp"``, each one of the choices and there once."""
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    wrong = [name for name in names if name not in choices or names.count(name) > 1]
    if wrong:
        raise ConfigError(
            f"{setting} = '{text}' names '{wrong[0]}' twice or is no list of "
            f"{', '.join(choices)}: try {setting} = '{','.join(choices)}'"
        )
    return names


def parse_widths(text: str, setting: str = "hidden") -> tuple[int, ...]:
    """Layer widths from a text such as ``"128,64"``; empty means no hidden layer."""
    try:
        widths = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        widths = (0,)
    if any(not 1 <= width <= 65_536 for width in widths):
        raise ConfigError(
            f"{setting} = '{text}' is not a list of layer widths from 1 to 65536: "
            f"try {setting} = '64'"
        )
    return widths
