"""What a method leaves behind, in the same form for all of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from fedlap_app.methods.scores import SPLITS, accuracy, total


@dataclass(frozen=True)
class Outcome:
    """Final scores of every organisation; the global model and its basis where there are any."""

    best_round: int | None
    rounds: int
    clients: Mapping[str, Mapping[str, float]]
    parameters: Mapping[str, NDArray[Any]] | None
    basis: str = ""

    def summary(self) -> dict[str, Any]:
        """Scores over all organisations and for each of them."""
        totals = total(list(self.clients.values()))
        return {
            "accuracy": {split: totals[f"{split}_accuracy"] for split in SPLITS},
            "loss": {split: totals[f"{split}_loss"] for split in SPLITS},
            "macro_f1": {split: totals[f"{split}_macro_f1"] for split in SPLITS},
            "client_accuracy": {
                name: {split: accuracy(scores, split) for split in SPLITS}
                for name, scores in self.clients.items()
            },
            "rounds": self.rounds,
            "best_round": self.best_round,
        }
