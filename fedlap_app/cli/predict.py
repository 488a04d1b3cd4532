"""`fedlap predict`: an organisation's predictions, written into its own folder."""

import csv
import io
import json
from contextlib import suppress
from pathlib import Path

import click

from fedlap_app import places
from fedlap_app.errors import DataError, ProtocolError
from fedlap_app.graphs.folder import read_folder
from fedlap_app.graphs.organisation import read_organisation
from fedlap_app.graphs.schema import schema_digest
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.learning.model_file import ModelFile
from fedlap_app.methods.offline.bases import Bases, FinishedBasis
from fedlap_app.settings import FEDLAP, Settings, parse_settings

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
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def predict(folder: Path, run_folder: Path | None, as_json: bool) -> None:
    """Predict the class of every node of an organisation FOLDER.

    Writes FOLDER/predictions.csv with the columns id, predicted and probability.
    """
    path = run_folder / "model.npz" if run_folder else _newest_model(folder)
    model = _read_model(path)
    settings = parse_settings(model.config)
    subgraph = read_folder(folder, directed=settings.directed)
    if schema_digest(subgraph) != model.schema:
        raise DataError(
            f"{folder} names other classes or features than the model of {path}: "
            "use the model of a run in which this organisation took part"
        )
    if settings.method == FEDLAP and model.data != subgraph.fingerprint():
        raise DataError(
            f"{path} holds no structure features for the nodes of {folder}: leave --run out, since "
            "only the model in the organisation's own store has them, and keep its data as it was"
        )
    rows, accuracy = _rows(folder, subgraph, settings, model)
    target = _write(folder, rows)
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
        [*folder.glob("store/jobs/train-*/model.npz"), *simulated.glob("jobs/train-*/model.npz")],
        key=lambda path: path.stat().st_mtime_ns,
    )
    if not found:
        raise DataError(
            f"{folder} has no model in its store: name the run folder with --run, for example "
            "--run ~/.fedlap/runs/NAME"
        )
    return found[-1]


def _read_model(path: Path) -> ModelFile:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read ({error.strerror}): name a run folder with a global model; a "
            "run with method local keeps its models at the organisations"
        ) from None
    return ModelFile.from_bytes(content, str(path))


def _basis(folder: Path, subgraph: Subgraph, job: str) -> FinishedBasis:
    """The organisation's rows of the basis, from its store: nobody else has them."""
    stores = (folder / "store", places.stores_dir() / subgraph.name)
    for store in stores:
        with suppress(ProtocolError):
            return Bases(store / "basis").find(job, subgraph.fingerprint())
    raise DataError(
        f"the model reads a spectral basis that the store of {subgraph.name} does not hold "
        f"(looked in {stores[0]} and {stores[1]}): predict where the organisation took part, with "
        "the same data"
    )


def _rows(
    folder: Path, subgraph: Subgraph, settings: Settings, model: ModelFile
) -> tuple[list[Row], float | None]:
    from fedlap_app.learning.determinism import one_thread
    from fedlap_app.learning.device import pick_device
    from fedlap_app.learning.evaluation import evaluate
    from fedlap_app.learning.evaluation import predict as predict_classes
    from fedlap_app.learning.parameters import load_parameters
    from fedlap_app.learning.tensors import GraphTensors
    from fedlap_app.methods.fedlap_plus import attach, method_model
    from fedlap_app.methods.fedlap_rows import with_share

    spec = settings.model_spec(subgraph.num_features, subgraph.num_classes)
    with one_thread():
        tensors = GraphTensors.from_subgraph(subgraph, spec, pick_device(settings.device))
        if model.basis:
            tensors = attach(tensors, _basis(folder, subgraph, model.basis), settings)
        tensors = with_share(tensors, subgraph, settings)
        network = method_model(
            settings, spec.num_features, spec.num_classes, held=subgraph.num_nodes
        ).to(tensors.device)
        load_parameters(network, model.parameters)
        classes, probabilities = predict_classes(network, tensors)
        scores = evaluate(network, tensors).test
    rows = [
        (str(node), subgraph.classes[index], f"{probability:.6f}")
        for node, index, probability in zip(subgraph.ids, classes, probabilities, strict=True)
    ]
    return rows, scores.accuracy if scores.count else None


def _write(folder: Path, rows: list[Row]) -> Path:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(("id", "predicted", "probability"))
    writer.writerows(rows)
    target, temporary = folder / "predictions.csv", folder / ".predictions.part"
    temporary.write_text(buffer.getvalue(), encoding="utf-8")
    temporary.replace(target)
    return target
