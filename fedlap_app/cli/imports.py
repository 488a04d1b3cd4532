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
@click.option("--weight", default=None, help="column of EDGES")
@click.option("--features", default=None, help="columns of NODES, a,b,c (default: all others)")
@click.option("--clients", default=0, type=int, help="organisations, without --owner")
@click.option(
    "--partition",
    default="auto",
    show_default=True,
    type=click.Choice(PARTITIONS),
    help="who holds",
)
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
    clients: int,
    partition: str,
    seed: int,
    directed: bool,
    as_json: bool,
    **columns: str | None,
) -> None:
    """Turn a table of NODES and one of EDGES (CSV or Parquet) into organisation folders.

    Columns with usual names (id, label, split, source, target, weight) are found by themselves.
    Nodes without a split are divided into training, validation and test nodes. NODES may also be
    one npz file with the arrays x, y and edge_index.
    """
    from fedlap_app.api.exports import from_exports

    named = {key: name for key, name in {"id": id_, **columns}.items() if name}
    orgs = from_exports(
        nodes,
        edges,
        named,
        owners=owner,
        features=features.split(",") if features else None,
        clients=clients,
        partition=partition,
        seed=seed,
        directed=directed,
    )
    orgs.save(out)
    if as_json:
        click.echo(json.dumps({"out": str(out), "organisations": list(orgs.names)}))
        return
    click.echo(f"{orgs!r}")
    click.echo(f"{counted(len(orgs.names), 'organisation folder')} written to {out}")
