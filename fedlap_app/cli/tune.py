"""`fedlap tune` chooses settings for a graph by validation."""

import json
from pathlib import Path
from typing import Any

import click

from fedlap_app.cli.settings_options import settings_from, settings_options
from fedlap_app.cli.voice import say, set_verbosity, terminated_like_interrupted


@click.command(
    epilog="Example: fedlap tune --data orgs --minutes 10; then fedlap run --conf preset.toml"
)
@settings_options
@click.option("--trials", type=click.IntRange(min=1), default=24, help="trainings (default: 24)")
@click.option("--minutes", type=float, default=0.0, help="no trial begins later; 0: no limit")
@click.option(
    "--bases",
    type=click.IntRange(min=1),
    default=1,
    help="spectral bases that may be computed, each with vectors of its own (default: 1)",
)
@click.option("--seeds", type=click.IntRange(min=1), default=1, help="seeds a trial (default: 1)")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="where trials are noted; a folder that holds some goes on",
)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def tune(
    conf: Path | None,
    trials: int,
    minutes: float,
    bases: int,
    seeds: int,
    folder: Path | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one per setting
) -> None:
    """Choose settings for a graph by validation, never by test nodes.

    Tries a small portfolio, then changes of what validates best, all on one spectral basis. The
    folder holds preset.toml, a table of the trials, and goes on after Ctrl-C. Settings that are
    given are where it begins.
    """
    from fedlap_app.api.organisations import named_by
    from fedlap_app.api.workplace import folder_at
    from fedlap_app.studies.tune import Search, new_folder

    set_verbosity(False)
    settings = settings_from(conf, options)
    orgs = named_by(settings)
    search = Search(settings.with_clients(len(orgs)), orgs, trials, minutes, bases, seeds, say)
    target = new_folder(settings) if folder is None else folder_at(folder, "folder")
    say(f"Trials are noted in {target}")
    with terminated_like_interrupted():
        found = search.run(target)
    if as_json:
        click.echo(json.dumps(found.report, indent=2))
    else:
        click.echo(f"{found!r}\npreset: {found.preset}")
