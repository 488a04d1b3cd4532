"""The organisation that a client speaks for: its data, its store, its method and its network."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedlap_app.graphs.schema import schema_digest
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.base import Method, Schema
from fedlap_app.methods.kept import read_guesses
from fedlap_app.methods.registry import method_class
from fedlap_app.methods.task import Task
from fedlap_app.privacy.policy import SAFE, Policy
from fedlap_app.store.folders import Store

if TYPE_CHECKING:  # torch is imported only by those who train
    from torch import nn

    from fedlap_app.models.tensors import GraphTensors
    from fedlap_app.settings import Settings


@dataclass(frozen=True, eq=False)
class Organisation:
    """What the handlers of one client, and its method, work with.

    `folder` is set in a deployment only, and so is `federation`, the file of pinned fingerprints.
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
        """Numbers of features and of classes."""
        return Schema(self.subgraph.num_features, self.subgraph.num_classes)

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

        held = self.subgraph.num_nodes + self.subgraph.num_external
        model = self.method.model(self.shape, self.settings.seed, held=held)
        return model.to(pick_device(self.settings.device))

    def inputs(self, task: Task) -> "GraphTensors":
        """What the network reads, with the guessed labels of the stage."""
        key = (task.run if task.stage else 0, task.stage, tuple(sorted(task.found.items())))
        if key not in self._inputs:
            self._inputs.clear()
            tensors = self.method.inputs(self.subgraph, self._found(task))
            if task.stage:
                tensors = tensors.with_guesses(read_guesses(self.store, task))
            self._inputs[key] = tensors
        return self._inputs[key]

    def _found(self, task: Task) -> Mapping[str, Any]:
        """What the programs before training left in the store, by the settings of the run."""
        found = {}
        for name in self.method.programs:
            spec = self.settings.spec_of(name)
            results = spec.program.results(self.store.root, durable=False)
            if results is not None:
                job, data = task.found.get(name, ""), self.subgraph.fingerprint()
                by = spec.digest(None if self.deployed else self.settings.seed)
                found[name] = results.find(job, data, by)
        return found

    @cached_property
    def _inputs(self) -> "dict[tuple[Any, ...], GraphTensors]":
        return {}
