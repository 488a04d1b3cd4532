"""What an organisation keeps of a training run in its store, for the newest few runs."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from fedlap_app.errors import RunError
from fedlap_app.graphs.snapshot import Snapshot
from fedlap_app.methods.scores import SPLITS
from fedlap_app.methods.task import Task
from fedlap_app.models import model_file
from fedlap_app.models.guesses import Guesses
from fedlap_app.models.model_file import ModelFile
from fedlap_app.store import names
from fedlap_app.store.folders import Store, StoreError
from fedlap_app.sums.programs import FeatureMoments, Krylov

if TYPE_CHECKING:
    from fedlap_app.methods.organisation import Organisation
    from fedlap_app.models.evaluation import Evaluation

BASIS = Krylov.name  # the program whose result a model file names
KEPT = 5  # finished runs of a simulation
MOST_FINISHED = 50  # finished runs of a deployment, where none of them makes room for another
MOST_UNFINISHED = 16
RATION = names.RATION
ROUNDS = names.ROUNDS  # what an organisation knows of sealed rounds
GRAPH = names.GRAPH  # what the part was, for a model without a basis that tells


def training_job(run_id: int) -> str:
    """Name of the job of one training run; Flower draws the numbers of runs at random."""
    return names.TRAINING(run=run_id)


def keep_model(
    organisation: "Organisation",
    task: Task,
    parameters: Mapping[str, NDArray[Any]],
    evaluation: "Evaluation",
) -> None:
    """Write the model and its scores, with recall per class.

    In a simulation the oldest models go; in a deployment no message of a server deletes one.
    """
    store = organisation.store
    job = task.found.get(FeatureMoments.name, "")
    encoding = organisation.encoding(job)
    model = ModelFile(
        parameters,
        organisation.settings.to_config(),
        organisation.schema,
        task.found.get(BASIS, ""),
        data=organisation.subgraph.fingerprint(),
        features=job,
        encoding=encoding.to_bytes() if encoding else b"",
    )
    with store.lock():
        folder = store.job(training_job(task.run))
        if not model.basis:
            folder.write(GRAPH, Snapshot.of(organisation.subgraph).pack())
        folder.write(model_file.FILE, model.to_bytes())
        folder.write_json(names.EVALUATION, _per_class(evaluation, organisation.subgraph.classes))
        if not organisation.deployed:
            for name in _by_end(store)[1][:-KEPT]:
                store.forget(name)


def require_room(organisation: "Organisation") -> None:
    """Refuse a run whose model could not be kept without that of a finished one."""
    finished = len(_by_end(organisation.store)[1])
    if organisation.deployed and finished >= MOST_FINISHED:
        raise RunError(
            f"its store holds the models of {finished} finished runs, which is as many as it "
            "keeps: `fedlap clean-store`, there, makes room"
        )


def make_room(store: Store) -> None:
    """Delete the oldest unfinished runs, so that another one can begin."""
    for name in _by_end(store)[0][: 1 - MOST_UNFINISHED]:
        store.forget(name)


def _by_end(store: Store) -> tuple[list[str], list[str]]:
    """Training jobs that are unfinished, and those that are finished."""
    ends: tuple[list[str], list[str]] = [], []
    for name in kept_jobs(store):
        ends[_is_finished(store, name)].append(name)
    return ends


def _is_finished(store: Store, name: str) -> bool:
    """Whether a run left its last model; what cannot be read for certain is not given up."""
    folder = store.job(name)
    if not folder.has(names.MODEL):
        return False
    try:
        return not folder.has(RATION) or bool(folder.read_json(RATION)["finished"])
    except (StoreError, KeyError):
        return True


def keep_guesses(store: Store, task: Task, guesses: Guesses) -> None:
    """Write the guessed labels of a stage."""
    with store.lock():
        store.job(training_job(task.run)).write(_guesses_file(task), guesses.to_bytes())


def read_guesses(store: Store, task: Task) -> Guesses:
    """Guessed labels of a stage."""
    folder = store.job(training_job(task.run))
    if not folder.has(_guesses_file(task)):
        raise RunError(
            f"stage {task.stage} of run {task.run} learns from guesses of the stage before, and "
            "that one ended here without any: start a new run"
        )
    return Guesses.from_bytes(folder.read(_guesses_file(task)))


def _guesses_file(task: Task) -> str:
    return names.GUESSES(stage=task.stage)


def kept_jobs(store: Store) -> list[str]:
    """Training jobs, the one that was written to last at the end."""
    found = [name for name in store.jobs() if name in names.TRAINING]
    return sorted(found, key=lambda name: _written(store.job(name).path))


def _written(folder: Path) -> int:
    """When a job was written to; a file that is overwritten in place leaves its folder as it is."""
    ration = folder / RATION
    return max(path.stat().st_mtime_ns for path in (folder, ration) if path.exists())


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
