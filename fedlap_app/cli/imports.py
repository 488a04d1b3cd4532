"""`fedlap import`: plain exports become organisation folders."""

import json
from pathlib import Path

import click

from fedlap_app.cli.voice import counted
from fedlap_app.graphs.partitions import PARTITIONS

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command(
    "import", epilog="Example: fedlap import accounts.csv transfers.csv --owner bank --out orgs"
)
@click.argument("nodes", type=_FILE)
@click.argument("edges", type=_FILE, required=False)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="folder to write")
@click.option("--owner", default=None, help="column of NODES that says who holds a node")
@click.option("--id", "id_", default=None, help="column of NODES with the ids")
@click.option("--label", default=None, help="column of NODES with the class, empty if unknown")
@click.option(
    "--split", default=None, help="column of NODES with train, val, test (default: drawn)"
)
@click.option("--source", default=None, help="column of EDGES")
@click.option("--target", default=None, help="column of EDGES")
@click.option(
    "--weight", default=None, help="column of EDGES (default: weight or amount; '': all weigh 1)"
)
@click.option("--features", default=None, help="columns of NODES, a,b,c (default: all others)")
@click.option("--categories", default="", help="features that are text, though they are numbers")
@click.option("--drop-strangers", is_flag=True, help="leave out edges to what is not in NODES")
@click.option("--clients", default=0, type=int, help="organisations, without --owner")
@click.option(
    "--partition",
    default="auto",
    show_default=True,
    type=click.Choice(PARTITIONS),
    help="who holds",
)
@click.option(
    "--train-ratio", default=0.6, show_default=True, help="of labelled nodes, where no split is"
)
@click.option("--val-ratio", default=0.2, show_default=True, help="the rest are test nodes")
@click.option("--seed", default=0, show_default=True, type=int)
@click.option("--directed", is_flag=True, help="keep the direction of edges")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def import_(
    nodes: Path,
    edges: Path | None,
    out: Path,
    owner: str | None,
    id_: str | None,
    features: str | None,
    categories: str,
    drop_strangers: bool,
    clients: int,
    partition: str,
    train_ratio: float,
    val_ratio: float,
    seed: int,
    directed: bool,
    as_json: bool,
    **columns: str | None,
) -> None:
    """Turn a table of NODES and one of EDGES (CSV or Parquet) into organisation folders.

    Columns with usual names (id, label, split, source, target, weight) are found by themselves.
    Nodes without a split are divided into training, validation and test nodes. EDGES may also be
    a bare list of two or three columns. NODES alone may be an npz file with the arrays x, y and
    edge_index, or a torch_geometric Data that torch.save wrote (pt).
    """
    from fedlap_app.api.exports import from_exports

    named = {key: name for key, name in {"id": id_, **columns}.items() if name is not None}
    orgs, lines = from_exports(
        nodes,
        edges,
        named,
        owners=owner,
        features=_list(features) or None,
        categories=_list(categories),
        drop_strangers=drop_strangers,
        clients=clients,
        partition=partition,
        train_ratio=train_ratio,
        val_ratio=val_ratio,
        test_ratio=round(1 - train_ratio - val_ratio, 9),
        seed=seed,
        directed=directed,
    )
    orgs.save(out)
    if as_json:
        click.echo(json.dumps({"out": str(out), "organisations": list(orgs.names)}))
        return
    click.echo("\n".join([*lines, f"{orgs!r}"]))
    click.echo(f"{counted(len(orgs.names), 'organisation folder')} written to {out}")


def _list(names: str | None) -> list[str]:
    return [name.strip() for name in (names or "").split(",") if name.strip()]
