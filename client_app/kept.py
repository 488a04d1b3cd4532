"""What an organisation keeps of a training run in its store, for the newest few runs."""

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from client_app.store import Store
from client_app.task import Task
from fedlap_app.learning.guesses import Guesses
from fedlap_app.learning.model_file import ModelFile
from fedlap_app.learning.specs import ROWS
from fedlap_app.methods.scores import SPLITS

if TYPE_CHECKING:
    from client_app.organisation import Organisation
    from fedlap_app.learning.evaluation import Evaluation

KEPT = 5
_PREFIX = "train-"
_JOB = re.compile(rf"{_PREFIX}\d{{20}}")


def training_job(run_id: int) -> str:
    """Name of the job of one training run; Flower draws the numbers of runs at random."""
    return f"{_PREFIX}{run_id:020d}"


def keep_model(
    organisation: "Organisation",
    task: Task,
    parameters: Mapping[str, NDArray[Any]],
    evaluation: "Evaluation",
) -> None:
    """Write the model and its scores, with recall per class, and drop the oldest models."""
    store = organisation.store
    model = ModelFile(
        parameters,
        organisation.settings.to_config(),
        organisation.schema,
        task.basis,
        data=organisation.subgraph.fingerprint() if ROWS in parameters else "",
    )
    with store.lock():
        folder = store.job(training_job(task.run))
        folder.write("model.npz", model.to_bytes())
        folder.write_json("evaluation.json", _per_class(evaluation, organisation.subgraph.classes))
        for name in kept_jobs(store)[:-KEPT]:
            store.forget(name)


def keep_guesses(store: Store, task: Task, guesses: Guesses) -> None:
    """Write the guessed labels of a stage."""
    with store.lock():
        store.job(training_job(task.run)).write(_guesses_file(task), guesses.to_bytes())


def read_guesses(store: Store, task: Task) -> Guesses:
    """Guessed labels of a stage."""
    return Guesses.from_bytes(store.job(training_job(task.run)).read(_guesses_file(task)))


def _guesses_file(task: Task) -> str:
    return f"guesses-{task.stage}.npz"


def kept_jobs(store: Store) -> list[str]:
    """Training jobs, the one that was written to last at the end."""
    names = [name for name in store.jobs() if _JOB.fullmatch(name)]
    return sorted(names, key=lambda name: store.job(name).path.stat().st_mtime_ns)


def _per_class(evaluation: "Evaluation", classes: tuple[str, ...]) -> dict[str, Any]:
    """Scores for the organisation's own eyes."""
    rows = {}
    for split in SPLITS:
        scores = getattr(evaluation, split)
        rows[split] = {
            "count": scores.count,
            "accuracy": _or_none(scores.accuracy),
            "macro_f1": _or_none(scores.macro_f1),
            "loss": _or_none(scores.loss),
            "recall": {
                name: _or_none(value)
                for name, value in zip(classes, scores.recall.tolist(), strict=True)
            },
        }
    return rows


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
