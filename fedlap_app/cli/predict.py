"""`fedlap predict`: an organisation's predictions, written into its own folder."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from fedlap_app.api.predictions_file import MANY_CHANGES, Written, predict_folder
from fedlap_app.spectral.extension import EXTENDED, NONE


@click.command(epilog="Example: fedlap predict orgs/bank-00 --run ~/.fedlap/runs/20260101-...")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--run",
    "run_folder",
    type=click.Path(path_type=Path),
    default=None,
    help="run folder with the global model (default: the newest model in the folder's store that "
    "was trained on its data)",
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

    Writes FOLDER/predictions.csv with the columns id, predicted, probability, basis (computed,
    extended from neighbours for a node that came after training, or none), confidence (the
    probability as validation nodes have it) and p_CLASS for every class.
    """
    found = predict_folder(folder, run_folder, store_dir)
    if as_json:
        click.echo(json.dumps(_report(found)))
        return
    click.echo(f"{found.nodes} predictions in {found.path}")
    if found.accuracy is not None:
        click.echo(f"accuracy on the own test nodes: {100 * found.accuracy:.2f} %")
    changes = found.changes
    if changes is not None and changes.share:
        click.echo(f"since training: {changes} (of {changes.nodes} nodes, {changes.edges} edges)")
    if found.origins[EXTENDED]:
        lacking = found.origins[NONE]
        click.echo(
            f"rows of the basis: {found.origins[EXTENDED]} extended from neighbours"
            + (f", {lacking} none, predicted from features and edges" if lacking else "")
        )
    if found.outdated and changes is not None:
        click.echo(
            f"{100 * changes.share:.0f} % of the graph changed, more than "
            f"{100 * MANY_CHANGES:.0f} %: train again, or `fedlap update`"
        )


def _report(found: Written) -> dict[str, object]:
    """The JSON object."""
    changes = found.changes
    return {
        "predictions": str(found.path),
        "nodes": found.nodes,
        "accuracy_test": found.accuracy,
        "basis": found.origins,
        "changes": None if changes is None else {**asdict(changes), "share": changes.share},
        "train_again": found.outdated,
    }
