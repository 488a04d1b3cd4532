"""`fedlap compare` says whether it is worth joining."""

import json
from pathlib import Path
from typing import Any

import click

from fedlap_app.cli.settings_options import collect, settings_options
from fedlap_app.cli.voice import say, set_verbosity, terminated_like_interrupted
from fedlap_app.errors import ConfigError
from fedlap_app.settings import parse_settings


@click.command(
    epilog="Example: fedlap compare --dataset cora --clients 10 --partition random --seeds 5 "
    "--jobs 2 --plot cora.svg"
)
@settings_options
@click.option("--methods", help="list of methods (default: local,fedavg,fedlap+,central)")
@click.option("--seeds", type=click.IntRange(min=1), default=5, help="seeds (default: 5)")
@click.option(
    "--seed-start", type=click.IntRange(0, 2**63 - 1), default=None, help="the first seed"
)
@click.option(
    "--split",
    type=click.Choice(["given", "time"]),
    default="given",
    help="time: train on the past of --data, test on what came last (default: given)",
)
@click.option("--last", type=float, default=0.2, help="share that came last (default: .2)")
@click.option("--jobs", type=click.IntRange(min=1), default=1, help="trainings at the same time")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="write the rows here")
@click.option("--plot", type=click.Path(path_type=Path), help="draw them here: .png, .svg or .pdf")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def compare(
    conf: Path | None,
    methods: str | None,
    seeds: int,
    seed_start: int | None,
    split: str,
    last: float,
    jobs: int,
    csv_file: Path | None,
    plot: Path | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one per setting
) -> None:
    """Say whether it is worth joining: methods on the same splits, over several seeds.

    Shows means with 95 % intervals, paired differences, every organisation, bytes, seconds,
    vectors exchanged and what the worst-case attacker makes of them. A folder beside the runs
    keeps compare.json, compare.csv and compare.svg.
    """
    from fedlap_app.api.organisations import named_by
    from fedlap_app.studies.compare import METHODS, compare_settings, new_folder
    from fedlap_app.studies.report_files import check_chart, check_folder

    set_verbosity(False)
    if options.get("method"):
        raise ConfigError("--method names one method: give --methods a list, or leave it out")
    settings = parse_settings(collect(conf, options))
    names = METHODS if methods is None else tuple(methods.replace(" ", "").split(","))
    if csv_file is not None:
        check_folder(csv_file)
    if plot is not None:
        check_chart(plot)
    first = settings.seed if seed_start is None else seed_start
    with terminated_like_interrupted():
        found = compare_settings(
            settings,
            names,
            range(first, first + seeds),
            orgs=named_by(settings),
            jobs=jobs,
            last=last if split == "time" else 0.0,
            say=say,
        )
    folder = new_folder(settings)
    found.save(folder)
    if csv_file is not None:
        found.write_csv(csv_file)
    if plot is not None:
        found.draw(plot)
    if as_json:
        click.echo(json.dumps({**found.report, "folder": str(folder)}, indent=2))
    else:
        click.echo(f"{found!r}\nfolder: {folder}")
