"""An organisation's predictions for the nodes that its folder lists now, written beside them."""

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedlap_app.api.stores import (
    Kept,
    find_encoding,
    find_sums,
    newest_fitting,
    read_model,
    require_own_rows,
    require_schema,
    roots_of,
    stores_of,
    with_graph,
)
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.graphs.folder import read_folder
from fedlap_app.graphs.snapshot import Changes
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.models.model_file import FILE
from fedlap_app.settings import parse_settings
from fedlap_app.spectral.extension import COMPUTED, EXTENDED, NONE
from fedlap_app.store import names, places
from fedlap_app.store.files import write_shared

NAME, OUTDATED = "predictions.csv", "predictions.outdated.csv"
MANY_CHANGES = 0.1
"""Share of nodes, edges or features that changed above which training anew is advised."""


@dataclass(frozen=True, eq=False)
class Written:
    """What was predicted.

    Attributes
    ----------
    path : the file.
    nodes : number of nodes.
    origins : number of nodes whose row of the basis is computed, extended or none.
    changes : of the graph since training; None: the store does not tell.
    accuracy : on the own test nodes; None without any.
    """

    path: Path
    nodes: int
    origins: dict[str, int]
    changes: Changes | None
    accuracy: float | None

    @property
    def outdated(self) -> bool:
        """Whether so much changed that training anew is worth it."""
        return self.changes is not None and self.changes.share > MANY_CHANGES


def predict_folder(
    folder: Path, run_folder: Path | None = None, store_dir: Path | None = None
) -> Written:
    """Predict for every node of an organisation folder, and write ``predictions.csv`` into it.

    Predictions of an earlier call do not stay under that name when this one fails.

    Parameters
    ----------
    folder
        The organisation folder.
    run_folder
        Run folder with the server's model (default: the newest model in the organisation's store).
    store_dir
        Folder of the stores, or the organisation's store itself, where that is not known here.
    """
    from fedlap_app.api.prediction import predict_part

    target = folder / NAME
    with _marked_on_failure(target):
        part, kept, stores = loaded(folder, run_folder, store_dir)
        encoding = find_encoding(stores, part.name, kept.model)
        others = find_sums(stores, part, parse_settings(kept.model.config))
        found = predict_part(part, kept.model, kept.basis, kept.graph, encoding, others)
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        shares = [f"p_{name}" for name in part.classes]
        writer.writerow(("id", "predicted", "probability", "basis", "confidence", *shares))
        columns = (part.ids, found.classes, found.probabilities, found.origins, found.probabilities)
        probabilities = np.exp(found.log_probabilities)
        for node, best, probability, origin, confidence, row in zip(
            *columns, probabilities, strict=True
        ):
            told = (f"{value:.6f}" for value in row)
            facts = (f"{probability:.6f}", origin, f"{confidence:.6f}")
            writer.writerow((node, part.classes[best], *facts, *told))
        write_shared(target, buffer.getvalue().encode())
    counts = {each: int((found.origins == each).sum()) for each in (COMPUTED, EXTENDED, NONE)}
    scores = found.evaluation.test
    accuracy = scores.accuracy if scores.count else None
    return Written(target, part.num_nodes, counts, found.changes, accuracy)


def loaded(
    folder: Path, run_folder: Path | None = None, store_dir: Path | None = None
) -> tuple[Subgraph, Kept, list[Path]]:
    """The organisation's part, what it predicts with, and the stores that may hold more."""
    named = [] if store_dir is None else [store_dir.expanduser()]
    if run_folder is None:
        part = read_folder(folder)
        stores = [*stores_of(part, [*named, places.stores_dir()], folder), *named]
        kept = newest_fitting(stores, part)
        if parse_settings(kept.model.config).directed:
            part = read_folder(folder, directed=True)
            kept = newest_fitting(stores, part)
        return part, kept, stores
    path = run_folder / FILE
    model = read_model(path)
    settings = parse_settings(model.config)
    part = read_folder(folder, directed=settings.directed)
    require_schema(part, model, str(path))
    require_own_rows(part, model, str(path))
    stores = [*stores_of(part, [*named, *roots_of(settings, run_folder)], folder), *named]
    return part, with_graph(model, stores, part, _run_id(run_folder)), stores


def _run_id(folder: Path) -> int:
    """Number of a run; 0, which none has, when its folder does not tell."""
    if not (folder / names.SUMMARY).is_file():
        return 0
    return int(RunFolder(folder).read_json(names.SUMMARY).get("run_id", 0))


@contextmanager
def _marked_on_failure(target: Path) -> Iterator[None]:
    """Rename what an earlier call left when this one fails."""
    try:
        yield
    except BaseException:
        if target.is_file():
            target.replace(target.with_name(OUTDATED))
        raise
    target.with_name(OUTDATED).unlink(missing_ok=True)
