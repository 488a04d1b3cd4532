"""Every setting as a command-line option, in the groups of the rooms that own them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, TypeVar

import click

from fedlap_app.cli.option_types import type_of
from fedlap_app.cli.voice import say
from fedlap_app.errors import ConfigError
from fedlap_app.knobs import domain_of, entries_of, key_of
from fedlap_app.methods.registry import is_built_in, method_class, names
from fedlap_app.presets import read_preset
from fedlap_app.relevance import choose, title_of
from fedlap_app.settings import GROUPS, KNOBS, Settings, parse_settings
from fedlap_app.sums.programs import PROGRAMS

Command = TypeVar("Command", bound=Callable[..., Any])
_ALL, _METHOD = "fedlap.help-all", "fedlap.method"
_NOTHING: Mapping[str, object] = {}

program_option = click.option(
    "--program",
    type=click.Choice([*PROGRAMS]),
    default=None,
    help="what the sealed sums are for (default: the method's own program)",
)


class KnobOption(click.Option):
    """The option of a knob.

    Parameters
    ----------
    words
        How it is written.
    entry, group
        The knob, and the dataclass that it belongs to.
    """

    def __init__(self, words: Sequence[str], *, entry: "Field[Any]", group: type) -> None:
        domain, flag = domain_of(entry), isinstance(entry.default, bool)
        default = ("yes" if entry.default else "no") if flag else repr(entry.default)
        shown = f" (default: {default})" if entry.default != "" else ""
        super().__init__(
            words,
            default=None,
            type=None if flag else type_of(entry),
            help=domain.help + shown,
        )
        self.group, self.advanced = group, domain.advanced


def _words(entry: "Field[Any]") -> tuple[str, str]:
    """An option and the name of its parameter."""
    key = key_of(entry.name)
    return f"--{key}/--no-{key}" if isinstance(entry.default, bool) else f"--{key}", entry.name


class SettingsCommand(click.Command):
    """A command that takes every setting: its help shows the usual ones, group by group."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Look for the method first: one from outside of the app has options of its own."""
        ctx.meta[_METHOD] = _named(args)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Options of the command, of the settings, and of a method that is installed."""
        return [*super().get_params(ctx), *_own_options(ctx.meta.get(_METHOD, ""))]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options, then the settings."""
        params = self.get_params(ctx)
        knobs = [each for each in params if isinstance(each, KnobOption)]
        shown = [each for each in knobs if ctx.meta.get(_ALL) or not each.advanced]
        _section(ctx, formatter, "Options", [each for each in params if each not in knobs])
        for group, options in groupby(shown, lambda each: each.group):
            _section(ctx, formatter, title_of(group), list(options))
        if hidden := len(knobs) - len(shown):
            formatter.write_paragraph()
            formatter.write_text(f"--help-all shows {hidden} more settings.")


def _section(
    ctx: click.Context,
    formatter: click.HelpFormatter,
    title: str,
    params: Sequence[click.Parameter],
) -> None:
    with formatter.section(title):
        formatter.write_dl([record for each in params if (record := each.get_help_record(ctx))])


def _named(args: Sequence[str]) -> str:
    """The method that a command line names."""
    words = [word for arg in args for word in arg.split("=", 1)]
    return next((name for option, name in pairwise(words) if option == "--method"), "")


def _own_options(method: str) -> list[KnobOption]:
    """Options of a method that does not come with the app."""
    if not method or is_built_in(method) or method not in names():
        return []
    kind = method_class(method).Options
    return [KnobOption(_words(entry), entry=entry, group=kind) for entry in entries_of(kind)]


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


def settings_options(command: Command) -> Command:
    """Add ``--conf`` and an option for each setting to a command."""
    for group in reversed(GROUPS):
        for entry in reversed(entries_of(group)):
            option = click.option(*_words(entry), cls=KnobOption, entry=entry, group=group)
            command = option(command)
    every = click.option(
        "--help-all",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_all,
        help="Show this message with every setting and exit.",
    )
    conf = click.option(
        "--conf",
        type=click.Path(path_type=Path),
        default=None,
        help="preset file, for example conf/cora.toml; options override it",
    )
    return conf(every(command))


def collect(
    conf: Path | None, options: Mapping[str, Any], usual: Mapping[str, object] = _NOTHING
) -> dict[str, object]:
    """Settings that differ from the defaults.

    Parameters
    ----------
    conf, options
        A preset, and the options, which count more.
    usual
        What the command takes where neither says anything.
    """
    if options.get("data") and options.get("dataset"):
        raise ConfigError(
            "--data takes the place of --dataset: give one of them, your own folders or a benchmark"
        )
    preset = {**usual, **(read_preset(conf) if conf is not None else {})}
    typed = {key_of(name): value for name, value in options.items() if value is not None}
    values = choose(preset, typed, say)
    for key, entry in KNOBS.items():
        if domain_of(entry).folder and values.get(key):
            values[key] = str(Path(str(values[key])).expanduser().absolute())
    return values


def settings_from(conf: Path | None, options: Mapping[str, Any]) -> Settings:
    """Settings of a preset and options together."""
    return parse_settings(collect(conf, options))
