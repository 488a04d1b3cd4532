"""`fedlap keys`: keys, certificates and start commands of a federation across organisations."""

import json
from pathlib import Path
from typing import Any

import click

from fedlap_app.cli.option_types import Folder, Port
from fedlap_app.cli.voice import show_findings
from fedlap_app.deploy.certificates import SERVER_DAYS
from fedlap_app.deploy.check_keys import check_folder
from fedlap_app.deploy.coordinator import PORT, Wishes, find_federation, issue, warnings
from fedlap_app.deploy.demo import WARNING, find_demo, make_demo
from fedlap_app.deploy.organisation import NODE_PORT, make_request, place_of
from fedlap_app.deploy.request import FILE, read_request
from fedlap_app.graphs.federation import DataSpec
from fedlap_app.privacy.federation import Federation

_FOLDER = Folder()
_PORT = Port()


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: fedlap keys demo --out demo --clients 3",
)
def keys() -> None:
    """Keys, certificates and start commands for a federation across organisations.

    Each organisation runs `request`, which also writes its start commands. The coordinator runs
    `issue` on the requests and sends each organisation two files of data, and everyone runs
    `check`. `demo` does all of it in one place.
    """


@keys.command(epilog="Example: fedlap keys request --name bank-a --data /srv/bank-a --out bank-a")
@click.option("--name", default=None, help="the organisation; must be the name in its org.toml")
@click.option("--data", type=_FOLDER, required=True, help="its organisation folder")
@click.option("--out", type=_FOLDER, default=None, help="folder for keys (default: fedlap-NAME)")
@click.option(
    "--store",
    type=_FOLDER,
    default=None,
    help="the client's store (default: as in OUT/organisation.env, else DATA/store)",
)
@click.option(
    "--port",
    type=_PORT,
    default=None,
    help=f"SuperNode, local (default: as in OUT/organisation.env, else {NODE_PORT})",
)
@click.option(
    "--renew",
    is_flag=True,
    help="make new keys; the old ones stay as *.previous, *.previous-2, ...",
)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def request(
    name: str | None,
    data: Path,
    out: Path | None,
    store: Path | None,
    port: int | None,
    renew: bool,
    as_json: bool,
) -> None:
    """Make an organisation's keys, there, and write a request for the coordinator.

    Keys that exist are kept, and lines that you added to organisation.env; start.sh, units and
    compose.yml are written anew, as the installed package has them. Nothing in request.json is
    secret; keys/ and the store are, and never leave the organisation.
    """
    from fedlap_app.graphs.organisation import read_organisation

    if out is None:
        out = Path(f"fedlap-{read_organisation(data).name}")
    place = place_of(data, out, store, port)
    made = make_request(place, name, renew=renew)
    facts = {
        "name": made.name,
        "fingerprint": made.fingerprint,
        "supernode_key": made.key_fingerprint,
        "schema": made.schema,
        "request": str(place.out / FILE),
        "store": str(place.store),
    }
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(f"{made.name}: fingerprint {made.fingerprint}")
    click.echo(f"  SuperNode key  {made.key_fingerprint}")
    click.echo(f"  keys           {place.out / 'keys'}, {place.identity} (secret, stay here)")
    click.echo(f"  request        {place.out / FILE} (send it to the coordinator)")
    click.echo(
        f"  start          {place.out / 'start.sh'} (once ca.crt and federation.toml are here)"
    )


@keys.command(
    name="issue",
    epilog="Example: fedlap keys issue --name banks --server fedlap.example.org --out coordinator "
    "bank-a.json bank-b.json",
)
@click.argument("requests", nargs=-1, type=_FOLDER)
@click.option("--name", default=None, help="the federation")
@click.option("--server", "servers", multiple=True, help="name or address of the SuperLink")
@click.option("--port", type=_PORT, default=None, help=f"for organisations (default: {PORT})")
@click.option(
    "--listen",
    default=None,
    help="ADDRESS:PORT of the SuperLink, if behind a proxy (default: all addresses, the same port)",
)
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=SERVER_DAYS,
    show_default=True,
    help="that a new server certificate lasts",
)
@click.option("--renew", is_flag=True, help="make a new server certificate")
@click.option("--replace", is_flag=True, help="accept new keys of a member")
@click.option("--remove", multiple=True, help="a member that leaves")
@click.option("--out", type=_FOLDER, required=True, help="the coordinator's folder")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def issue_command(
    requests: tuple[Path, ...],
    out: Path,
    as_json: bool,
    **wishes: Any,  # noqa: ANN401 - fields of Wishes
) -> None:
    """Make a federation out of requests, or add to the one that the folder holds.

    What is not given stays as it was. The first --server is the one that organisations use; the
    certificate covers all of them. The authority's key, ca/ca.key, is needed for a new certificate
    only (--renew, new names, expiry) and may be kept elsewhere.
    """
    found = [read_request(path) for path in requests]
    out = out.expanduser().absolute()
    before = find_federation(out)
    federation = issue(out, found, Wishes(**wishes))
    told = warnings(before, federation)
    if as_json:
        facts = {"out": str(out), **_facts(federation), "warnings": told}
        click.echo(json.dumps(facts, indent=2))
        return
    _show(federation)
    click.echo(f"Start the SuperLink: {out / 'superlink' / 'start.sh'}, then register.sh beside it")
    click.echo(f"Send each organisation its two files below {out / 'organisations'}")
    click.echo("Let the organisations compare the fingerprints among themselves before they start")
    for sentence in told:
        click.echo(f"Warning: {sentence}", err=True)


