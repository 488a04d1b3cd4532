"""`fedlap datasets`, `fedlap partition` and `fedlap check`: graphs before anything is trained."""

import dataclasses
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fedlap_app.errors import DataError
from fedlap_app.graphs.agreement import check_federation
from fedlap_app.graphs.columns import columns_of, report_of, summary_of
from fedlap_app.graphs.datasets import DATASETS, Dataset, availability
from fedlap_app.graphs.federation import DataSpec, load_federation
from fedlap_app.graphs.folder import organisation_folders, read_folder, write_folder
from fedlap_app.graphs.organisation import FILE
from fedlap_app.graphs.partitions import PARTITIONS
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.graphs.tables import FORMATS
from fedlap_app.privacy.policy import read_policy


@click.command(epilog="Example: fedlap datasets --json")
@click.option("--json", "as_json", is_flag=True, help="print one JSON list")
def datasets(as_json: bool) -> None:
    """List the data sets, their sizes and whether they are on this machine."""
    rows = [_describe(entry) for entry in DATASETS.values()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    click.echo(f"{'name':<11}{'nodes':>9}{'edges':>11}{'features':>9}{'classes':>8}  here    about")
    for row in rows:
        sizes = "".join(
            f"{'any' if row[key] is None else format(row[key], ','):>{width}}"
            for key, width in (("nodes", 9), ("edges", 11), ("features", 9), ("classes", 8))
        )
        here = "yes" if row["available"] == "here" else "no"
        click.echo(f"{row['name']:<11}{sizes}  {here:<8}{row['about']}")


def _describe(entry: Dataset) -> dict[str, Any]:
    return {
        "name": entry.name,
        "about": entry.about,
        "nodes": entry.nodes or None,
        "edges": entry.edges or None,
        "features": entry.features,
        "classes": entry.classes,
        "natural_owners": entry.has_owners,
        "available": availability(entry.name),
    }


_DEFAULTS = {field.name: field.default for field in dataclasses.fields(DataSpec)}


@click.command(epilog="Example: fedlap partition cora --clients 10 --partition louvain --out parts")
@click.argument("dataset")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="folder to write")
@click.option("--clients", default=_DEFAULTS["clients"], show_default=True, type=int)
@click.option(
    "--partition",
    "partition_name",
    default="auto",
    show_default=True,
    help=f"one of {', '.join(PARTITIONS)}",
)
@click.option("--seed", default=0, show_default=True, type=int)
@click.option("--directed", is_flag=True, help="keep the direction of edges")
@click.option("--train-ratio", default=_DEFAULTS["train_ratio"], show_default=True, type=float)
@click.option("--val-ratio", default=_DEFAULTS["val_ratio"], show_default=True, type=float)
@click.option("--test-ratio", default=_DEFAULTS["test_ratio"], show_default=True, type=float)
@click.option("--accounts", default=_DEFAULTS["accounts"], show_default=True, help="of banks")
@click.option("--neighbours", default=_DEFAULTS["neighbours"], show_default=True, help="in digits")
@click.option("--format", "fmt", default="csv", show_default=True, type=click.Choice(FORMATS))
@click.option("--force", is_flag=True, help="replace the organisation folders that are there")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def partition(
    out: Path,
    partition_name: str,
    fmt: str,
    force: bool,
    as_json: bool,
    **spec: Any,  # noqa: ANN401 - fields of DataSpec
) -> None:
    """Divide a data set among organisations and write a folder for each."""
    _refuse_to_overwrite(out, force)
    parts = load_federation(DataSpec(partition=partition_name, **spec))
    _clear(out)
    for part in parts:
        write_folder(part, out / part.name, fmt)
    summaries = [_summary(part) for part in parts]
    if as_json:
        click.echo(json.dumps({"out": str(out), "organisations": summaries}, indent=2))
        return
    for summary in summaries:
        click.echo(_line(summary))
    click.echo(f"{len(parts)} organisation folders written to {out}")


def _refuse_to_overwrite(out: Path, force: bool) -> None:
    if out.is_file():
        raise DataError(f"{out} is a file: name a folder to write.")
    if out.is_dir() and any(out.iterdir()) and not force:
        raise DataError(f"{out} is not empty: name another folder or add --force.")


def _clear(out: Path) -> None:
    """Remove organisation folders of an earlier run; anything else in the folder stays."""
    for child in out.iterdir() if out.is_dir() else ():
        if (child / FILE).is_file():
            shutil.rmtree(child)


@click.command(epilog="Example: fedlap check parts")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--directed", is_flag=True, help="edges have a direction")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def check(folders: tuple[Path, ...], directed: bool, as_json: bool) -> None:
    """Check organisation folders, or folders of such folders, and whether they fit together.

    A single organisation is checked on its own. What is special about feature columns (constant,
    huge, missing values, text) is told, and what training makes of them. The exit code is 2 when
    there is a problem.
    """
    parts, problems = _read_all(folders, directed)
    if not problems and len(parts) > 1:
        problems += check_federation(parts)
    columns = columns_of(parts) if parts and not problems else []
    summaries = [_summary(part) for part in parts]
    if as_json:
        report = {"ok": not problems, "organisations": summaries, "problems": problems}
        report["columns"] = report_of(columns)
        click.echo(json.dumps(report, indent=2))
    else:
        for summary in summaries:
            click.echo(_line(summary))
        for line in summary_of(columns):
            click.echo(line)
        for problem in problems:
            click.echo(f"Problem: {problem}")
    if problems:
        sys.exit(2)


def _read_all(folders: Sequence[Path], directed: bool) -> tuple[list[Subgraph], list[str]]:
    """Subgraphs of the readable folders, and what is wrong with the others."""
    paths: list[Path] = []
    for folder in folders:
        is_one = (folder / FILE).is_file() or any(folder.glob("nodes.*"))
        paths += [folder] if is_one else organisation_folders(folder)
    parts, problems = [], []
    for path in dict.fromkeys(paths):
        try:
            parts.append(read_folder(path, directed=directed))
            read_policy(path)
        except DataError as error:
            problems.append(str(error))
    return parts, problems


def _summary(part: Subgraph) -> dict[str, Any]:
    listings = 1 if part.directed else 2
    return {
        "name": part.name,
        "nodes": part.num_nodes,
        "edges_inside": part.intra_edges[1].size // listings,
        "edges_to_others": part.inter_edges[1].size // listings,
        "partners": list(part.partners),
        "features": part.num_features,
        "classes": list(part.classes),
        "train": int(part.train_mask.sum()),
        "val": int(part.val_mask.sum()),
        "test": int(part.test_mask.sum()),
    }


def _line(summary: dict[str, Any]) -> str:
    return (
        f"{summary['name']}: {summary['nodes']:,} nodes, {summary['edges_inside']:,} edges inside, "
        f"{summary['edges_to_others']:,} to {len(summary['partners'])} others, "
        f"{summary['features']:,} features, {len(summary['classes'])} classes, "
        f"{summary['train']:,}/{summary['val']:,}/{summary['test']:,} train/val/test"
    )
