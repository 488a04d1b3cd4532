"""Every setting of a run, with its default and its limits; `pyproject.toml` holds the same list."""

import hashlib
import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from fedlap_app import knobs
from fedlap_app.errors import ConfigError
from fedlap_app.graphs.federation import DataSpec
from fedlap_app.knobs import Value, knob
from fedlap_app.methods.registry import BUILT_IN, method_class, names
from fedlap_app.models.guesses import GuessSpec, Labels
from fedlap_app.models.specs import (
    FUSIONS,
    SMOOTHERS,
    Activation,
    Kind,
    ModelSpec,
    OptimizerName,
    StructureSpec,
    TrainSpec,
    parse_widths,
)
from fedlap_app.privacy.policy import BACKENDS
from fedlap_app.spectral.neighbourhood import SCALINGS
from fedlap_app.spectral.operators import KINDS
from fedlap_app.spectral.ritz import KEEP
from fedlap_app.spectral.solvers import SOLVERS
from fedlap_app.sums.choice import PROFILES, full_profile, require_profile
from fedlap_app.sums.job.spec import LAYOUTS, OfflineSpec
from fedlap_app.sums.program import Program
from fedlap_app.sums.programs import Krylov, NeighbourSums, RowNames, find_program
from fedlap_app.sums.programs.neighbour_sums import MOST_HOPS

STRATEGIES = (
    "fedavg", "fedprox", "fedavgm", "fedadam", "fedadagrad", "fedyogi", "fedmedian",
    "fedtrimmedavg",
)  # fmt: skip
_PARSED: dict[Hashable, "Settings"] = {}
DATASETS = (
    "banks", "digits", "cora", "citeseer", "pubmed", "chameleon", "photo", "ogbn-arxiv",
)  # fmt: skip