@keys.command(epilog="Example: fedlap keys check fedlap-bank-a")
@click.argument("folder", type=_FOLDER)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def check(folder: Path, as_json: bool) -> None:
    """Check the folder of an organisation or of the coordinator.

    One line a check: expiry, names, permissions, fingerprints, missing and damaged files. The exit
    code is 2 when one fails.
    """
    show_findings(check_folder(folder.expanduser().absolute()), as_json)


@keys.command(epilog="Example: fedlap keys demo --out demo --clients 3 --accounts 400")
@click.option("--out", type=_FOLDER, required=True, help="folder to write, new or empty")
@click.option("--clients", type=int, default=3, show_default=True, help="organisations")
@click.option("--dataset", default="banks", show_default=True, help="as `fedlap datasets` lists")
@click.option("--partition", default="auto", show_default=True, help="who holds which node")
@click.option("--accounts", type=int, default=400, show_default=True, help="of banks")
@click.option("--seed", type=int, default=0, show_default=True, help="of split and partition")
@click.option("--server", "servers", multiple=True, help="of the SuperLink (default: 127.0.0.1)")
@click.option("--port", type=_PORT, default=PORT, show_default=True, help="of the SuperLink")
@click.option("--listen", default=None, help="ADDRESS:PORT of the SuperLink")
@click.option(
    "--node-port", type=_PORT, default=NODE_PORT, show_default=True, help="first SuperNode"
)
@click.option("--keep", is_flag=True, help="leave a demonstration that is there as it is")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def demo(
    out: Path,
    servers: tuple[str, ...],
    port: int,
    listen: str | None,
    node_port: int,
    keep: bool,
    as_json: bool,
    **spec: Any,  # noqa: ANN401 - fields of DataSpec
) -> None:
    """Make data, keys and start commands of a whole federation in one folder.

    For demonstrations only: whoever has the folder has everybody's private keys.
    """
    found = find_demo(out) if keep else None
    made = found or make_demo(
        out,
        DataSpec(**spec),
        servers=servers or ("127.0.0.1",),
        port=port,
        listen=listen,
        node_port=node_port,
    )
    folders = {name: str(made.organisation(name)) for name in made.federation.pins}
    if as_json:
        facts = {"warning": WARNING, "superlink": str(made.superlink), "organisations": folders}
        click.echo(json.dumps({"out": str(made.out), **facts, **_facts(made.federation)}, indent=2))
        return
    click.echo(WARNING)
    _show(made.federation)
    click.echo("Start, each in a terminal of its own:")
    click.echo(f"  {made.superlink / 'start.sh'}")
    click.echo(f"  {made.superlink / 'register.sh'}    (once, when the SuperLink is up)")
    for folder in folders.values():
        click.echo(f"  {folder}/start.sh")
    count = f'--run-config "clients={len(folders)}"'
    click.echo(f"Then: {made.superlink / 'flwr.sh'} run . fedlap --stream {count}")


def _facts(federation: Federation) -> dict[str, Any]:
    return {
        "federation": federation.name,
        "address": federation.address,
        "servers": list(federation.servers),
        "certificate_expires": federation.certificate_expires.isoformat(),
        "authority_expires": federation.authority_expires.isoformat(),
        "authority": federation.authority,
        "members": federation.pins,
    }


def _show(federation: Federation) -> None:
    click.echo(
        f"Federation {federation.name}: {len(federation.members)} organisations, SuperLink at "
        f"{federation.address}, certificate good until {federation.certificate_expires:%Y-%m-%d}"
    )
    for name, fingerprint in federation.pins.items():
        click.echo(f"  {name:<16} {fingerprint}")
