"""Preset files: settings in TOML, for `flwr run --run-config` and `fedlap train --conf` alike."""

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path

from fedlap_app.errors import ConfigError

_FOLDERS = (Path("conf"), Path(__file__).parents[1] / "conf")


def read_preset(path: Path) -> dict[str, object]:
    """Keys and values of a preset; nested tables are joined with dots, as Flower does.

    Parameters
    ----------
    path
        Its file, or its name in the folder conf/: `cora`, `best/cora`.
    """
    try:
        table = tomllib.loads(_file_of(path).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} is not a readable TOML file: {error}") from None
    return _flatten(table)


def _file_of(path: Path) -> Path:
    """The file that a path or a name means."""
    if path.exists():
        return path
    folder = next((each for each in _FOLDERS if each.is_dir()), None)
    known = {} if folder is None else {
        file.relative_to(folder).with_suffix("").as_posix(): file
        for file in sorted(folder.rglob("*.toml"))
    }  # fmt: skip
    asked = path.as_posix().removesuffix(".toml").removeprefix(f"{_FOLDERS[0].as_posix()}/")
    if asked in known and path.suffix in ("", ".toml") and path.parts[0] != "..":
        return known[asked]
    near = difflib.get_close_matches(asked, known, 1)
    told = f"the nearest one is {near[0]}" if near else f"there are {', '.join(known) or 'none'}"
    raise ConfigError(
        f"there is no preset file {path}: {told}; name a file, or one of the folder conf/"
    )


def _flatten(table: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat.update(_flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat
