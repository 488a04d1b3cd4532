"""How commands show what checks found."""

import json
import sys
from collections.abc import Sequence

import click

from fedlap_app.deploy.findings import Finding, failed, report


def show_findings(findings: Sequence[Finding], as_json: bool) -> None:
    """Print one line a check, or one JSON object; exit with 2 when one failed."""
    if as_json:
        click.echo(json.dumps(report(findings), indent=2))
    else:
        for finding in findings:
            click.echo(finding.line)
    if failed(findings):
        sys.exit(2)
