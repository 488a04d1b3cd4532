"""What a method is: its side at an organisation and its side at the server, in one object.

A method's file imports torch inside of the functions that train only: an organisation that joins a
run, or takes part in a program before training, asks its method for facts and needs no torch.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from fedlap_app import knobs
from fedlap_app.graphs.options import DataOptions
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.knobs import Value
from fedlap_app.methods.task import Task
from fedlap_app.models.options import (
    AveragingOptions,
    ModelOptions,
    SelfTrainingOptions,
    TrainingOptions,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from fedlap_app.methods.organisation import Organisation
    from fedlap_app.models.evaluation import Evaluation
    from fedlap_app.models.specs import ModelSpec
    from fedlap_app.models.tensors import GraphTensors
    from fedlap_app.settings import Settings

Parameters = Mapping[str, NDArray[Any]]
Records = Mapping[str, Parameters]
Moments = Mapping[str, NDArray[np.float32]]
WHOLE = "whole-graph"
"""What a method that is a simulation only finds beside the results of its programs: all parts."""
MODEL = "arrays"
"""The record that the server averages; a method may send others beside it."""


class Schema(NamedTuple):
    """What all organisations of a run share: numbers of features and of classes."""

    features: int
    classes: int
    nodes: int = 0
    """Of the whole graph, for methods that count them; else 0."""


class Found(Protocol):
    """What a program before training left at the server."""

    @property
    def job(self) -> str:
        """The job that it ran in."""

    @property
    def told(self) -> Mapping[str, bytes]:
        """What each member told the server at its end."""


@dataclass(frozen=True)
class NoOptions:
    """A method without knobs of its own."""


@dataclass(frozen=True)
class Turn:
    """One round at an organisation.

    Attributes
    ----------
    task, number : Task, int
        Run, stage and number of the round.
    moments : Moments | None
        State of the optimiser to go on with, empty at first; None: a fresh start every round.
    seed : int | None
        What random draws follow from; None: the seed of the run, which the server knows.
    """

    task: Task
    number: int
    moments: Moments | None = None
    seed: int | None = None


@dataclass(frozen=True)
class Update:
    """What an organisation answers in a round, and what stays with it.

    Attributes
    ----------
    records : Records
        What leaves; `MODEL` is averaged.
    weight : int
        What it counts by.
    scores : sequence of Evaluation
        Of the received model, with every weight that it may have.
    moments : Moments
        State of the optimiser at the end, which stays.
    sums : sequence of float
        Numbers about the received model that are added over the organisations, see `Method.weigh`.
    """

    records: Records
    weight: int
    scores: "Sequence[Evaluation]" = ()
    moments: Moments = field(default_factory=dict)
    sums: Sequence[float] = ()


@dataclass(frozen=True)
class State:
    """What the server holds between two rounds.

    Attributes
    ----------
    model : Parameters
        The global model.
    rest : object
        Whatever else a method keeps; it is not changed in place.
    """

    model: Parameters
    rest: Any = None


class Method(ABC):
    """A way to train together.

    Attributes
    ----------
    name, summary
        What users write, and one line that says what it does.
    Options
        Dataclass of the knobs that only this method has.
    reads
        Keys of the settings that it reads, beside those of every run and of its programs.
    programs
        Sealed sums before the first round, by name.
    exchanges
        Whether organisations train in rounds; else each trains alone, asked once.
    pooled
        Whether it needs all data in one place.
    own_models
        Whether organisations end with models that differ.
    steps_at_server
        Whether the server may take the optimiser's steps, with averaged gradients.
    structural
        Whether it trains without a feature model, too.
    single_updates
        Whether the server needs the updates of single organisations, which a sealed sum hides.
    counts_nodes
        Whether organisations tell the server how many nodes they hold.
    weakness
        What it shows beyond others, in one sentence for the log of a run.
    reveals
        What it shows to the server, to the other organisations, and what neither learns.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    Options: ClassVar[type] = NoOptions
    reads: ClassVar[frozenset[str]] = knobs.keys_of(
        DataOptions, ModelOptions, TrainingOptions, AveragingOptions, SelfTrainingOptions
    )
    programs: ClassVar[tuple[str, ...]] = ()
    exchanges: ClassVar[bool] = True
    pooled: ClassVar[bool] = False
    own_models: ClassVar[bool] = False
    steps_at_server: ClassVar[bool] = False
    structural: ClassVar[bool] = False
    single_updates: ClassVar[bool] = False
    counts_nodes: ClassVar[bool] = False
    weakness: ClassVar[str] = ""
    reveals: ClassVar[tuple[str, str, str]] = ("", "", "")

    settings: "Settings"

    def __init__(self, **options: Value) -> None:
        named = {knobs.key_of(name): value for name, value in options.items()}
        self.options: Any = knobs.build(self.Options, named)

    @classmethod
    def of(cls, settings: "Settings") -> Self:
        """The method as the settings of a run have it."""
        made = cls(**{knobs.name_of(key): value for key, value in settings.options})
        made.settings = settings
        return made

    @classmethod
    def check(cls, settings: "Settings") -> None:
        """Refuse settings that do not go together with the method; most go with all."""
        del settings

    @classmethod
    def needs(cls, settings: "Settings") -> tuple[str, ...]:
        """Sealed sums before the first round, of a run with these settings."""
        del settings
        return cls.programs

    @property
    def simulated(self) -> bool:
        """Whether organisations read each other's data, which only a simulation lets them."""
        return False

    def nodes(self, found: Mapping[str, Any]) -> int:
        """Nodes of the whole graph by what programs left at an organisation; 0: it does not matter.

        Parameters
        ----------
        found
            As of `inputs`.
        """
        del found
        return 0

    def held(self, org: "Organisation") -> int:
        """Nodes whose structure features an organisation's network has."""
        return org.subgraph.num_nodes + org.subgraph.num_external

    @property
    def server_steps(self) -> bool:
        """Whether the server takes the optimiser's steps in this run."""
        return self.steps_at_server and self.settings.optimizer_at == "server"

    @property
    def single_gradients(self) -> bool:
        """Whether an update that leaves is a gradient, or one times the step size."""
        one_step = self.settings.optimizer == "sgd" and self.settings.local_epochs == 1
        return self.exchanges and (self.server_steps or one_step)

    @property
    def has_portfolio(self) -> bool:
        """Whether several models are trained side by side, weighed by the validation loss."""
        return False

    @property
    def feature_models(self) -> "Mapping[str, ModelSpec]":
        """Models that read features and own edges, by name, for one feature and one class."""
        return {}

    @property
    def needs_updates(self) -> bool:
        """Whether the server's side looks at single updates, which a sealed sum has not."""
        own = type(self).join is not Method.join or type(self).send is not Method.send
        return self.exchanges and (self.single_updates or own)

    # At the organisation: sees its data, returns only what may leave.

    @abstractmethod
    def model(self, schema: Schema, seed: int, *, held: int = 0) -> "nn.Module":
        """The network, on the CPU, the same everywhere for the same seed.

        Parameters
        ----------
        schema, seed
            Its shape and what its first parameters follow from.
        held
            Nodes whose structure features an organisation holds (default: none).
        """

    @abstractmethod
    def inputs(self, part: Subgraph, found: Mapping[str, Any]) -> "GraphTensors":
        """What the network reads: an organisation's part and what programs left there."""

    @abstractmethod
    def loss(self, model: "nn.Module", inputs: "GraphTensors") -> "Tensor":
        """What an organisation minimises."""

    @abstractmethod
    def train(self, org: "Organisation", received: Records, turn: Turn) -> Update:
        """Score what was received, train it; the same question has the same answer."""

    def weight(self, org: "Organisation") -> int:
        """What an update of the organisation counts by, the same in all rounds."""
        count = int(org.subgraph.train_mask.sum())
        # A model that was not trained, for lack of training nodes, does not count.
        if self.settings.weight_by == "nodes" and count:
            count = org.subgraph.num_nodes
        return min(count, self.settings.largest_weight or count)

    def received(self, org: "Organisation", records: Records) -> Parameters:
        """Parameters of the organisation's network from what the server sent."""
        return records[MODEL]

    def kept(self, org: "Organisation", parameters: Parameters) -> Parameters:
        """What an organisation keeps of them for its predictions."""
        return parameters

    # At the server: sees updates, never data. Pure functions of what they are given.

    @abstractmethod
    def start(self, schema: Schema, seed: int, found: Mapping[str, Found]) -> State:
        """The state before the first round.

        Parameters
        ----------
        schema, seed
            As of `model`.
        found
            What each program left at the server.
        """

    def send(self, state: State, member: str) -> Records:
        """What a member gets."""
        return {MODEL: state.model}

    def join(self, state: State, mean: Parameters, updates: Mapping[str, Records]) -> State:
        """The state after a round.

        Parameters
        ----------
        state
            That before it.
        mean
            The new global model by the strategy of the run.
        updates
            What each member answered.
        """
        return State(mean, state.rest)

    def num_sums(self, model: Parameters) -> int:
        """How many numbers `Update.sums` are for a model."""
        return 0

    def weigh(self, state: State, before: State, summed: Sequence[float]) -> State:
        """The state after a round, with what follows from the sums of all organisations.

        A pure function of the states and the sums, so that whoever has them gets the same.

        Parameters
        ----------
        state
            That after the round.
        before
            That which the organisations had received.
        summed
            Their `Update.sums`, added; empty without any.
        """
        del before, summed
        return state