_PRIVATE = frozenset(
    {
        "data", "run-dir", "store-dir", "device", "encryption-processes", "join-timeout",
        "step-timeout", "straggler-timeout", "min-clients", "message-mb", "resume",
        "refresh-basis",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """All settings of one run, validated."""

    method: str = knob("fedlap+", "what is trained together", choices=BUILT_IN, open=True)
    seed: int = knob(
        0, "split, partition, initialisation and dropout follow from it", low=0, high=2**63 - 1
    )

    dataset: str = knob("banks", "benchmark data set", choices=DATASETS)
    data: str = knob("", "folder of organisation folders, in place of a data set")
    clients: int = knob(
        0, "organisations; 0 means as many as the simulation has nodes", low=0, high=10_000
    )
    partition: str = knob(
        "auto",
        "who holds which node; auto: natural owners, else random",
        choices=("auto", "owner", "random", "louvain", "kmeans"),
    )
    directed: bool = knob(False, "keep the direction of edges")
    train_ratio: float = knob(0.1, "share of labelled nodes for training", low=0.0, high=1.0)
    val_ratio: float = knob(0.1, "share of labelled nodes for validation", low=0.0, high=1.0)
    test_ratio: float = knob(0.8, "share of labelled nodes for the test", low=0.0, high=1.0)
    accounts: int = knob(2000, "accounts of the data set banks", low=200, high=1_000_000)
    neighbours: int = knob(8, "nearest neighbours of the data set digits", low=1, high=100)

    model: str = knob("decoupled", "feature model", choices=("sage", "gcn", "decoupled", "none"))
    hidden: str = knob("64", "widths of the hidden layers, for example '64' or '128,64'")
    hops: int = knob(2, "propagation steps of the decoupled model", low=0, high=64)
    relay: bool = knob(True, "propagate over foreign nodes, which say the mean of own neighbours")
    dropout: float = knob(0.7, "share of activations dropped in training", low=0.0, high=0.99)
    input_dropout: float = knob(
        0.5, "share of input features dropped in training", low=0.0, high=0.99
    )
    input_norm: bool = knob(True, "normalise the features of each node (LayerNorm)")

    rounds: int = knob(60, "training rounds", low=1, high=100_000)
    local_epochs: int = knob(3, "epochs per round at each organisation", low=1, high=10_000)
    patience: int = knob(
        15, "rounds without a better validation accuracy before training ends; 0: never", low=0
    )
    strategy: str = knob("fedavg", "Flower's strategy on the server", choices=STRATEGIES)
    server_learning_rate: float = knob(
        0.0, "step size of the strategies fedavgm, fedadam, fedadagrad, fedyogi; 0: Flower's",
        low=0.0, high=100.0,
    )  # fmt: skip
    server_momentum: float = knob(0.0, "momentum of the strategy fedavgm", low=0.0, high=0.999)
    proximal_mu: float = knob(0.1, "pull of the strategy fedprox to the global model", low=0.0)
    weight_by: str = knob(
        "labelled", "what an organisation's model is weighted by", choices=("labelled", "nodes")
    )
    optimizer: str = knob("adam", "local optimiser", choices=("adam", "sgd"))
    learning_rate: float = knob(0.01, "step size of the optimiser", low=1e-8, high=100.0)
    weight_decay: float = knob(0.0005, "L2 penalty of the optimiser", low=0.0, high=10.0)
    optimizer_state: str = knob(
        "reset", "moments of the local optimiser at a new round", choices=("reset", "keep")
    )
    optimizer_at: str = knob(
        "client",
        "who takes the optimiser's steps; server: with averaged gradients (fedlap+, fedavg)",
        choices=("client", "server"),
    )
    device: str = knob("auto", "where a client computes", choices=("auto", "cpu", "cuda"))

    structure_width: int = knob(
        256, "structure features of a node (fedlap+, fedlap)", low=1, high=65_536
    )
    structure_hidden: str = knob("", "hidden layers of the structure model (fedlap+, fedlap)")
    activation: str = knob("relu", "applied to U W (fedlap+)", choices=("relu", "tanh", "none"))
    structure_norm: bool = knob(True, "normalise the structure features (fedlap+, fedlap)")
    column_weights: str = knob(
        "diffusion",
        "weights of the basis' columns (fedlap+)",
        choices=("none", "eigenvalue", "root", "diffusion"),
    )
    diffusion: float = knob(
        5.0, "t of the column weights diffusion, exp(-t eigenvalue)", low=0.0, high=10_000.0
    )
    smoothing: float = knob(1.0, "lambda of the Rayleigh quotient of W (fedlap+)", low=0.0)
    row_smoothing: float = knob(1.0, "lambda of the learned rows' regulariser (fedlap)", low=0.0)
    row_operator: str = knob("sym", "matrix that smooths learned rows (fedlap)", choices=SMOOTHERS)
    branch_loss: float = knob(
        1.0,
        "weight of the loss of each model alone, f and g (fedlap+, fedlap)",
        low=0.0,
        high=1_000.0,
    )
    fusion: str = knob(
        "validation",
        "logits of f and g: their sum, or f with a weight that validation chooses",
        choices=FUSIONS,
    )
    unit_norm: bool = knob(False, "divide W by its norm (fedlap+)")

    self_training: int = knob(
        1, "stages in which each organisation also trains on own predictions", low=0, high=20
    )
    self_training_labels: str = knob(
        "hard", "predictions as labels: the class or probabilities", choices=("hard", "soft")
    )
    self_training_confidence: float = knob(
        0.8, "least probability of a prediction that is trained on", low=0.0, high=1.0
    )
    self_training_weight: float = knob(
        0.3, "weight of such a prediction, where a label has 1", low=0.0, high=1_000.0
    )

    spectral: bool = knob(False, "compute the spectral basis also for methods that ignore it")
    operator: str = knob("regularised", "matrix whose eigenvectors are computed", choices=KINDS)
    self_loops: bool = knob(True, "add a loop at each node (operators sym and rw)")
    regulariser: float = knob(0.0, "t of the operator regularised; 0: the mean degree", low=0.0)
    solver: str = knob("block-lanczos", "how the basis is computed", choices=tuple(SOLVERS))
    vectors: int = knob(100, "vectors that are exchanged", low=1, high=10_000)
    rank: int = knob(0, "eigenvectors that are kept; 0: as many as vectors", low=0, high=10_000)
    keep: str = knob("smallest", "which eigenvalues are kept", choices=KEEP)
    block: int = knob(10, "vectors that are exchanged at once", low=1, high=1_000)
    neighbour_hops: int = knob(
        1, "hops of sums over neighbours (programs with neighbour-sums)", low=1, high=MOST_HOPS
    )
    neighbour_scaling: str = knob(
        "sym", "how each of these hops is scaled; mean: by degrees", choices=SCALINGS
    )
    backend: str = knob("ckks", "how sums are hidden from the server", choices=BACKENDS)
    profile: str = knob(
        "auto",
        "parameters of the back end; auto: what the operator needs",
        choices=("auto", *PROFILES),
    )
    encryption_processes: int = knob(
        1, "processes of a client that encrypt; more pay for large graphs", low=1, high=256
    )
    insecure_no_pads: bool = knob(False, "leave out the pads inside of ciphertexts (ckks)")
    hide_topology: bool = knob(True, "hide from the server who shares edges with whom")
    layout: str = knob("full", "nodes that get a slot in block sums", choices=LAYOUTS)
    resume: bool = knob(True, "go on with an unfinished basis of the same settings and members")
    refresh_basis: bool = knob(False, "compute the basis again even if all hold a finished one")
    trust_on_first_use: bool = knob(False, "accept organisations without a pinned fingerprint")
    message_mb: float = knob(32.0, "larger messages are sent in parts", low=0.001, high=512.0)

    join_timeout: float = knob(120.0, "seconds to wait for the organisations", low=1.0)
    step_timeout: float = knob(600.0, "seconds to wait for the replies of one step", low=1.0)
    min_clients: int = knob(
        0, "organisations without which no training round goes on; 0: all", low=0, high=10_000
    )
    straggler_timeout: float = knob(
        60.0, "seconds after which a training round with min-clients replies goes on", low=0.0
    )
    run_dir: str = knob("", "folder for run folders; empty: ~/.fedlap/runs")
    store_dir: str = knob("", "folder for simulated clients' stores; empty: ~/.fedlap/stores")

    options: tuple[tuple[str, Value], ...] = ()
    """Knobs of a method that does not come with the app, by their keys."""

    def __post_init__(self) -> None:
        total = self.train_ratio + self.val_ratio + self.test_ratio
        if total > 1 + 1e-9:
            raise ConfigError(
                f"train-ratio + val-ratio + test-ratio = {total:g}: they must add up to at most 1, "
                f"for example with test-ratio = {max(0.0, 1 - self.train_ratio - self.val_ratio):g}"
            )
        if self.train_ratio == 0.0:
            raise ConfigError("train-ratio = 0 leaves nothing to train on: try train-ratio = 0.1")
        if self.rank > self.vectors:
            raise ConfigError(
                f"rank = {self.rank} is more than vectors = {self.vectors}: no more vectors can be "
                f"kept than are exchanged, try rank = {self.vectors}"
            )
        method = method_class(self.method)
        if self.model == "none" and not method.structural:
            others = " and ".join(each for each in names() if method_class(each).structural)
            raise ConfigError(
                f"model = 'none' leaves the method {self.method} nothing to train: only {others} "
                "have a structure model; try model = 'sage'"
            )
        if self.clients and self.min_clients > self.clients:
            raise ConfigError(
                f"min-clients = {self.min_clients} is more than clients = {self.clients}: try "
                f"min-clients = {self.clients}"
            )
        method.check(self)
        if self.optimizer_at == "server":
            self._check_server_steps()
        require_profile(self.backend, self.profile, no_pads=self.insecure_no_pads)
        parse_widths(self.hidden)
        parse_widths(self.structure_hidden, "structure-hidden")

    def _check_server_steps(self) -> None:
        for key, value, needed in (
            ("local-epochs", self.local_epochs, 1),
            ("optimizer", self.optimizer, "adam"),
            ("strategy", self.strategy, "fedavg"),
        ):
            if value != needed:
                raise ConfigError(
                    f"{key} = {value!r} does not go with optimizer-at = 'server', where a round is "
                    f"one step of Adam with averaged gradients: try {key} = {needed!r}"
                )

    @property
    def pull(self) -> float:
        """Strength of the pull to the global model in a client's training."""
        return self.proximal_mu if self.strategy == "fedprox" else 0.0

    @property
    def needs_basis(self) -> bool:
        """Whether the offline phase runs before training."""
        return Krylov.name in self.programs

    @property
    def programs(self) -> tuple[str, ...]:
        """Sealed sums before the first round."""
        own = method_class(self.method).programs
        return (*own, Krylov.name) if self.spectral and Krylov.name not in own else own

    @property
    def weighted(self) -> bool:
        """Whether validation chooses a weight of the feature model."""
        return self.fusion == "validation"

    @property
    def kept(self) -> int:
        """Columns of the basis."""
        return self.rank or self.vectors

    @property
    def data_spec(self) -> DataSpec:
        """What identifies the benchmark data of the run."""
        return DataSpec(
            dataset=self.dataset,
            clients=self.clients,
            partition=self.partition,
            seed=self.seed,
            directed=self.directed,
            train_ratio=self.train_ratio,
            val_ratio=self.val_ratio,
            test_ratio=self.test_ratio,
            accounts=self.accounts,
            neighbours=self.neighbours,
        )

    @property
    def possible_programs(self) -> tuple[str, ...]:
        """Programs of sealed sums that a run of these settings may ask for; its own one first."""
        first = RowNames.name if RowNames.name in self.programs else Krylov.name
        return tuple(dict.fromkeys((first, *self.programs, NeighbourSums.name)))

    @property
    def krylov(self) -> Krylov:
        """The iteration that computes a basis."""
        return Krylov.from_settings(self)

    @property
    def offline_spec(self) -> OfflineSpec:
        """What the members agree on for the method's own program."""
        return self.spec_of(self.possible_programs[0])

    def spec_of(self, program: str | Program) -> OfflineSpec:
        """What the members of the offline phase agree on for a program."""
        found = find_program(program, self)
        if found.name not in self.possible_programs:
            what = "computes no spectral basis" if found.solution else f"runs no {found.name}"
            raise ConfigError(f"method = '{self.method}' {what}: try method = 'fedlap+'")
        return OfflineSpec(
            program=found,
            backend=self.backend,
            layout=self.layout,
            hide_topology=self.hide_topology,
            directed=self.directed,
            profile=full_profile(
                self.backend,
                self.profile,
                no_pads=self.insecure_no_pads,
                large_sums=found.large_sums,
            ),
        )

    @property
    def server_step_spec(self) -> TrainSpec:
        """What an organisation does in a round whose step the server takes.

        The mean of models that moved by their gradients moves by the mean gradient.
        """
        return TrainSpec(
            epochs=1, optimizer="sgd", learning_rate=1.0, weight_decay=self.weight_decay
        )

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
    def guess_spec(self) -> GuessSpec:
        """Which predictions an organisation trains on in later stages."""
        return GuessSpec(
            labels=cast(Labels, self.self_training_labels),
            confidence=self.self_training_confidence,
            weight=self.self_training_weight,
        )

    def model_spec(self, num_features: int, num_classes: int) -> ModelSpec:
        """The feature model for a schema; without one, what the tensors are made for."""
        return ModelSpec(
            kind="decoupled" if self.model == "none" else cast(Kind, self.model),
            num_features=num_features,
            num_classes=num_classes,
            hidden=parse_widths(self.hidden),
            hops=self.hops,
            dropout=self.dropout,
            input_dropout=self.input_dropout,
            input_norm=self.input_norm,
            relay=self.relay,
        )

    def structure_spec(self, num_classes: int) -> StructureSpec:
        """The structure model of fedlap+ and fedlap."""
        return StructureSpec(
            rank=self.kept,
            width=self.structure_width,
            num_classes=num_classes,
            hidden=parse_widths(self.structure_hidden),
            dropout=self.dropout,
            activation=cast(Activation, self.activation),
            norm=self.structure_norm,
            unit_norm=self.unit_norm,
        )

    def with_clients(self, clients: int) -> "Settings":
        """The same settings for a known number of organisations."""
        return replace(self, clients=clients)

    def to_config(self) -> dict[str, Value]:
        """Kebab-case keys and values, as Flower's run configuration has them."""
        values = {knobs.key_of(e.name): getattr(self, e.name) for e in knobs.entries_of(Settings)}
        return {**values, **dict(self.options)}

    def digest(self) -> str:
        """Hash by which organisations compare their settings.

        What changes nothing that leaves one is left out: where files lie, how long the server
        waits, whether it goes on with what is there.
        """
        shared = {key: value for key, value in self.to_config().items() if key not in _PRIVATE}
        return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()


def parse_settings(values: Mapping[str, object]) -> Settings:
    """Settings from kebab-case keys; a key that is absent has its default."""
    # A client may be asked thousands of times in one process; the types tell 1 from True and 1.0.
    key = (*values.items(), *map(type, values.values()))
    try:
        found = _PARSED.get(key)
    except TypeError:  # a list, for example, which no setting is
        return _build(values)
    if found is None:
        if len(_PARSED) >= 64:
            _PARSED.clear()
        found = _PARSED[key] = _build(values)
    return found


def _build(values: Mapping[str, object]) -> Settings:
    """Settings, and the knobs of a method from outside beside them."""
    name = values.get("method", "")
    if not isinstance(name, str) or not name or name in BUILT_IN:
        return knobs.build(Settings, values)
    kind = method_class(name).Options
    own = {knobs.key_of(entry.name): entry for entry in knobs.entries_of(kind)}
    given = {key: value for key, value in values.items() if key in own}
    options: object = knobs.build(kind, given)
    built = knobs.build(Settings, {k: v for k, v in values.items() if k not in own})
    return replace(built, options=tuple((k, getattr(options, e.name)) for k, e in own.items()))


def setting_keys() -> tuple[str, ...]:
    """All keys, in the order of their declaration."""
    return tuple(knobs.key_of(entry.name) for entry in knobs.entries_of(Settings))
