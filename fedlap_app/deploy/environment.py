"""Files of NAME='value' lines that start scripts read and administrators add to."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from fedlap_app.errors import ConfigError

_NAME = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=")


def read_environment(path: Path) -> dict[str, str]:
    """Values of a file; empty when there is none."""
    try:
        words = shlex.split(_text(path), comments=True)
    except ValueError:
        raise ConfigError(f"{path} has a quote without its other half: correct it") from None
    return dict(word.split("=", 1) for word in words if "=" in word)


def write_environment(path: Path, about: str, values: Mapping[str, object]) -> None:
    """Set values; lines about anything else stay as they are.

    Parameters
    ----------
    path : the file.
    about : a comment for its first line, when it is new.
    values : by name.
    """
    odd = next((value for value in values.values() if "'" in str(value)), None)
    if odd is not None:
        raise ConfigError(f"{str(odd)!r} has a quote and cannot stand in {path}: move the folder")
    left = {name: f"{name}='{value}'" for name, value in values.items()}
    lines = []
    for line in _text(path).splitlines() or [f"# {about}"]:
        found = _NAME.match(line)
        if found is None or found[1] not in values:
            lines.append(line)
        elif found[1] in left:
            lines.append(left.pop(found[1]))
    path.write_text("\n".join([*lines, *left.values()]) + "\n", encoding="utf-8")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except ValueError:
        raise ConfigError(f"{path} is not UTF-8 text: correct it or remove it") from None
