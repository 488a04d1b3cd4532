"""What one organisation knows of a run: its own data, its store, and nothing of the others."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.api.prediction import predict_part
from fedlap_app.api.predictions_file import loaded
from fedlap_app.api.stores import Kept, find_encoding, find_sums
from fedlap_app.errors import DataError
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.scores import Layout, unpack
from fedlap_app.privacy import tally
from fedlap_app.privacy.consent import FEATURES, VECTORS, count_mark
from fedlap_app.privacy.policy import SAFE, Policy, read_policy
from fedlap_app.settings import Settings, parse_settings
from fedlap_app.store import names
from fedlap_app.studies.audit.ledger_report import job_report
from fedlap_app.sums.job.bases import FinishedBasis


@dataclass(frozen=True, eq=False)
class MemberFacts:
    """One organisation in one run.

    Attributes
    ----------
    part, settings
        What it holds, and the settings of the run.
    log_probabilities
        (n, classes), of every own node by the model that it keeps.
    basis
        Its rows of the spectral basis; None: the model reads none.
    ledger
        What it has sent and received so far, as `fedlap audit --job` says it.
    used
        Columns that left since its graph last changed, by kind.
    policy
        What it allows.
    rounds, stages
        Totals of every round over all organisations, and its own scores after every stage.
    kept
        Stage and round of the model that is kept.
    """

    part: Subgraph
    settings: Settings
    log_probabilities: NDArray[np.float32]
    basis: FinishedBasis | None
    ledger: Mapping[str, Any]
    used: Mapping[str, int]
    policy: Policy
    rounds: Sequence[Mapping[str, Any]] = ()
    stages: Sequence[Mapping[str, Any]] = ()
    kept: tuple[int, int] | None = None

    @property
    def predicted(self) -> NDArray[np.int64]:
        """Number of the likeliest class of every node."""
        found: NDArray[np.int64] = self.log_probabilities.argmax(axis=1)
        return found

    @property
    def confidence(self) -> NDArray[np.float64]:
        """Probability of that class."""
        found: NDArray[np.float64] = np.exp(self.log_probabilities.max(axis=1).astype(np.float64))
        return found

    def mask(self, split: str) -> NDArray[np.bool_]:
        """The labelled nodes of a split."""
        masks = {
            "train": self.part.train_mask, "val": self.part.val_mask, "test": self.part.test_mask,
        }  # fmt: skip
        found: NDArray[np.bool_] = masks[split] & (self.part.labels >= 0)
        return found

    @property
    def vectors(self) -> int:
        """Columns of all kinds that left, each an equation about the edges."""
        return sum(self.used.values())


def of_folder(folder: Path, run: Path | None = None, store: Path | None = None) -> MemberFacts:
    """Facts of an organisation folder, by its newest model or by that of a run folder.

    Parameters
    ----------
    folder, run
        The organisation's folder, and a run folder with the global model.
    store
        Its store (default: below its folder, or that of a simulation).
    """
    part, kept, stores = loaded(folder, run, store)
    return of_part(part, kept, stores, read_policy(folder, SAFE))


def of_part(
    part: Subgraph, kept: Kept, stores: Sequence[Path], policy: Policy = SAFE
) -> MemberFacts:
    """Facts of a part whose model is at hand.

    Parameters
    ----------
    part, kept
        What it holds and predicts with.
    stores
        Folders that may be its store, the likeliest first.
    policy
        What it allows.
    """
    model = kept.model
    settings = parse_settings(model.config)
    encoding = find_encoding(stores, part.name, model)
    others = find_sums(stores, part, settings)
    found = predict_part(part, model, kept.basis, kept.graph, encoding, others)
    store = next((each for each in stores if (each / names.JOBS).is_dir()), stores[0])
    if kept.job is not None:
        store = kept.job.parents[1]
    noted = [] if kept.job is None else _noted(kept.job)
    last: Mapping[str, Any] = next((row for row in reversed(noted) if row.get("kept")), {})
    return MemberFacts(
        part=part,
        settings=settings,
        log_probabilities=found.log_probabilities,
        basis=kept.basis,
        ledger=_ledger(store),
        used=_used(store, part),
        policy=policy,
        rounds=[row for row in noted if "round" in row],
        stages=[unpack(row["own"], Layout.of(settings, part.num_classes))
                for row in noted if "own" in row],
        kept=(last["best_stage"], last["best_round"]) if last.get("best_round") else None,
    )  # fmt: skip


def _noted(job: Path) -> list[dict[str, Any]]:
    """What the organisation noted of rounds and stages; a damaged line is left out."""
    file, rows = job / names.ROUNDS, []
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        with suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict):
                rows.append(row)
    return rows


def _ledger(store: Path) -> Mapping[str, Any]:
    """The ledgers of the store; a store without any, or with a damaged one, tells nothing."""
    try:
        return job_report(store)
    except DataError:
        return {}


def _used(store: Path, part: Subgraph) -> dict[str, int]:
    if not (store / tally.FILE).is_file():
        return {VECTORS: 0}
    counted, mark = tally.Tally(store, durable=True), tally.graph_mark(part)
    counts = {kind: counted.exchanged(count_mark(mark, kind)) for kind in (VECTORS, FEATURES)}
    return {kind: count for kind, count in counts.items() if count or kind == VECTORS}
