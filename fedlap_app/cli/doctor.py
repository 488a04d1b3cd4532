"""`fedlap doctor`: a dry run before hours are spent."""

from pathlib import Path

import click

from fedlap_app.cli.voice import show_findings
from fedlap_app.deploy.doctor import examine
from fedlap_app.settings import Settings

_PATH = click.Path(path_type=Path)


@click.command(
    epilog="Example: fedlap doctor --federation fedlap-bank-a/federation.toml --data /srv/bank-a"
)
@click.option("--federation", type=_PATH, required=True, help="the federation file")
@click.option("--data", type=_PATH, default=None, help="organisation folder, at an organisation")
@click.option("--store", type=_PATH, default=None, help="the client's store (default: DATA/store)")
@click.option("--conf", type=_PATH, default=None, help="preset of the run that is planned")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def doctor(
    federation: Path, data: Path | None, store: Path | None, conf: Path | None, as_json: bool
) -> None:
    """Check whether this machine can take part in a federation.

    One line a check: the SuperLink, its certificate, the clocks, versions, settings, what the
    server sees of training, the data schema, keys and disk space. The exit code is 2 when one
    fails.
    """

    def settings() -> Settings:
        from fedlap_app.cli.settings_options import settings_from

        return settings_from(conf, {})

    found = examine(federation.expanduser().absolute(), settings, data, store)
    show_findings(found, as_json)
