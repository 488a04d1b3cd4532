"""Knobs of the models and of their training."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, cast, get_args

from fedlap_app.errors import ConfigError
from fedlap_app.knobs import Options, knob
from fedlap_app.models.guesses import GuessSpec, Labels
from fedlap_app.models.specs import (
    FEATURE_BRANCHES,
    FUSIONS,
    PORTFOLIO,
    SMOOTHERS,
    STRUCTURE_BRANCHES,
    Activation,
    Kind,
    ModelSpec,
    OptimizerName,
    Reading,
    TrainSpec,
    parse_names,
    parse_widths,
)

STRATEGIES = (
    "fedavg", "fedprox", "fedavgm", "fedadam", "fedadagrad", "fedyogi", "fedmedian",
    "fedtrimmedavg",
)  # fmt: skip
STANDARDISE = ("together", "alone", "none")
METRICS = ("accuracy", "macro-f1", "roc-auc", "average-precision")
CURVES = METRICS[2:]
"""Metrics that need histograms."""
SCORE_BINS = 64
_NORMALISED = ("sym", "rw", "regularised")
COLUMN_WEIGHTS = ("none", "eigenvalue", "root", "diffusion")
SINGLE = (*get_args(Kind), "none")
_WITH_STEP_SIZE = ("fedavgm", "fedadam", "fedadagrad", "fedyogi")


@dataclass(frozen=True)
class ModelOptions(Options):
    """The network that reads features and local edges."""

    title: ClassVar[str] = "Feature model f"

    model: str = knob(
        PORTFOLIO, "feature model; portfolio: several branches, which validation weighs",
        choices=(PORTFOLIO, *SINGLE),
    )  # fmt: skip
    branches: str = knob(
        "sage,decoupled,mlp", "feature models of the portfolio",
        more=f"A list of {', '.join(FEATURE_BRANCHES)}; empty: the structure alone.",
        only=("model", (PORTFOLIO,)),
    )  # fmt: skip
    hidden: str = knob("32", "widths of the hidden layers, for example '64' or '128,64'")
    hops: int = knob(
        2, "propagation steps of the decoupled model", low=0, high=64,
        only=("model", ("decoupled", PORTFOLIO)), advanced=True,
    )  # fmt: skip
    relay: bool = knob(
        True, "propagate over foreign nodes, which say the mean of own neighbours", advanced=True
    )
    dropout: float = knob(0.6, "share of activations dropped in training", low=0.0, high=0.99)
    input_dropout: float = knob(
        0.5, "share of input features dropped in training", low=0.0, high=0.99, advanced=True
    )
    standardise: str = knob(
        "together",
        "mean and deviation of number columns: those of all organisations, the own ones, or none",
        more="Columns that are 0 or 1, and bags of words, are left alone, and "
        "where no organisation has another one nothing is exchanged. `together` sums moments of "
        "the columns sealed before training, over at least three organisations; two that are not "
        "simulated, and methods without exchange, take their own. Categories need `together`.",
        choices=STANDARDISE,
    )
    linear_head: bool = knob(
        False, "end with a layer that does not propagate, straight after the one before",
        advanced=True,
    )  # fmt: skip
    input_norm: bool = knob(True, "normalise the features of each node (LayerNorm)", advanced=True)
    input_gain: bool = knob(
        False, "learn a gain and a shift of each feature, besides the first layer", advanced=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_widths(self.hidden)
        parse_names(self.branches, tuple(FEATURE_BRANCHES), "branches")

    @property
    def has_portfolio(self) -> bool:
        """Whether several branches are trained together."""
        return self.model == PORTFOLIO

    @property
    def has_features(self) -> bool:
        """Whether there is any feature model."""
        return bool(self.branches.strip(", ")) if self.has_portfolio else self.model != "none"

    def branch_specs(self, num_features: int, num_classes: int) -> dict[str, ModelSpec]:
        """The feature models of a portfolio for a schema, by name."""
        spec = self.model_spec(num_features, num_classes)
        found = {}
        for name in parse_names(self.branches, tuple(FEATURE_BRANCHES), "branches"):
            kind, hops = FEATURE_BRANCHES[name]
            found[name] = replace(spec, kind=kind, hops=self.hops if hops is None else hops)
        return found

    def model_spec(self, num_features: int, num_classes: int) -> ModelSpec:
        """The feature model for a schema; without a single one, what the tensors are made for."""
        several = self.model in ("none", PORTFOLIO)
        return ModelSpec(
            kind="decoupled" if several else cast(Kind, self.model),
            num_features=num_features,
            num_classes=num_classes,
            hidden=parse_widths(self.hidden),
            hops=self.hops,
            dropout=self.dropout,
            input_dropout=self.input_dropout,
            input_norm=self.input_norm,
            relay=self.relay,
            input_gain=self.input_gain,
            dense="last" if self.linear_head else "none",
        )


@dataclass(frozen=True)
class TrainingOptions(Options):
    """What an organisation does in a round, and how many there are."""

    title: ClassVar[str] = "Training"

    rounds: int = knob(34, "training rounds", low=1, high=100_000)
    local_epochs: int = knob(3, "epochs per round at each organisation", low=1, high=10_000)
    patience: int = knob(
        10, "rounds without a better validation score before training ends; 0: never", low=0
    )
    metric: str = knob("accuracy", "the score that chooses rounds and is reported", choices=METRICS)
    class_weights: str = knob(
        "none", "weights of the classes in the loss; balanced: rare ones weigh as much as frequent",
        choices=("none", "balanced"),
    )  # fmt: skip
    kept_round: str = knob(
        "best", "the round whose model is kept: the best validation score, or the last",
        choices=("best", "last"), advanced=True,
    )  # fmt: skip
    softmax: str = knob(
        "once", "twice: the loss takes probabilities for logits, as the FedLap paper's code does",
        choices=("once", "twice"), advanced=True,
    )  # fmt: skip
    optimizer: str = knob("adam", "local optimiser", choices=get_args(OptimizerName))
    learning_rate: float = knob(0.01, "step size of the optimiser", low=1e-8, high=100.0)
    weight_decay: float = knob(0.0005, "L2 penalty of the optimiser", low=0.0, high=10.0)
    optimizer_state: str = knob(
        "reset", "moments of the local optimiser at a new round", choices=("reset", "keep"),
        advanced=True,
    )  # fmt: skip
    device: str = knob(
        "auto",
        "where a client computes",
        more="`auto` is the GPU where CUDA is usable, else the CPU. Every client looks on its own "
        "machine, so organisations may differ; `flwr run .` gives a simulated client a GPU only "
        "with `client-resources-num-gpus` in its federation's configuration. Runs are alike to "
        "the last bit on the same kind of device only.",
        choices=("auto", "cpu", "cuda"),
        private=True,
    )

    @property
    def score_bins(self) -> int:
        """Resolution of the histograms from which areas under curves follow; 0: none."""
        return SCORE_BINS if self.metric in CURVES else 0

    @property
    def train_spec(self) -> TrainSpec:
        """What an organisation does in one round by itself."""
        return TrainSpec(
            epochs=self.local_epochs,
            optimizer=cast(OptimizerName, self.optimizer),
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
        )

    @property
    def server_step_spec(self) -> TrainSpec:
        """What an organisation does in a round whose step the server takes.

        The mean of models that moved by their gradients moves by the mean gradient.
        """
        return TrainSpec(
            epochs=1, optimizer="sgd", learning_rate=1.0, weight_decay=self.weight_decay
        )


@dataclass(frozen=True)
class AveragingOptions(Options):
    """How the server joins what organisations send."""

    title: ClassVar[str] = "Averaging"

    strategy: str = knob("fedavg", "Flower's strategy on the server", choices=STRATEGIES)
    server_learning_rate: float = knob(
        0.0, "step size of the strategies fedavgm, fedadam, fedadagrad, fedyogi; 0: Flower's",
        more="Flower takes 1 for `fedavgm`, 0.01 for `fedyogi` and 0.1 for the others.",
        low=0.0, high=100.0, only=("strategy", _WITH_STEP_SIZE), advanced=True,
    )  # fmt: skip
    server_momentum: float = knob(
        0.0, "momentum of the strategy fedavgm", low=0.0, high=0.999,
        only=("strategy", ("fedavgm",)), advanced=True,
    )  # fmt: skip
    proximal_mu: float = knob(
        0.1, "pull of the strategy fedprox to the global model", low=0.0,
        only=("strategy", ("fedprox",)), advanced=True,
    )  # fmt: skip
    weight_by: str = knob(
        "labelled", "what an organisation's model is weighted by", choices=("labelled", "nodes"),
        advanced=True,
    )  # fmt: skip
    largest_weight: int = knob(
        0, "nodes that an organisation's model is weighted by at most; 0: no limit",
        more="A sum of weights above that of so many organisations is refused, so that none makes "
        "those of the others vanish by a weight of its choice. With 1 all count alike.",
        low=0, high=1_000_000_000, advanced=True,
    )  # fmt: skip
    optimizer_at: str = knob(
        "client",
        "who takes the optimiser's steps; server: with averaged gradients",
        choices=("client", "server"),
        advanced=True,
    )
    start_model: str = knob(
        "", "run folder whose model training goes on from; empty: a fresh model",
        more="Sealed training takes the number at the end of its name, and every organisation the "
        "model that it kept of that run.",
        folder=True, advanced=True,
    )  # fmt: skip
    min_clients: int = knob(
        0, "organisations without which no training round goes on; 0: all", low=0, high=10_000,
        private=True, advanced=True,
    )  # fmt: skip
    straggler_timeout: float = knob(
        60.0, "seconds after which a training round with min-clients replies goes on", low=0.0,
        private=True, advanced=True,
    )  # fmt: skip

    @property
    def start_run(self) -> int:
        """Number of the run whose model training goes on from, as its folder is called; 0: none."""
        number = Path(self.start_model).name.rpartition("-")[2]
        if self.start_model and not (number.isdecimal() and number.isascii()):
            raise ConfigError(
                f"start-model = '{self.start_model}' does not end with the number of a run: name "
                "a run folder as it was first called"
            )
        return int(number or 0)

    @property
    def pull(self) -> float:
        """Strength of the pull to the global model in a client's training."""
        return self.proximal_mu if self.strategy == "fedprox" else 0.0


