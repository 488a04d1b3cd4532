"""``org.toml``: name, classes and features of an organisation."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedlap_app.errors import DataError
from fedlap_app.graphs import checks

FILE = "org.toml"


@dataclass(frozen=True)
class OrgFile:
    """What ``org.toml`` says; `inline` is whether it names the feature columns."""

    name: str
    classes: tuple[str, ...]
    feature_names: tuple[str, ...]
    inline: bool


def numbered_names(count: int) -> tuple[str, ...]:
    """Names of features of which only the number is known."""
    return tuple(f"f{number}" for number in range(count))


def read_org_file(folder: Path) -> OrgFile:
    """Read and check ``org.toml``."""
    path = folder / FILE
    table = _parse(folder)
    for key in ("name", "classes", "features"):
        if key not in table:
            raise DataError(f"{path} has no {key}: it needs name, classes and features.")
    try:
        checks.check_name(table["name"])
        classes = _names(table["classes"], "classes")
        features = table["features"]
        inline = not isinstance(features, int)
        names = _names(features, "features") if inline else _counted(features)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    if not classes:
        raise DataError(f"{path}: classes is empty: list the names of all classes.")
    return OrgFile(table["name"], classes, names, inline)


def write_org_file(folder: Path, org: OrgFile) -> None:
    """Write ``org.toml``."""
    features = _array(org.feature_names) if org.inline else str(len(org.feature_names))
    text = f"name = {_quoted(org.name)}\nclasses = {_array(org.classes)}\nfeatures = {features}\n"
    (folder / FILE).write_text(text, encoding="utf-8")


def _parse(folder: Path) -> dict[str, Any]:
    path = folder / FILE
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig").replace("\r\n", "\n"))
    except FileNotFoundError:
        raise DataError(
            f"{folder} is not an organisation folder: it has no {FILE} with name, classes and "
            "features."
        ) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not a text file in UTF-8: save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path} is not valid TOML: {error}.") from None


def _names(value: object, what: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise DataError(f"{what} = {value!r} is not a list of names: write {what} = ['a', 'b'].")
    names = tuple(value)
    checks.check_list(names, what)
    return names


def _counted(value: object) -> tuple[str, ...]:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise DataError(f"features = {value!r} is neither a list of names nor a number from 0 on.")
    return numbered_names(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _array(names: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_quoted, names))}]"
