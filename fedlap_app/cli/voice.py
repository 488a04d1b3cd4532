"""What a command says beside its result, what it shows of Flower's log, how it takes its end."""

import io
import json
import logging
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

import click

from fedlap_app.deploy.findings import Finding, failed, report
from fedlap_app.logs import use_logs_as_asked, wants_json

_WORDS = {logging.WARNING: "Warning: ", logging.ERROR: "Error: "}
_log = logging.getLogger("fedlap")


def say(text: str, level: int = logging.INFO) -> None:
    """Say something on stderr: a plain line, or a log line if those are to be JSON."""
    if not wants_json():
        click.echo(f"{_WORDS.get(level, '')}{text}", err=True)
        return
    if not _log.handlers:
        use_logs_as_asked()
    _log.log(level, "%s", text)


def show_findings(findings: Sequence[Finding], as_json: bool) -> None:
    """Print one line a check, or one JSON object; exit with 2 when one failed."""
    if as_json:
        click.echo(json.dumps(report(findings), indent=2))
    else:
        for finding in findings:
            click.echo(finding.line)
    if failed(findings):
        sys.exit(2)


def counted(number: int, what: str) -> str:
    """A number of things, with an s where there is not one."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def unit_of(number: int, things: str) -> str:
    """What so many things are called: rounds, or round where there is one."""
    return things.removesuffix("s") if number == 1 else things


def bar_stream() -> TextIO:
    """Where progress bars go: to stderr, but not between lines of JSON."""
    return io.StringIO() if wants_json() else sys.stderr


def set_verbosity(verbose: bool) -> None:
    """Show Flower's log lines, or only errors; Flower sets the level when it is imported."""
    import flwr.common.logger  # noqa: F401

    use_logs_as_asked()
    logging.getLogger("flwr").setLevel(logging.INFO if verbose else logging.ERROR)


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM, which services and containers send, do what Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
