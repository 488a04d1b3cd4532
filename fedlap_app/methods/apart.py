"""Which models noise can hide single nodes in: those whose examples share no inputs."""

from typing import TYPE_CHECKING

from fedlap_app.errors import ConfigError
from fedlap_app.sums.programs import Krylov

if TYPE_CHECKING:
    from fedlap_app.methods.base import Method


def require_apart(method: "Method") -> None:
    """Refuse settings with which clipping the gradients of examples bounds no node."""
    unit, settings = "dp-unit = 'node'", method.settings
    if not method.server_steps:
        raise ConfigError(
            f"{unit} clips the gradients of one step, and method = '{method.name}' lets "
            "organisations take several: set optimizer-at = 'server', or method = 'fedsgd'"
        )
    for key, value, needed in (
        ("class-weights", settings.class_weights, "none"),
        ("weight-by", settings.weight_by, "labelled"),
    ):
        if value != needed:
            raise ConfigError(
                f"{key} = '{value}' lets a node count in the examples of others, which {unit} does "
                f"not cover: set {key} = '{needed}'"
            )
    others = [name for name in method.needs(settings) if name != Krylov.name]
    if others or method.simulated:
        what = f"the program {others[0]}" if others else "the data of all"
        raise ConfigError(
            f"method = '{method.name}' reads {what}, so that a node's features are in the examples "
            f"of others, and {unit} cannot hide it: take method = 'fedlap+', 'fedavg' or 'mlp', or "
            "dp-unit = 'organisation'"
        )
    for name, spec in method.feature_models.items():
        if spec.kind != "decoupled" or spec.hops:
            raise ConfigError(
                f"the model '{name}' reads neighbours, so that a node's features are in the "
                f"examples of others, and {unit} cannot hide it: set model = 'decoupled' with "
                "hops = 0, model = 'none', or branches = 'mlp'; or take dp-unit = 'organisation'"
            )
