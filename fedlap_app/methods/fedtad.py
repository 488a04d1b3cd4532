"""FedTAD: the mean of all models learns from each what it knows best, on graphs made up for it.

Zhu et al., "FedTAD: Topology-aware Data-free Knowledge Distillation for Subgraph Federated
Learning" (IJCAI 2024). Organisations tell how alike the training nodes of every class are to their
neighbours, in features and in how likely walks return; by that the server lets their models teach
the mean. As in the authors' code, the distance is that of probabilities. Walks have up to four
steps, for which no power of the walk beyond the second is needed.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.base import MODEL, Found, Parameters, Records, Schema, State, Turn
from fedlap_app.methods.hinting import Hinting
from fedlap_app.seeds import seed_of

if TYPE_CHECKING:
    from fedlap_app.methods.organisation import Organisation

RATE = 1e-3
"""Step size of the generator and of what is taught."""


class FedTAD(Hinting):
    """Averages models, then lets all of them teach the mean."""

    name: ClassVar[str] = "fedtad"
    summary: ClassVar[str] = "a mean taught by all models"
    hints: ClassVar[tuple[str, ...]] = ("reliability",)
    reveals: ClassVar[tuple[str, str, str]] = (
        "The server sees every organisation's model and how reliable it is for each class, which "
        "tells the classes of its training nodes; it trains on the models, so that a sealed sum "
        "has no place.",
        "Organisations see the taught mean of every round.",
        "No edge between organisations is used, so nobody learns of one.",
    )

    def hint(self, org: "Organisation", turn: Turn) -> Parameters:
        """How reliable the organisation is for every class."""
        return {"reliability": reliability(org.subgraph)}

    def start(self, schema: Schema, seed: int, found: Mapping[str, Found]) -> State:
        """A fresh model, and the generator that rounds go on with."""
        from fedlap_app.models.determinism import seeded
        from fedlap_app.models.distilled import NodeGenerator

        with seeded(seed_of(seed, "generator")):
            generator = NodeGenerator(schema.classes, schema.features)
        return State(super().start(schema, seed, found).model, (schema, seed, 0, generator))

    def join(self, state: State, mean: Parameters, updates: Mapping[str, Records]) -> State:
        """The mean, taught by all that answered."""
        import torch

        from fedlap_app.models.determinism import one_thread, seeded
        from fedlap_app.models.distilled import Teachers, distil
        from fedlap_app.models.parameters import load_parameters, parameters_of
        from fedlap_app.models.specs import TrainSpec

        schema, seed, number, before = state.rest
        names = sorted(updates)
        known = np.stack([hint["reliability"] for hint in self.hints_of(updates)])
        total = known.sum(axis=0)
        shares = np.divide(known, total, out=np.zeros_like(known), where=total > 0.0)
        fresh = self.model(schema, seed)

        def loaded(parameters: Parameters) -> torch.nn.Module:
            model = deepcopy(fresh)
            load_parameters(model, parameters)
            return model

        rule = TrainSpec(epochs=1, learning_rate=RATE, weight_decay=0.0)
        student, generator = loaded(mean), deepcopy(before)
        models = [loaded(updates[name][MODEL]) for name in names]
        teachers = Teachers(models, torch.from_numpy(shares.astype(np.float32)))
        with one_thread(), seeded(seed_of(seed, "distilled", number)):
            distil(student, teachers, generator, self.spec(schema), rule)
        return State(parameters_of(student), (schema, seed, number + 1, generator))


def reliability(part: Subgraph) -> NDArray[np.float64]:
    """(classes,) sums over training nodes of the mean likeness to themselves and neighbours."""
    looped = part.in_adjacency()[:, : part.num_nodes].tocsr() + sp.eye_array(part.num_nodes)
    walk = sp.csr_array(sp.diags_array(1.0 / np.asarray(looped.sum(axis=1)).ravel()) @ looped)
    twice = sp.csr_array(walk @ walk)
    back = [
        walk.diagonal(),
        twice.diagonal(),
        np.asarray(twice.multiply(walk.T).sum(axis=1)).ravel(),
        np.asarray(twice.multiply(twice.T).sum(axis=1)).ravel(),
    ]
    rows: Any = sp.hstack([sp.csr_array(part.features), np.stack(back, axis=1)], format="csr")
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    unit = sp.csr_array(sp.diags_array(1.0 / np.maximum(lengths, 1e-12)) @ rows)
    links = sp.csr_array(looped != 0).astype(np.float64)
    summed = np.asarray(unit.multiply(links @ unit).sum(axis=1)).ravel()
    means = np.maximum(summed / np.diff(links.indptr), 0.0)
    train = np.flatnonzero(part.train_mask)
    found = np.bincount(part.labels[train], weights=means[train], minlength=part.num_classes)
    return np.asarray(found, dtype=np.float64)
