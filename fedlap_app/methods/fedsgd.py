"""Federated averaging of gradients: one step of Adam a round, taken by the server."""

from typing import ClassVar

from fedlap_app.methods.fedavg import FedAvg


class FedSGD(FedAvg):
    """Every round is one step with the mean gradient of all training nodes."""

    name: ClassVar[str] = "fedsgd"
    summary: ClassVar[str] = "averages gradients"
    weighs_branches: ClassVar[bool] = False
    reads: ClassVar[frozenset[str]] = FedAvg.reads - {
        "local-epochs", "optimizer", "optimizer-at", "optimizer-state", "proximal-mu",
        "server-learning-rate", "server-momentum", "strategy",
    }  # fmt: skip
    reveals: ClassVar[tuple[str, str, str]] = (
        "The server sees every organisation's gradient, from which it may recover labels and "
        "features, so that an organisation has to allow it; sealed training leaves it their sums.",
        "Organisations see the mean model of every round, hence the mean gradient.",
        "No edge between organisations is used, so nobody learns of one.",
    )

    @property
    def server_steps(self) -> bool:
        """Always."""
        return True
