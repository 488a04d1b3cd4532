"""The organisation that a client speaks for: its data, its store, its method and its network."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.encoding import Encoding
from fedlap_app.graphs.learned import asks
from fedlap_app.graphs.schema import schema_digest
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.base import WHOLE, Method, Schema
from fedlap_app.methods.features import own_encoding
from fedlap_app.methods.kept import read_guesses
from fedlap_app.methods.registry import method_class
from fedlap_app.methods.task import Task
from fedlap_app.privacy.policy import SAFE, Policy
from fedlap_app.store.folders import Store
from fedlap_app.sums.programs import FeatureMoments
from fedlap_app.sums.programs.feature_moments import Encodings

SIMULATED, DEPLOYED = 1, 2
"""What an organisation says at the start of a run whose table asks to be standardised."""

if TYPE_CHECKING:  # torch is imported only by those who train
    from torch import nn

    from fedlap_app.models.tensors import GraphTensors
    from fedlap_app.settings import Settings
    from fedlap_app.sums.job.spec import OfflineSpec


@dataclass(frozen=True, eq=False)
class Organisation:
    """What the handlers of one client, and its method, work with.

    `folder` is set in a deployment only, and so is `federation`, the file of pinned fingerprints.
    `whole` gives all parts of a simulation, for methods that are nothing but one.
    `policy` is that of its folder, and `named` the organisations that this pins by name, which
    is what counts in a simulation, where all fingerprints follow from the seed.
    """

    subgraph: Subgraph
    settings: "Settings"
    store: Store
    folder: Path | None = None
    federation: Path | None = None
    policy: Policy = SAFE
    named: frozenset[str] = frozenset()
    whole: Callable[[], Sequence[Subgraph]] | None = None

    @property
    def name(self) -> str:
        """Name of the organisation."""
        return self.subgraph.name

    @cached_property
    def method(self) -> Method:
        """What is trained."""
        return method_class(self.settings.method).of(self.settings)

    @cached_property
    def schema(self) -> str:
        """Hash of class names and feature columns, which all organisations must share."""
        return schema_digest(self.subgraph)

    @property
    def shape(self) -> Schema:
        """Numbers of columns that the network reads, and of classes."""
        return Schema(self.subgraph.num_inputs, self.subgraph.num_classes)

    def shape_in(self, task: Task) -> Schema:
        """The same, and the number of nodes if they count, which is known in a run only."""
        nodes = self.method.nodes(self._found(task)) if self.method.counts_nodes else 0
        return self.shape._replace(nodes=nodes)

    @property
    def deployed(self) -> bool:
        """Whether this is no simulation, so that what it writes must survive a power failure."""
        return self.folder is not None

    @cached_property
    def agreed(self) -> str:
        """Digest of the settings, by which parties and messages of a run are compared."""
        return self.settings.digest()

    @cached_property
    def model(self) -> "nn.Module":
        """The network; every handler that uses it loads its parameters first."""
        from fedlap_app.models.device import pick_device

        held = self.method.held(self)
        model = self.method.model(self.shape, self.settings.seed, held=held)
        return model.to(pick_device(self.settings.device))

    def inputs(self, task: Task) -> "GraphTensors":
        """What the network reads, with the guessed labels of the stage."""
        key = (task.run if task.stage else 0, task.stage, tuple(sorted(task.found.items())))
        if key not in self._inputs:
            self._inputs.clear()
            encoding = self.encoding(task.found.get(FeatureMoments.name, ""))
            found = {**self._found(task), FeatureMoments.name: encoding}
            part, others = self.subgraph, found.get(WHOLE, ())
            if encoding:
                part, others = encoding.apply(part), [encoding.apply(each) for each in others]
            tensors = self.method.inputs(part, {**found, WHOLE: others})
            if task.stage:
                tensors = tensors.with_guesses(read_guesses(self.store, task))
            self._inputs[key] = tensors
        return self._inputs[key]

    @cached_property
    def asks(self) -> int:
        """Whether its table asks for means and deviations; for its categories it needs others."""
        if not asks(self.subgraph):
            return 0
        return DEPLOYED if self.deployed else SIMULATED

    def encoding(self, job: str) -> Encoding | None:
        """How it reads its features: as a job of all says, or by its own table; None: as they are.

        Parameters
        ----------
        job
            Job of the program `feature-moments`; empty: there was none.
        """
        if job:
            spec = self.settings.spec_of(FeatureMoments.name)
            results = Encodings(self.store.root / FeatureMoments.name, durable=False)
            found = results.find(job, self.subgraph.fingerprint(), self._agreed(spec))
            return found.encoding
        return own_encoding(self.subgraph, self.settings)

    def _found(self, task: Task) -> Mapping[str, Any]:
        """What the programs before training left in the store, by the settings of the run."""
        found: dict[str, Any] = {}
        if self.method.simulated:
            found[WHOLE] = self.everyone()
        for name in self.method.needs(self.settings):
            spec = self.settings.spec_of(name)
            results = spec.program.results(self.store.root, durable=False)
            if results is not None:
                job, data = task.found.get(name, ""), self.subgraph.fingerprint()
                found[name] = results.find(job, data, self._agreed(spec))
        return found

    def _agreed(self, spec: "OfflineSpec") -> str:
        """Digest of the settings that the members of a job compared."""
        return spec.digest(None if self.deployed else self.settings.seed)

    def everyone(self) -> Sequence[Subgraph]:
        """All parts, where nobody's data is at stake."""
        if self.whole is None:
            raise ConfigError(
                f"method = '{self.method.name}' with these settings reads the data of all "
                "organisations, which is for simulations: run it with `fedlap train` on a data set"
            )
        return self.whole()

    @cached_property
    def _inputs(self) -> "dict[tuple[Any, ...], GraphTensors]":
        return {}
