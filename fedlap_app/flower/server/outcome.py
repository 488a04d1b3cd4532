"""What a method leaves behind, in the same form for all of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from fedlap_app.methods.scores import SPLITS, Scores, accuracy, by_metric, total
from fedlap_app.models.options import METRICS


@dataclass(frozen=True)
class StageScores:
    """After one training from a fresh model: its rounds, and the scores of the best model so far.

    Where every organisation keeps a model of its own there is no one best stage and round. Of
    sealed training, whose scores stay with the organisations, `published` has for each split its
    nodes and those classified right, of all organisations together.
    """

    best_stage: int | None
    best_round: int | None
    rounds: int
    clients: Mapping[str, Scores]
    published: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def accuracy(self) -> dict[str, float]:
        """Accuracy per split over all organisations."""
        if not self.clients:
            counts = {split: self.published.get(split, (0, 0)) for split in SPLITS}
            return {split: right / n if n else math.nan for split, (n, right) in counts.items()}
        totals = total(list(self.clients.values()))
        return {split: totals[f"{split}_accuracy"] for split in SPLITS}

    def nodes(self) -> dict[str, int]:
        """Scored nodes per split of all organisations."""
        if not self.clients:
            return {split: self.published.get(split, (0, 0))[0] for split in SPLITS}
        counts = {
            split: [each[f"{split}-count"] for each in self.clients.values()] for split in SPLITS
        }
        return {split: int(sum(each)) for split, each in counts.items()}

    def summary(self) -> dict[str, Any]:
        """What the summary of a run says about the stage."""
        best = {"best_stage": self.best_stage, "best_round": self.best_round}
        return {"accuracy": self.accuracy(), "rounds": self.rounds, **best}

    def scores(self, metric: str) -> dict[str, float]:
        """Score per split over all organisations."""
        if not self.clients:
            return self.accuracy() if metric == METRICS[0] else dict.fromkeys(SPLITS, math.nan)
        totals = total(list(self.clients.values()))
        return {split: by_metric(totals, split, metric) for split in SPLITS}


@dataclass(frozen=True)
class Outcome:
    """Scores after every stage; the best global model and its basis where there are any.

    `features` is the job whose moments features are standardised by, `encoding` how they are read
    where all data is in one place, `releases` how many sums of updates were asked for.
    """

    stages: Sequence[StageScores]
    parameters: Mapping[str, NDArray[Any]] | None
    basis: str = ""
    features: str = ""
    encoding: bytes = b""
    releases: int = 0

    @property
    def clients(self) -> Mapping[str, Scores]:
        """Final scores of every organisation."""
        return self.stages[-1].clients

    def summary(self, metric: str = METRICS[0]) -> dict[str, Any]:
        """Scores over all organisations and for each of them."""
        totals = total(list(self.clients.values()))
        return {
            "nodes": self.stages[-1].nodes(),
            "accuracy": self.stages[-1].accuracy(),
            "loss": {split: totals[f"{split}_loss"] for split in SPLITS},
            "macro_f1": {split: totals[f"{split}_macro_f1"] for split in SPLITS},
            "client_accuracy": {
                name: {split: accuracy(scores, split) for split in SPLITS}
                for name, scores in self.clients.items()
            },
            "metric": metric,
            "score": self.stages[-1].scores(metric),
            "client_score": {
                name: {split: by_metric(total([scores]), split, metric) for split in SPLITS}
                for name, scores in self.clients.items()
            },
            "rounds": sum(stage.rounds for stage in self.stages),
            "best_stage": self.stages[-1].best_stage,
            "best_round": self.stages[-1].best_round,
            "stages": [stage.summary() for stage in self.stages],
        }
