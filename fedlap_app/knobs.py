"""Knobs: settings with a default, a sentence of help and the values they may take."""

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from fedlap_app.errors import ConfigError

Value = str | int | float | bool
T = TypeVar("T")
_COMPARED = 64

_handed: dict[tuple[str, str], object] = {}
_TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Domain:
    """The values that a knob may take, and what else there is to know about it.

    Attributes
    ----------
    help, more
        One line, and what only the reference of the settings adds.
    choices, open
        The texts that it takes; open: there are others, which its reader checks.
    low, high
        Bounds, inclusive.
    advanced
        Whether only ``--help-all`` shows it.
    private
        Whether it changes nothing that leaves an organisation.
    folder
        Whether it names a folder.
    only
        Key of another knob and the values of that one without which this one has no effect.
    """

    help: str
    more: str = ""
    choices: tuple[str, ...] = ()
    open: bool = False
    low: float | None = None
    high: float | None = None
    advanced: bool = False
    private: bool = False
    folder: bool = False
    only: tuple[str, tuple[str, ...]] | None = None


class Options:
    """A group of knobs: the dataclass of a room or of a method, whose settings it makes up.

    Attributes
    ----------
    title
        What the group is called on the command line and in the reference of the settings.
    """

    title: ClassVar[str]

    def __post_init__(self) -> None:
        """Refuse values that do not go together."""


def knob(default: Value, help: str, **domain: Any) -> Any:  # noqa: ANN401 - fields of `Domain`
    """Declare a dataclass field as a knob."""
    return field(default=default, metadata={"domain": Domain(help, **domain)})


def entries_of(cls: type) -> "list[Field[Any]]":
    """Fields of a dataclass that `knob` declared."""
    return [entry for entry in fields(cls) if "domain" in entry.metadata]


def groups_of(cls: type) -> list[type[Options]]:
    """Groups that a dataclass is put together from, in the order of their knobs."""
    return [base for base in reversed(cls.__mro__) if "title" in vars(base)]


def keys_of(*groups: type) -> frozenset[str]:
    """Keys of the knobs of some groups."""
    return frozenset(key_of(entry.name) for group in groups for entry in entries_of(group))


def by_key(cls: type) -> "dict[str, Field[Any]]":
    """Knobs of a dataclass by their keys."""
    return {key_of(entry.name): entry for entry in entries_of(cls)}


def domain_of(entry: "Field[Any]") -> Domain:
    """Domain of a field that `knob` declared."""
    domain: Domain = entry.metadata["domain"]
    return domain


def key_of(name: str) -> str:
    """Name of a knob in TOML files and on the command line."""
    return name.replace("_", "-")


def name_of(key: str) -> str:
    """Name of the field behind a key."""
    return key.replace("-", "_")


def nearest(value: str, choices: Iterable[str]) -> str:
    """The choice that resembles `value` most, by its beginning; a plus may be spelt out."""
    start = re.sub("[-_ ]?plus$", "+", value[:_COMPARED].lower())
    ranked = sorted(
        choices,
        key=lambda choice: difflib.SequenceMatcher(None, start, choice.lower()).ratio(),
        reverse=True,
    )
    return ranked[0]


def plain(value: T) -> T:
    """A number of numpy's or torch's as Python's; anything else as it is."""
    item = getattr(value, "item", None)
    single = item is not None and getattr(value, "ndim", 1) == 0
    return item() if single else value  # type: ignore[misc]


def hand_over(key: str, thing: object) -> str:
    """Let settings of this process have an object in place of a name; gives its name there.

    Parameters
    ----------
    key
        ``"model"`` or ``"strategy"``.
    thing
        The object. Another process that opens the run's folder needs it handed over, too.
    """
    kind = thing if hasattr(thing, "__name__") else type(thing)
    title = str(getattr(kind, "__name__", kind)).strip("<>")
    number = 1
    name = title
    while _handed.setdefault((key, name), thing) is not thing:
        number += 1
        name = f"{title}-{number}"
    return name


def handed(key: str, name: str) -> Any:  # noqa: ANN401 - whatever it was
    """The object that was handed over under a name; None: it is a name."""
    return _handed.get((key, name))


def build(cls: type[T], values: Mapping[str, object]) -> T:
    """Make the dataclass `cls` from kebab-case keys; refuse what its knobs do not allow."""
    entries = by_key(cls)
    arguments: dict[str, Value] = {}
    for key, value in values.items():
        if key not in entries:
            raise ConfigError(
                f"unknown setting '{key}': the nearest valid one is '{nearest(key, entries)}'"
            )
        arguments[entries[key].name] = checked(value, entries[key])
    return cls(**arguments)


def from_text(text: str, entry: "Field[Any]") -> Value:
    """Value of a knob written as text, as on a command line."""
    kind = type(entry.default)
    value: object = text
    if kind is bool and text.lower() in ("true", "false"):
        value = text.lower() == "true"
    elif kind in (int, float):
        with suppress(ValueError):
            value = kind(text)
    return checked(value, entry)


def checked(value: object, entry: "Field[Any]") -> Value:
    """Return `value` as the type of the knob, or raise a `ConfigError`."""
    key, domain = key_of(entry.name), domain_of(entry)
    kind: type[Value] = type(entry.default)  # type: ignore[assignment]
    typed = _typed(key, value, kind, toml(entry.default))
    free = domain.open or handed(key, str(typed)) is not None
    if domain.choices and not free and typed not in domain.choices:
        raise ConfigError(
            f"{key} = '{typed}' is not one of {', '.join(domain.choices)}: "
            f"the nearest valid choice is '{nearest(str(typed), domain.choices)}'"
        )
    if isinstance(typed, int | float) and not isinstance(typed, bool):
        if math.isnan(typed):
            raise ConfigError(
                f"{key} = {typed} is out of range ({_interval(domain)}): give a number, for "
                f"example {toml(entry.default)}"
            )
        _check_range(key, typed, domain)
    return typed


def _typed(key: str, value: object, kind: type[Value], example: str) -> Value:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise ConfigError(
            f"{key} = {value!r} has the wrong type: it must be {_TYPE_NAMES[kind]}, "
            f"for example {key} = {example}"
        )
    return value


def toml(value: object) -> str:
    """A value as settings files and messages write it."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _check_range(key: str, value: float, domain: Domain) -> None:
    low = -math.inf if domain.low is None else domain.low
    high = math.inf if domain.high is None else domain.high
    if math.isfinite(value) and low <= value <= high:
        return
    limit = low if value < low or math.isinf(high) else high
    raise ConfigError(
        f"{key} = {value} is out of range ({_interval(domain)}): "
        f"the nearest valid value is {_plain(limit)}"
    )


def _interval(domain: Domain) -> str:
    if domain.high is None:
        return f"at least {_plain(domain.low)}" if domain.low is not None else "finite"
    low = "" if domain.low is None else f"{_plain(domain.low)} to "
    return f"{low}{_plain(domain.high)}" if low else f"at most {_plain(domain.high)}"


def _plain(limit: float) -> str:
    """A limit as one would write it: 1000000, not 1e+06."""
    return str(limit) if isinstance(limit, int) else f"{limit:g}"
