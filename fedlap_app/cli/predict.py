"""`fedlap predict`: an organisation's predictions, written into its own folder."""

import csv
import io
import json
from pathlib import Path

import click
import numpy as np

from fedlap_app.api.stores import find_basis, find_encoding, read_model, roots_of
from fedlap_app.errors import DataError
from fedlap_app.graphs.folder import read_folder
from fedlap_app.graphs.organisation import read_organisation
from fedlap_app.graphs.schema import schema_digest
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.registry import method_class
from fedlap_app.models.model_file import FILE, ModelFile
from fedlap_app.settings import parse_settings
from fedlap_app.store import places
from fedlap_app.store.files import write_shared

Row = tuple[str, ...]


@click.command(epilog="Example: fedlap predict orgs/bank-00 --run ~/.fedlap/runs/20260101-...")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--run",
    "run_folder",
    type=click.Path(path_type=Path),
    default=None,
    help="run folder with the global model (default: the newest model in the folder's store)",
)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def predict(folder: Path, run_folder: Path | None, as_json: bool) -> None:
    """Predict the class of every node of an organisation FOLDER.

    Writes FOLDER/predictions.csv with the columns id, predicted, probability and p_CLASS for every
    class; probabilities are calibrated on the organisation's own validation nodes.
    """
    path = run_folder / FILE if run_folder else _newest_model(folder)
    model = read_model(path)
    settings = parse_settings(model.config)
    subgraph = read_folder(folder, directed=settings.directed)
    if schema_digest(subgraph) != model.schema:
        raise DataError(
            f"{folder} names other classes or features than the model of {path}: "
            "use the model of a run in which this organisation took part"
        )
    kind = method_class(settings.method)
    if kind.exchanges and kind.own_models and model.data != subgraph.fingerprint():
        raise DataError(
            f"{path} holds no structure features for the nodes of {folder}: leave --run out, since "
            "only the model in the organisation's own store has them, and keep its data as it was"
        )
    rows, accuracy = _rows(folder, subgraph, model, run_folder)
    target = _write(folder, rows, subgraph.classes)
    report = {"predictions": str(target), "nodes": len(rows), "accuracy_test": accuracy}
    if as_json:
        click.echo(json.dumps(report))
        return
    click.echo(f"{len(rows)} predictions in {target}")
    if accuracy is not None:
        click.echo(f"accuracy on the own test nodes: {100 * accuracy:.2f} %")


def _newest_model(folder: Path) -> Path:
    simulated = places.stores_dir() / read_organisation(folder).name
    found = sorted(
        [
            *folder.glob(f"store/jobs/train-*/{FILE}"),
            *simulated.glob(f"jobs/train-*/{FILE}"),
        ],
        key=lambda path: path.stat().st_mtime_ns,
    )
    if not found:
        raise DataError(
            f"{folder} has no model in its store: name the run folder with --run, for example "
            "--run ~/.fedlap/runs/NAME"
        )
    return found[-1]


def _rows(
    folder: Path, subgraph: Subgraph, model: ModelFile, run_folder: Path | None
) -> tuple[list[Row], float | None]:
    from fedlap_app.api.prediction import predict_part

    roots = roots_of(parse_settings(model.config), run_folder)
    stores = [folder / "store", *(root / subgraph.name for root in roots)]
    basis = find_basis(stores, subgraph, model.basis) if model.basis else None
    encoding = find_encoding(stores, subgraph.name, model)
    found = predict_part(subgraph, model, basis, encoding)
    shares = np.exp(found.log_probabilities.astype(np.float64))
    rows = [
        (str(node), subgraph.classes[index], f"{row[index]:.6f}", *(f"{p:.6f}" for p in row))
        for node, index, row in zip(subgraph.ids, found.classes, shares, strict=True)
    ]
    scores = found.evaluation.test
    return rows, scores.accuracy if scores.count else None


def _write(folder: Path, rows: list[Row], classes: tuple[str, ...]) -> Path:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(("id", "predicted", "probability", *(f"p_{name}" for name in classes)))
    writer.writerows(rows)
    target = folder / "predictions.csv"
    write_shared(target, buffer.getvalue().encode())
    return target
