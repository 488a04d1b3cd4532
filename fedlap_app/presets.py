"""Preset files: settings in TOML, for `flwr run --run-config` and `fedlap train --conf` alike."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from fedlap_app.errors import ConfigError


def read_preset(path: Path) -> dict[str, object]:
    """Keys and values of a preset file; nested tables are joined with dots, as Flower does."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such preset file; see the folder conf/") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} is not a readable TOML file: {error}") from None
    return _flatten(table)


def _flatten(table: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat.update(_flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat
