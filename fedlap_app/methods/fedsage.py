"""FedSage+: every organisation generates the neighbours that it cannot see, and trains with them.

Zhang et al., "Subgraph Federated Learning with Missing Neighbor Generation" (NeurIPS 2021). An
organisation sends rows that its generator made; the others answer with gradients that draw them to
means of groups of their own nodes, and the server returns their sum a round later. How many
neighbours are missing is known from the cut edges, where the original guesses it. `ideal` is what a
perfect generator would give: the true features of foreign neighbours, in simulations only.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.graphs.ball import ball_of
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.knobs import keys_of
from fedlap_app.methods.base import MODEL, WHOLE, Parameters, Records, Schema, State, Turn, Update
from fedlap_app.methods.fedavg import FedAvg
from fedlap_app.models.options import GeneratorOptions
from fedlap_app.models.specs import GENERATOR
from fedlap_app.seeds import seed_of

if TYPE_CHECKING:
    from torch import Tensor, nn

    from fedlap_app.methods.organisation import Organisation
    from fedlap_app.models.tensors import GraphTensors

GENERATED, WANTED, GRADIENTS = "generated", "wanted", "gradients"
_ROWS = "rows"


class FedSage(FedAvg):
    """Federated averaging on graphs mended by generators, which stay each organisation's own."""

    name: ClassVar[str] = "fedsage+"
    summary: ClassVar[str] = "generated neighbours"
    reads: ClassVar[frozenset[str]] = (
        FedAvg.reads - {"optimizer-at", "strategy", "server-learning-rate", "server-momentum"}
        - {"proximal-mu", "relay"}
    ) | keys_of(GeneratorOptions) | {"ideal"}  # fmt: skip
    own_models: ClassVar[bool] = True
    steps_at_server: ClassVar[bool] = False
    single_updates: ClassVar[bool] = True
    reveals: ClassVar[tuple[str, str, str]] = (
        "The server sees every organisation's model, its generator, rows that this made and the "
        "others' gradients for them; it has to pass them on, so a sealed sum has no place.",
        "Organisations see rows that the others' generators made, which resemble the features of "
        "their nodes, and sums of gradients, each towards the mean of a few nodes of another one, "
        "of which none is in two means.",
        "No raw feature row leaves, but with ideal, for simulations, organisations read those of "
        "all foreign neighbours of their nodes.",
    )

    @property
    def simulated(self) -> bool:
        """Whether raw features of others are read."""
        return self.settings.ideal

    def model(self, schema: Schema, seed: int, *, held: int = 0) -> "nn.Module":
        """The classifier, and the generator unless true neighbours are there."""
        if self.settings.ideal:
            return super().model(schema, seed)
        from fedlap_app.models.mended import build_mended

        spec = replace(self.spec(schema), relay=False)
        return build_mended(spec, self.settings.generator_width, seed)

    def inputs(self, part: Subgraph, found: Mapping[str, Any]) -> "GraphTensors":
        """The part with true or generated neighbours."""
        if self.settings.ideal:
            return super().inputs(ball_of(part, found[WHOLE], 1, among_foreign=False), {})
        from fedlap_app.models.mended import grown, with_missing

        return with_missing(super().inputs(grown(part), found), part)

    def loss(self, model: "nn.Module", inputs: "GraphTensors") -> "Tensor":
        """Cross-entropy, and how far generated rows are from true neighbours."""
        from fedlap_app.models.mended import MendedModel

        found = super().loss(model, inputs)
        if not isinstance(model, MendedModel):
            return found
        return found + self.settings.generator_loss * model.drawn(inputs)

    def train(self, org: "Organisation", received: Records, turn: Turn) -> Update:
        """Train with the gradients that came back; answer for the rows of others, make new ones."""
        if self.settings.ideal:
            return super().train(org, received, turn)
        import torch

        from fedlap_app.models.determinism import one_thread
        from fedlap_app.models.mended import MendedModel, pull

        inputs, model = org.inputs(turn.task), org.model
        assert isinstance(model, MendedModel)
        assert inputs.missing is not None
        gradient = received.get(GRADIENTS, {}).get(_ROWS)
        model.returned = None
        if gradient is not None:
            nodes = self._sample(org, inputs, turn.number - 1)
            if gradient.shape != (len(nodes), org.shape.features):
                raise ProtocolError(
                    f"the message carries gradients of shape {gradient.shape} for {len(nodes)} "
                    "rows: start the run again"
                )
            model.returned = nodes, torch.from_numpy(np.array(gradient)).to(inputs.device)
        update = super().train(org, received, turn)
        model.returned = None
        with one_thread(), torch.no_grad():
            rows = model.generator(inputs, self._sample(org, inputs, turn.number)).cpu().numpy()
            answers = {
                member: pull(wanted, inputs.missing.means)
                for member, wanted in self._wanted(org, received).items()
            }
        return replace(
            update,
            records={**update.records, GENERATED: {_ROWS: rows}, GRADIENTS: answers},
        )

    def _wanted(self, org: "Organisation", received: Records) -> Parameters:
        """Rows of the others that it is to judge; others than generators make are refused."""
        wanted, most = received.get(WANTED, {}), self.settings.generated_rows
        for rows in wanted.values():
            if not _are_rows(rows, most) or rows.shape[1] != org.shape.features:
                raise ProtocolError(
                    f"the message carries {rows.dtype} of shape {rows.shape}, no rows that a "
                    f"generator makes with generated-rows = {most} of {org.shape.features} "
                    "features: it was not made by this app's server"
                )
        return wanted

    def _generated(self, name: str, records: Records) -> NDArray[Any]:
        """Rows that a member's generator made."""
        rows, most = records.get(GENERATED, {}).get(_ROWS), self.settings.generated_rows
        if rows is None or not _are_rows(rows, most):
            raise RunError(
                f"{name} returned no rows of its generator, {most} at most and of finite numbers: "
                "let all organisations run one version"
            )
        return rows

    def _sample(self, org: "Organisation", inputs: "GraphTensors", number: int) -> "Tensor":
        """Nodes whose generated rows leave in a round; the same when it is asked again."""
        import torch

        assert inputs.missing is not None
        nodes = inputs.missing.nodes
        draw = np.random.default_rng(seed_of(self.settings.seed, "generated", org.name, number))
        count = min(self.settings.generated_rows, len(nodes))
        chosen = np.sort(draw.choice(len(nodes), size=count, replace=False))
        return nodes[torch.from_numpy(chosen).to(inputs.device)]

    def send(self, state: State, member: str) -> Records:
        """The mean classifier, the own generator, the others' rows and gradients for the own."""
        if not state.rest:
            return {MODEL: state.model}
        generators, rows, gradients = state.rest
        own = generators.get(member, {})
        records: dict[str, Parameters] = {MODEL: {**state.model, **own}}
        records[WANTED] = {name: values for name, values in rows.items() if name != member}
        if member in gradients:
            records[GRADIENTS] = {_ROWS: gradients[member]}
        return records

    def join(self, state: State, mean: Parameters, updates: Mapping[str, Records]) -> State:
        """Pass rows on, add up gradients, keep generators apart."""
        if self.settings.ideal:
            return super().join(state, mean, updates)
        before = state.rest[1] if state.rest else {}
        kept = dict(state.rest[0]) if state.rest else {}
        for name, records in updates.items():
            own = {k: v for k, v in records[MODEL].items() if k.startswith(GENERATOR)}
            kept[name] = own
        rows = {name: self._generated(name, records) for name, records in updates.items()}
        gradients = {
            name: _added(name, asked, updates) for name, asked in before.items() if name in updates
        }
        return State(mean, (kept, rows, gradients))


def _are_rows(rows: NDArray[Any], most: int) -> bool:
    """Whether an array holds rows as a generator makes them."""
    is_table = rows.ndim == 2 and len(rows) <= most and rows.dtype.kind == "f"
    return bool(is_table and np.isfinite(rows).all())


def _added(member: str, asked: NDArray[Any], updates: Mapping[str, Records]) -> NDArray[np.float32]:
    """Mean of what the others answered for a member's rows."""
    answers = [
        records[GRADIENTS][member]
        for name, records in updates.items()
        if name != member and member in records.get(GRADIENTS, {})
    ]
    if any(answer.shape != asked.shape or not np.isfinite(answer).all() for answer in answers):
        raise RunError(
            f"an organisation answered the rows of {member} with gradients of another shape, or "
            "not finite: let all organisations run one version"
        )
    summed = np.sum(answers, axis=0) if answers else np.zeros_like(asked)
    return np.asarray(summed / max(len(answers), 1), dtype=np.float32)
