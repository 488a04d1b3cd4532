"""Federated averaging of an MLP, which reads no edge at all."""

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from fedlap_app.methods.base import Schema
from fedlap_app.methods.fedavg import FedAvg

if TYPE_CHECKING:
    from fedlap_app.models.specs import ModelSpec


class MLP(FedAvg):
    """What federated averaging reaches by features alone."""

    name: ClassVar[str] = "mlp"
    summary: ClassVar[str] = "features alone"
    weighs_branches: ClassVar[bool] = False
    reads: ClassVar[frozenset[str]] = FedAvg.reads - {"model", "hops", "relay", "linear-head"}
    reveals: ClassVar[tuple[str, str, str]] = (
        FedAvg.reveals[0],
        FedAvg.reveals[1],
        "No edge is used, so nobody learns of one.",
    )

    def spec(self, schema: Schema) -> "ModelSpec":
        """Layers without propagation."""
        found = super().spec(schema)
        return replace(found, kind="decoupled", hops=0, relay=False, dense="none")
