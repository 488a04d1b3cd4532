"""A method of one's own: federated averaging that looks harder at nodes which are hard to tell.

``python focal.py`` trains it in this process. Installed (``pip install .`` in this folder) it has a
name that every grid knows: ``fedlap train --method focal``, ``flwr run . --run-config
"method='focal'"``, SuperNodes of organisations whose policy lists it.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import fedlap_app as fedlap
from fedlap_app.knobs import knob
from fedlap_app.methods.fedavg import FedAvg


@dataclass(frozen=True)
class Options:
    """Knobs that only this method has."""

    focus: float = knob(2.0, "how much less a node counts that the model is sure of", low=0.0)


class Focal(FedAvg):
    """Each node's loss is weighted by (1 - probability of its class) ^ focus."""

    name: ClassVar[str] = "focal"
    summary: ClassVar[str] = "averages models trained with the focal loss"
    Options: ClassVar[type] = Options

    def loss(self, model: Any, inputs: Any) -> Any:  # noqa: ANN401 - torch's types
        """Mean focal loss over the training nodes."""
        rows = inputs.splits["train"]
        log_probabilities = model(inputs).log_softmax(dim=1)[rows]
        log_likelihood = log_probabilities.gather(1, inputs.targets[rows, None])
        return -((1 - log_likelihood.exp()) ** self.options.focus * log_likelihood).mean()


if __name__ == "__main__":
    orgs = fedlap.load("banks", clients=3, accounts=600)
    for method in ("fedavg", Focal(focus=1.0)):
        print(fedlap.train(orgs, method, rounds=20, seed=0))
