"""The final models that an organisation keeps in its store, the newest few of them."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from client_app.organisation import Organisation
from fedlap_app.learning.model_file import ModelFile
from fedlap_app.methods.scores import SPLITS

if TYPE_CHECKING:
    from fedlap_app.learning.evaluation import Evaluation

KEPT = 5
_PREFIX = "train-"


def training_job(run_id: int) -> str:
    """Name of the job of one training run; names sort by time on one SuperLink."""
    return f"{_PREFIX}{run_id:020d}"


def keep_model(
    organisation: Organisation,
    run_id: int,
    parameters: Mapping[str, NDArray[Any]],
    evaluation: "Evaluation",
    basis: str = "",
) -> None:
    """Write the model and its scores, with recall per class, and drop the oldest models."""
    store, job = organisation.store, training_job(run_id)
    model = ModelFile(parameters, organisation.settings.to_config(), organisation.schema, basis)
    with store.lock():
        folder = store.job(job)
        folder.write("model.npz", model.to_bytes())
        folder.write_json("evaluation.json", _per_class(evaluation, organisation.subgraph.classes))
        for name in kept_jobs(store.jobs())[:-KEPT]:
            store.forget(name)


def kept_jobs(jobs: list[str]) -> list[str]:
    """Training jobs, the newest last."""
    return sorted(name for name in jobs if name.startswith(_PREFIX))


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
