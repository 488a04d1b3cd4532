"""`fedlap spectrum`: the offline phase alone, on the in-process grid."""

import json
from pathlib import Path
from typing import Any

import click

from fedlap_app.cli.settings_options import SettingsCommand, settings_from, settings_options
from fedlap_app.cli.voice import bar_stream, say, set_verbosity


@click.command(
    cls=SettingsCommand,
    epilog="Example: fedlap spectrum --dataset cora --clients 10 --vectors 100 --check --json",
)
@settings_options
@click.option("--check", is_flag=True, help="compare with scipy on the whole graph (only here)")
@click.option(
    "--dump",
    type=click.Path(path_type=Path),
    default=None,
    help="folder for NAME.npz with ids, U and eigenvalues (only here)",
)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
@click.option("--verbose", is_flag=True, help="show the log of the server and the clients")
def spectrum(
    conf: Path | None,
    check: bool,
    dump: Path | None,
    as_json: bool,
    verbose: bool,
    **options: Any,  # noqa: ANN401 - one per setting
) -> None:
    """Compute the spectral basis of a federation on this machine and print what it took.

    Stores are temporary unless --store-dir names a folder, where a finished basis is reused.
    """
    from fedlap_app.studies.spectrum import run_spectrum

    settings = settings_from(conf, options)
    set_verbosity(verbose)
    if check or dump:
        say("Rows of all organisations are gathered: possible in one process only")
    bar = _Bar()
    report = run_spectrum(settings, check=check, dump=dump, progress=bar)
    bar.close()
    click.echo(json.dumps(report, indent=2) if as_json else _text(report))


class _Bar:
    """A progress bar over the round trips, on the error stream."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._last = 0

    def __call__(self, number: int, rounds: int) -> None:
        """Move on."""
        if self._bar is None:
            self._bar = click.progressbar(range(rounds), label="spectral basis", file=bar_stream())
        self._bar.update(number - self._last)
        self._last = number

    def close(self) -> None:
        """Leave the line."""
        if self._bar is not None:
            self._bar.render_finish()


def _text(report: dict[str, Any]) -> str:
    lines = [
        f"{report['operator']} of {report['dataset']}, {report['clients']} organisations, "
        f"{report['vectors']} vectors exchanged, {report['rank']} kept, {report['backend']}",
        f"  round trips     {report['round_trips']} and {report['handshake_round_trips']} "
        "in the handshake",
        f"  sent            {report['bytes_up_per_client'] / 1e6:.2f} MB per organisation",
        f"  received        {report['bytes_down_per_client'] / 1e6:.2f} MB per organisation",
        f"  seconds         {report['seconds']:.2f}, with sums {report['seconds_secure']:.2f}",
        f"  orthogonality   {report['orthogonality']:.1e}",
        f"  residual        {report['residual_max']:.1e} at most",
    ]
    if report["capture"] is not None:
        lines.append(f"  capture         {report['capture']:.6f}")
    return "\n".join(lines)
