"""`fedlap clean-store`: make room in client stores without losing who one is."""

import json
from pathlib import Path

import click

from fedlap_app.errors import ConfigError
from fedlap_app.flower.client.cleaning import KINDS, clean, is_store, measured, store_of
from fedlap_app.store import places

_MB = 1e6


@click.command(
    name="clean-store", epilog="Example: fedlap clean-store /srv/bank-a --older-than 30 --dry-run"
)
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--older-than",
    type=click.FloatRange(min=0.0),
    default=30.0,
    show_default=True,
    help="days since something was written to last",
)
@click.option("--all", "everything", is_flag=True, help="whatever its age")
@click.option(
    "--only", multiple=True, type=click.Choice(KINDS), help="nothing but these (default: all)"
)
@click.option("--dry-run", is_flag=True, help="say what would be deleted, delete nothing")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def clean_store(
    folders: tuple[Path, ...],
    older_than: float,
    everything: bool,
    only: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Delete old models, bases, unfinished jobs and leftovers from client stores.

    FOLDERS are stores or organisation folders, which stand for their store/; without one, the
    stores of all simulated organisations. Identity, secret, remembered fingerprints and files
    that FedLap did not write always stay. A basis that was deleted is computed again by the next
    run, an unfinished job starts anew. A store that a run uses at the moment is refused, and so
    is a folder that is no store.
    """
    roots = [store_of(folder.expanduser().absolute()) for folder in folders] or _simulated()
    days = 0.0 if everything else older_than
    report = {}
    for root in roots:
        found = measured(clean(root, only or KINDS, days, dry=dry_run))
        report[str(root)] = {
            kind: {"count": count, "bytes": size} for kind, (count, size) in found.items()
        }
    total = sum(each["bytes"] for found in report.values() for each in found.values())
    if as_json:
        facts = {"dry_run": dry_run, "stores": report, "bytes": total}
        click.echo(json.dumps(facts, indent=2))
        return
    for name, kinds in report.items():
        listed = ", ".join(f"{each['count']} {kind}" for kind, each in kinds.items())
        click.echo(f"{name}: {listed}")
    click.echo(f"{'Would free' if dry_run else 'Freed'} {total / _MB:.2f} MB")


def _simulated() -> list[Path]:
    root = places.stores_dir()
    found = sorted(path for path in root.glob("*") if is_store(path))
    if not found:
        raise ConfigError(f"there is no store in {root}: name a store or an organisation folder")
    return found
