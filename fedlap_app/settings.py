"""The settings of a run, put together from the knobs that the rooms own."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar, cast

from fedlap_app import knobs
from fedlap_app.errors import ConfigError
from fedlap_app.graphs.federation import DataSpec
from fedlap_app.graphs.options import DataOptions
from fedlap_app.knobs import Options, Value, knob
from fedlap_app.methods.apart import require_apart
from fedlap_app.methods.registry import BUILT_IN, method_class, names
from fedlap_app.models.options import (
    AveragingOptions,
    GeneratorOptions,
    LikenessOptions,
    ModelOptions,
    RawOptions,
    RowOptions,
    SelfTrainingOptions,
    SpectralModelOptions,
    StructureOptions,
    TrainingOptions,
    WalkOptions,
)
from fedlap_app.models.specs import Activation, StructureSpec, parse_widths
from fedlap_app.spectral.options import BasisOptions
from fedlap_app.sums.choice import full_profile
from fedlap_app.sums.job.spec import OfflineSpec
from fedlap_app.sums.options import NeighbourOptions, SealedTrainingOptions, SumOptions
from fedlap_app.sums.program import Program
from fedlap_app.sums.programs import (
    FeatureMoments,
    Krylov,
    NeighbourSums,
    RowNames,
    Training,
    find_program,
)

T = TypeVar("T")


@dataclass(frozen=True)
class RunOptions(Options):
    """What is done, and with which random draws."""

    title: ClassVar[str] = "Run"

    method: str = knob("fedlap+", "what is trained together", choices=BUILT_IN, open=True)
    seed: int = knob(
        0, "split, partition, initialisation and dropout follow from it", low=0, high=2**63 - 1
    )


@dataclass(frozen=True)
class OperationOptions(Options):
    """How long to wait, and where files lie."""

    title: ClassVar[str] = "Operation"

    join_timeout: float = knob(
        120.0, "seconds to wait for the organisations", low=1.0, private=True, advanced=True
    )
    step_timeout: float = knob(
        600.0, "seconds to wait for the replies of one step", low=1.0, private=True, advanced=True
    )
    processes: int = knob(
        0, "processes that the organisations of a run in one place share; same result", low=0,
        more="0 is one, and for the commands `train` and `tune` one for each core of the machine.",
        high=256, private=True, advanced=True,
    )  # fmt: skip
    run_dir: str = knob(
        "", "folder for run folders; empty: ~/.fedlap/runs", folder=True, private=True
    )
    store_dir: str = knob(
        "",
        "folder for simulated clients' stores; empty: ~/.fedlap/stores",
        more="A deployed client keeps its store below its organisation folder, or where the "
        "`store-dir` of its node's configuration says.",
        folder=True,
        private=True,
    )


@dataclass(frozen=True)
class Settings(
    OperationOptions,  # a dataclass begins with the fields of its last base
    SumOptions,
    SealedTrainingOptions,
    NeighbourOptions,
    BasisOptions,
    SelfTrainingOptions,
    GeneratorOptions,
    LikenessOptions,
    WalkOptions,
    RawOptions,
    RowOptions,
    SpectralModelOptions,
    StructureOptions,
    AveragingOptions,
    TrainingOptions,
    ModelOptions,
    DataOptions,
    RunOptions,
):
    """All settings of one run, validated."""

    options: tuple[tuple[str, Value], ...] = ()
    """Knobs of a method that does not come with the app, by their keys."""

    def __post_init__(self) -> None:
        super().__post_init__()
        method = method_class(self.method)
        if not self.has_features and not method.structural:
            others = " and ".join(each for each in names() if method_class(each).structural)
            empty = "branches = ''" if self.has_portfolio else "model = 'none'"
            raise ConfigError(
                f"{empty} leaves the method {self.method} nothing to train: only {others} "
                "have a structure model; try model = 'sage'"
            )
        if self.clients and self.min_clients > self.clients:
            raise ConfigError(
                f"min-clients = {self.min_clients} is more than clients = {self.clients}: try "
                f"min-clients = {self.clients}"
            )
        method.check(self)
        if self.sealed:
            _ = self.start_run  # refuses a name without the number that organisations look for
        if self.optimizer_at == "server":
            self._check_server_steps()
        if self.promise and self.promise.by_example:
            require_apart(method.of(self))

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
    def needs_basis(self) -> bool:
        """Whether the offline phase runs before training."""
        return Krylov.name in self.needed_programs

    @property
    def needed_programs(self) -> tuple[str, ...]:
        """Sealed sums before the first round."""
        own = method_class(self.method).needs(self)
        return (*own, Krylov.name) if self.spectral and Krylov.name not in own else own

    def asked_program(self, named: str) -> str:
        """A program that is named, else the first one before training; empty: there is none."""
        return named or next(iter(self.needed_programs), "")

    @property
    def summed_moments(self) -> bool:
        """Whether organisations may learn the moments of their feature columns together."""
        reads = self.model != "none" or self.class_weights == "balanced"
        return reads and self.standardise == "together"

    @property
    def data_spec(self) -> DataSpec:
        """What identifies the benchmark data of the run."""
        return _picked(DataSpec, self)

    @property
    def possible_programs(self) -> tuple[str, ...]:
        """Programs of sealed sums that a run of these settings may ask for; its own one first."""
        own = self.needed_programs
        basis = () if RowNames.name in own else (Krylov.name,)
        sealed = (Training.name,) if self.sealed else ()
        others = (NeighbourSums.name, FeatureMoments.name, *sealed)
        declared = method_class(self.method).programs
        return tuple(dict.fromkeys((*own, *declared, *basis, *others)))

    @property
    def sealed(self) -> bool:
        """Whether the server sees no update and no score."""
        return self.training_backend != "plain"

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
        values = {key: getattr(self, entry.name) for key, entry in KNOBS.items()}
        return {**values, **dict(self.options)}

    def digest(self) -> str:
        """Hash by which organisations compare their settings.

        What changes nothing that leaves one is left out: where files lie, how long the server
        waits, whether it goes on with what is there.
        """
        private = {key for key, entry in KNOBS.items() if knobs.domain_of(entry).private}
        shared = {key: value for key, value in self.to_config().items() if key not in private}
        return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()


KNOBS = knobs.by_key(Settings)
"""Every knob by its key, in the order of the groups."""
GROUPS = knobs.groups_of(Settings)


def _picked(cls: type[T], settings: Settings, **others: object) -> T:
    """A description whose fields are called as the settings are, and others."""
    wanted: dict[str, Any] = {entry.name: entry for entry in fields(cls)}  # type: ignore[arg-type]
    found = {name: getattr(settings, name) for name in wanted.keys() - others.keys()}
    return cls(**found, **others)


def parse_settings(values: Mapping[str, object]) -> Settings:
    """Settings from kebab-case keys; a key that is absent has its default."""
    name = values.get("method", "")
    if not isinstance(name, str) or not name or name in BUILT_IN:
        return knobs.build(Settings, values)
    own = knobs.by_key(method_class(name).Options)
    given = {key: value for key, value in values.items() if key in own}
    options: object = knobs.build(method_class(name).Options, given)
    built = knobs.build(Settings, {k: v for k, v in values.items() if k not in own})
    return replace(built, options=tuple((k, getattr(options, e.name)) for k, e in own.items()))
