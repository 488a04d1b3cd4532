"""`fedlap predict`: an organisation's predictions, written into its own folder."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import click

from fedlap_app.api.stores import find_basis, read_model, roots_of
from fedlap_app.errors import DataError
from fedlap_app.graphs.folder import read_folder
from fedlap_app.graphs.organisation import read_organisation
from fedlap_app.graphs.schema import schema_digest
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.registry import method_class
from fedlap_app.models.model_file import FILE, ModelFile
from fedlap_app.settings import parse_settings
from fedlap_app.store import names, places
from fedlap_app.store.files import write_shared

Row = tuple[str, str, str]


@click.command(epilog="Example: fedlap predict orgs/bank-00 --run ~/.fedlap/runs/20260101-...")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--run",
    "run_folder",
    type=click.Path(path_type=Path),
    default=None,
    help="run folder with the global model (default: the newest model in the folder's store)",
)
@click.option(
    "--store-dir",
    "store_dir",
    type=click.Path(path_type=Path),
    default=None,
    help="store-dir of the run, where that was another one than is known here",
)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def predict(folder: Path, run_folder: Path | None, store_dir: Path | None, as_json: bool) -> None:
    """Predict the class of every node of an organisation FOLDER.

    Writes FOLDER/predictions.csv with the columns id, predicted and probability.
    """
    named = [store_dir.expanduser()] if store_dir else []
    path = run_folder / FILE if run_folder else _newest_model(folder, named)
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
    roots = [*named, *roots_of(settings, run_folder)]
    rows, accuracy = _rows(subgraph, model, _stores(folder, subgraph.name, roots))
    target = _write(folder, rows)
    report = {"predictions": str(target), "nodes": len(rows), "accuracy_test": accuracy}
    if as_json:
        click.echo(json.dumps(report))
        return
    click.echo(f"{len(rows)} predictions in {target}")
    if accuracy is not None:
        click.echo(f"accuracy on the own test nodes: {100 * accuracy:.2f} %")


def _stores(folder: Path, name: str, roots: Sequence[Path]) -> list[Path]:
    """Where the organisation's store may be: a deployed one's own, or in a folder of stores."""
    return [folder / "store", *(place for root in roots for place in (root / name, root))]


def _newest_model(folder: Path, named: Sequence[Path]) -> Path:
    stores = _stores(folder, read_organisation(folder).name, [*named, places.stores_dir()])
    kept = [
        path
        for store in dict.fromkeys(stores)
        for path in store.glob(f"{names.JOBS}/*/{FILE}")
        if path.parent.name in names.TRAINING
    ]
    found = sorted(kept, key=lambda path: path.stat().st_mtime_ns)
    if not found:
        raise DataError(
            f"{folder} has no model in its store: name the run folder with --run, for example "
            "--run ~/.fedlap/runs/NAME, or the folder of the stores with --store-dir"
        )
    return found[-1]


def _rows(
    subgraph: Subgraph, model: ModelFile, stores: Sequence[Path]
) -> tuple[list[Row], float | None]:
    from fedlap_app.api.prediction import predict_part

    basis = find_basis(stores, subgraph, model.basis) if model.basis else None
    found = predict_part(subgraph, model, basis)
    rows = [
        (str(node), subgraph.classes[index], f"{probability:.6f}")
        for node, index, probability in zip(
            subgraph.ids, found.classes, found.probabilities, strict=True
        )
    ]
    scores = found.evaluation.test
    return rows, scores.accuracy if scores.count else None


def _write(folder: Path, rows: list[Row]) -> Path:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(("id", "predicted", "probability"))
    writer.writerows(rows)
    target = folder / "predictions.csv"
    write_shared(target, buffer.getvalue().encode())
    return target
