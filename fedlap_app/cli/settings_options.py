"""Every setting as a command-line option."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from fedlap_app.errors import ConfigError
from fedlap_app.knobs import domain_of, entries_of, key_of, parse_text
from fedlap_app.presets import read_preset
from fedlap_app.settings import Settings, parse_settings

Command = TypeVar("Command", bound=Callable[..., Any])


def settings_options(command: Command) -> Command:
    """Add ``--conf`` and an option for each setting to a command."""
    for entry in reversed(entries_of(Settings)):
        domain = domain_of(entry)
        shown = f"{domain.help} [{'|'.join(domain.choices)}]" if domain.choices else domain.help
        key = key_of(entry.name)
        if isinstance(entry.default, bool):
            option = click.option(f"--{key}/--no-{key}", entry.name, default=None, help=shown)
        else:
            shown = f"{shown} (default: {entry.default!r})"
            option = click.option(f"--{key}", entry.name, type=str, default=None, help=shown)
        command = option(command)
    conf = click.option(
        "--conf",
        type=click.Path(path_type=Path),
        default=None,
        help="preset file, for example conf/cora.toml; options override it",
    )
    return conf(command)


def collect(conf: Path | None, options: Mapping[str, Any]) -> dict[str, object]:
    """Settings that differ from the defaults: those of the preset, then the options."""
    if options.get("data") and options.get("dataset"):
        raise ConfigError(
            "--data takes the place of --dataset: give one of them, your own folders or a benchmark"
        )
    values: dict[str, object] = read_preset(conf) if conf is not None else {}
    for name, value in options.items():
        if value is None:
            continue
        key = key_of(name)
        values[key] = parse_text(Settings, key, value) if isinstance(value, str) else value
    for key in ("data", "run-dir", "store-dir"):
        if values.get(key):
            values[key] = str(Path(str(values[key])).expanduser().absolute())
    return values


def settings_from(conf: Path | None, options: Mapping[str, Any]) -> Settings:
    """Settings of a preset and options together."""
    return parse_settings(collect(conf, options))