@dataclass(frozen=True)
class StructureOptions(Options):
    """The network that reads a node's place in the whole graph."""

    title: ClassVar[str] = "Structure model g"

    structure_width: int = knob(64, "structure features of a node", low=1, high=65_536)
    structure_hidden: str = knob("", "hidden layers of the structure model", advanced=True)
    structure_norm: bool = knob(True, "normalise the structure features", advanced=True)
    branch_loss: float = knob(
        1.0, "weight of the loss of each model alone, f and g", low=0.0, high=1_000.0,
        only=("model", SINGLE), advanced=True,
    )  # fmt: skip
    fusion: str = knob(
        "validation",
        "logits of f and g: their sum, or f with a weight that validation chooses",
        choices=FUSIONS,
        only=("model", SINGLE),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_widths(self.structure_hidden, "structure-hidden")

    @property
    def weighted(self) -> bool:
        """Whether validation chooses a weight of a single feature model."""
        return self.fusion == "validation"


@dataclass(frozen=True)
class SpectralModelOptions(Options):
    """How the structure model reads a spectral basis."""

    title: ClassVar[str] = "Structure model on a basis"

    programs: str = knob(
        "krylov",
        "sealed sums before training; with neighbour-sums a model c of them stands beside f and g",
        choices=("krylov", "krylov,neighbour-sums"),
    )
    readings: str = knob(
        "diffused,flat,ends", "structure models of the portfolio",
        more="A list of `diffused` (all columns of the basis, fading out from the smooth end by "
        "`diffusion`), `flat` (the first half of them, all alike), both with `smoothing`, and "
        "`ends` (all of them, by the size of the adjacency's eigenvalue); empty: the features "
        "alone.",
        only=("model", (PORTFOLIO,)),
    )  # fmt: skip
    activation: str = knob("relu", "applied to U W", choices=get_args(Activation), advanced=True)
    column_weights: str = knob(
        "diffusion", "weights of the basis' columns", choices=COLUMN_WEIGHTS, only=("model", SINGLE)
    )
    diffusion: float = knob(
        5.0, "t of the column weights diffusion, exp(-t eigenvalue)", low=0.0, high=10_000.0,
        only=("column-weights", ("diffusion",)),
    )  # fmt: skip
    smoothing: float = knob(1.0, "lambda of the Rayleigh quotient of W", low=0.0)
    unit_norm: bool = knob(False, "divide W by its norm", only=("model", SINGLE), advanced=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_names(self.readings, STRUCTURE_BRANCHES, "readings")

    def basis_readings(self, operator: str) -> list[Reading]:
        """How the structure models of a portfolio read the basis of an operator."""
        centre = 1.0 if operator in _NORMALISED else 0.0
        smoothing = {"diffused": self.smoothing, "flat": self.smoothing}
        return [
            Reading(name, self.diffusion, smoothing.get(name, 0.0), centre, operator == "directed")
            for name in parse_names(self.readings, STRUCTURE_BRANCHES, "readings")
        ]


@dataclass(frozen=True)
class RowOptions(Options):
    """How rows of structure features are learned."""

    title: ClassVar[str] = "Structure model on learned rows"

    row_smoothing: float = knob(1.0, "lambda of the learned rows' regulariser", low=0.0)
    row_operator: str = knob("sym", "matrix that smooths learned rows", choices=SMOOTHERS)


@dataclass(frozen=True)
class WalkOptions(Options):
    """Which walks over the whole graph weigh the learned rows."""

    title: ClassVar[str] = "Walks"

    walk_steps: int = knob(10, "steps of the walks", low=1, high=64, advanced=True)
    walk_entries: int = knob(
        30, "largest weights that every node keeps after each step; 0: all", low=0, advanced=True
    )
    read_walks: bool = knob(
        False, "simulations: read weights of walks off the whole graph, not out of sealed sums",
        advanced=True,
    )  # fmt: skip


@dataclass(frozen=True)
class RawOptions(Options):
    """What no organisation would hand out, for simulations of methods that need it."""

    title: ClassVar[str] = "Raw features of others"

    raw_ball: bool = knob(
        False, "simulations: hand out raw features and edges within neighbour-hops, not sums",
        advanced=True,
    )  # fmt: skip
    ideal: bool = knob(
        False, "simulations: hand out raw features of foreign neighbours", advanced=True
    )


@dataclass(frozen=True)
class GeneratorOptions(Options):
    """How missing neighbours are generated."""

    title: ClassVar[str] = "Generated neighbours"

    generator_width: int = knob(
        64, "hidden width of the generator", low=1, high=65_536, advanced=True
    )
    generated_rows: int = knob(
        16, "generated rows that each organisation has judged by the others in a round",
        low=1, high=4096, advanced=True,
    )  # fmt: skip
    generator_loss: float = knob(
        1.0, "weight of the generator's loss", low=0.0, high=1000.0, advanced=True
    )


@dataclass(frozen=True)
class LikenessOptions(Options):
    """How a method that makes a mean for each organisation finds those like it."""

    title: ClassVar[str] = "Averages of one's own"

    similarity_scale: float = knob(
        3.0, "how much more a model like one's own weighs; 0: all alike", low=0.0, high=1000.0,
        advanced=True,
    )  # fmt: skip
    proxy_blocks: int = knob(
        5, "blocks of 100 nodes of the random graph that models are compared on", low=1, high=1000,
        advanced=True,
    )  # fmt: skip
    similarity_threshold: float = knob(
        0.5, "cosine of moments from which on models are averaged", low=-1.0, high=1.0,
        advanced=True,
    )  # fmt: skip


@dataclass(frozen=True)
class SelfTrainingOptions(Options):
    """Training on own predictions."""

    title: ClassVar[str] = "Self-training"

    self_training: int = knob(
        1, "stages in which each organisation also trains on own predictions", low=0, high=20
    )
    self_training_labels: str = knob(
        "hard", "predictions as labels: the class or probabilities", choices=get_args(Labels),
        advanced=True,
    )  # fmt: skip
    self_training_confidence: float = knob(
        0.8, "least probability of a prediction that is trained on", low=0.0, high=1.0,
        advanced=True,
    )  # fmt: skip
    self_training_weight: float = knob(
        0.3, "weight of such a prediction, where a label has 1", low=0.0, high=1_000.0,
        advanced=True,
    )  # fmt: skip

    @property
    def guess_spec(self) -> GuessSpec:
        """Which predictions an organisation trains on in later stages."""
        return GuessSpec(
            labels=cast(Labels, self.self_training_labels),
            confidence=self.self_training_confidence,
            weight=self.self_training_weight,
        )
