"""What `fedlap audit --job` does: an organisation's ledgers in words or as JSON."""

import json
from pathlib import Path

import click


def show_job(path: Path, *, as_json: bool) -> None:
    """Print what the ledgers at a path say was given away.

    Parameters
    ----------
    path : a ledger.json, the folder of a job, a store, or an organisation folder.
    as_json : print one JSON object.
    """
    from fedlap_app.privacy.ledger_report import job_report, report_text

    report = job_report(path)
    click.echo(json.dumps(report, indent=2) if as_json else report_text(report))


@click.command(epilog="Example: fedlap audit --job orgs/bank-00/store")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def audit_job(path: Path, as_json: bool) -> None:
    """Say what an organisation has given away so far, from the ledgers of its jobs."""
    show_job(path, as_json=as_json)
