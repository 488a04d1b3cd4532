"""The file ``org.toml``: who the organisation is, and the schema that all share."""

import json
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedlap_app.errors import DataError
from fedlap_app.graphs import checks
from fedlap_app.graphs.kinds import Kinds, kinds_of

FILE = "org.toml"


@dataclass(frozen=True)
class Organisation:
    """What ``org.toml`` says; tables and keys that it has besides are for others.

    Attributes
    ----------
    name : the organisation.
    classes : names of the classes, in the order that all organisations use.
    feature_names : names of the features, ``f0``, ``f1`` and so on when only a number is given.
    kinds : kind of each feature, "" where none is declared; empty: none is declared.
    """

    name: str
    classes: tuple[str, ...]
    feature_names: tuple[str, ...]
    kinds: Kinds = ()


MOST_FEATURES = 1_000_000


def numbered(count: int) -> tuple[str, ...]:
    """Names of features that have none."""
    return tuple(f"f{column}" for column in range(count))


def read_organisation(folder: Path) -> Organisation:
    """Read and check ``org.toml``."""
    path = folder / FILE
    facts = parse_file(path)
    for key in ("name", "classes", "features"):
        if key not in facts:
            raise DataError(f"{path} has no {key!r}: add a line `{key} = ...`.")
    name, classes, features = facts["name"], facts["classes"], facts["features"]
    if not isinstance(classes, list) or not classes:
        raise DataError(f'{path}: classes is not a list of names: write `classes = ["a", "b"]`.')
    if isinstance(features, int) and not isinstance(features, bool) and features >= 0:
        if features > MOST_FEATURES:
            raise DataError(f"{path}: features = {features} is too many: at most {MOST_FEATURES}.")
        features = numbered(features)
    if not isinstance(features, list | tuple):
        raise DataError(
            f"{path}: features = {features!r} is neither a list of columns of the nodes' table "
            "nor a number: give one of the two."
        )
    organisation = Organisation(name, tuple(classes), tuple(features))
    declared = facts.get("kinds", {})
    try:
        checks.check_name(name)
        checks.check_list(organisation.classes, "classes")
        checks.check_list(organisation.feature_names, "feature names")
        return replace(organisation, kinds=kinds_of(declared, organisation.feature_names))
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def parse_file(path: Path) -> dict[str, Any]:
    """Everything that an ``org.toml`` says, unchecked."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise DataError(
            f"There is no {path}: an organisation folder needs one with name, classes and features."
        ) from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text: save it as UTF-8.") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DataError(f"{path} is not valid TOML ({error}): correct it.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): check the folder.") from None


def write_organisation(folder: Path, organisation: Organisation) -> None:
    """Write ``org.toml``; features without names of their own as a number."""
    names = organisation.feature_names
    features = str(len(names)) if names == numbered(len(names)) else _list(names)
    lines: tuple[str, ...] = (
        f"name = {_text(organisation.name)}",
        f"classes = {_list(organisation.classes)}",
        f"features = {features}",
    )
    named = zip(names, organisation.kinds, strict=False)
    if declared := ", ".join(f"{_text(name)} = {_text(kind)}" for name, kind in named if kind):
        lines += (f"kinds = {{{declared}}}",)
    (folder / FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _text(value: str) -> str:
    """A JSON string of printable characters is also a TOML string."""
    return json.dumps(value, ensure_ascii=False)


def _list(values: tuple[str, ...]) -> str:
    return "[" + ", ".join(_text(value) for value in values) + "]"
