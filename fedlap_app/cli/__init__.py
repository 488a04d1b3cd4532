"""The `fedlap` command: one file a family of commands, loaded when it is called."""

import difflib
import errno
import logging
import sys
from importlib import import_module

import click

from fedlap_app.cli.voice import bar_stream, say
from fedlap_app.errors import FedLapError
from fedlap_app.version import VERSION

INTERRUPTED = 130  # as shells say it: 128 and the number of SIGINT
_COMMANDS = {
    "datasets": "fedlap_app.cli.data:datasets",
    "import": "fedlap_app.cli.imports:import_",
    "partition": "fedlap_app.cli.data:partition",
    "check": "fedlap_app.cli.data:check",
    "spectrum": "fedlap_app.cli.spectrum:spectrum",
    "plan": "fedlap_app.cli.plan:plan",
    "train": "fedlap_app.cli.train:train",
    "run": "fedlap_app.cli.run:run",
    "compare": "fedlap_app.cli.compare:compare",
    "tune": "fedlap_app.cli.tune:tune",
    "update": "fedlap_app.cli.update:update_command",
    "predict": "fedlap_app.cli.predict:predict",
    "report": "fedlap_app.cli.report:report",
    "audit": "fedlap_app.cli.audit:audit",
    "attack": "fedlap_app.cli.attack:attack",
    "bench": "fedlap_app.cli.bench:bench",
    "keys": "fedlap_app.cli.keys:keys",
    "doctor": "fedlap_app.cli.doctor:doctor",
    "status": "fedlap_app.cli.status:status",
    "clean-store": "fedlap_app.cli.clean_store:clean_store",
}


class Commands(click.Group):
    """Loads a command only when it is called, and shows our errors as one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in the order of their use."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command."""
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is asked for; of one that is not there, what may be meant."""
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0].lower(), _COMMANDS, n=1)
            meant = f"did you mean `fedlap {near[0]}`?" if near else "`fedlap --help` lists them"
            raise click.UsageError(f"there is no command {args[0]!r}: {meant}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; bad input ends with exit code 2 and one sentence."""
        try:
            return super().invoke(ctx)
        except FedLapError as error:
            say(str(error), logging.ERROR)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # click ends quietly when nobody reads on, as after `| head -1`
            where = f"{error.filename}: " if error.filename else ""
            what = error.strerror or type(error).__name__
            say(f"{where}{what}: check the path and its permissions", logging.ERROR)
        except (MemoryError, RuntimeError) as error:
            if not isinstance(error, MemoryError) and "allocate memory" not in str(error):
                raise
            say("there is not enough memory: take smaller layers or a smaller graph", logging.ERROR)
        except KeyboardInterrupt:
            click.echo(file=bar_stream())
            say("Stopped. Whatever was finished is kept; start again to go on.")
            sys.exit(INTERRUPTED)
        sys.exit(2)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="fedlap")
def main() -> None:
    """Train one node classifier over a graph that several organisations hold in parts.

    Example: fedlap train --dataset banks --clients 5
    """
