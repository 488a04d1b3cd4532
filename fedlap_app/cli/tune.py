"""`fedlap tune` chooses settings for a graph by validation."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedlap_app.cli.run import flower_at, nodes_of
from fedlap_app.cli.settings_options import settings_from, settings_options
from fedlap_app.cli.voice import say, set_verbosity, terminated_like_interrupted
from fedlap_app.errors import ConfigError
from fedlap_app.settings import Settings

if TYPE_CHECKING:
    from fedlap_app.studies.tune_runs import Trainer


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
@click.option("--flower", is_flag=True, help="make every trial a run of Flower's simulation")
@click.option(
    "--superlink",
    default=None,
    help="HOST:PORT of a SuperLink: every trial is a run on its SuperNodes",
)
@click.option(
    "--root-certificates",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=None,
    help="ca.crt of that SuperLink (default: a connection without TLS)",
)
@click.option("--timeout", type=float, default=6.0, help="hours to wait for a run (default: 6)")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def tune(
    conf: Path | None,
    flower: bool,
    superlink: str | None,
    root_certificates: Path | None,
    timeout: float,
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
    given are where it begins. With --flower or --superlink the trials are runs of Flower, each
    with the consent and the ledger entry of a run; a federation shares its basis among them.
    """
    from fedlap_app.api.workplace import folder_at
    from fedlap_app.studies.tune import Search, new_folder

    set_verbosity(False)
    settings = settings_from(conf, options)
    if root_certificates and not superlink:
        raise ConfigError("--root-certificates goes with --superlink: name the SuperLink as well")
    target = new_folder(settings) if folder is None else folder_at(folder, "folder")
    say(f"Trials are noted in {target}")
    with terminated_like_interrupted(), ExitStack() as stack:
        if flower or superlink:
            trainer = _runs(settings, stack, superlink, root_certificates, timeout)
        else:
            trainer = _here(settings)
        settings = settings.with_clients(trainer.clients)
        found = Search(settings, trainer, trials, minutes, bases, seeds, say).run(target)
    if as_json:
        click.echo(json.dumps(found.report, indent=2))
    else:
        click.echo(f"{found!r}\npreset: {found.preset}")


def _here(settings: Settings) -> "Trainer":
    """Trials on this machine, on all its cores."""
    from fedlap_app.api.organisations import named_by
    from fedlap_app.flower.grids.workers import usable_cores
    from fedlap_app.studies.tune import require_validation
    from fedlap_app.studies.tune_runs import Here

    orgs = named_by(settings)
    require_validation(orgs)
    return Here(orgs, settings.processes or usable_cores())


def _runs(
    settings: Settings,
    stack: ExitStack,
    superlink: str | None,
    authority: Path | None,
    hours: float,
) -> "Trainer":
    """Trials as runs of Flower, whose SuperLink ends with them if it is our own."""
    from fedlap_app.studies.tune_runs import Runs

    nodes = settings.clients or (0 if superlink else nodes_of(settings.data))
    return Runs(stack.enter_context(flower_at(superlink, authority)), nodes, hours, superlink or "")
