"""Types of options: what click would let through by mistake is refused, and in our own words."""

from dataclasses import Field
from pathlib import Path
from typing import Any

import click

from fedlap_app.errors import ConfigError
from fedlap_app.knobs import domain_of, from_text

_Param = click.Parameter | None
_Context = click.Context | None


class Folder(click.Path):
    """A path that is not empty; an empty one, as an unset variable gives, would mean `.`."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: _Param, ctx: _Context) -> Any:  # noqa: ANN401
        """A path of a text that has letters."""
        if value == "":
            shown = f"--{param.name}" if isinstance(param, click.Option) else "the path"
            raise ConfigError(f"{shown} is empty: name a folder, for example `.`")
        return super().convert(value, param, ctx)


class Port(click.IntRange):
    """A port in plain digits; Python's own numbers may have underscores and foreign digits."""

    def __init__(self) -> None:
        super().__init__(1, 65535)

    def convert(self, value: Any, param: _Param, ctx: _Context) -> Any:  # noqa: ANN401
        """A number of a text that has digits only."""
        if isinstance(value, str) and not (value.isascii() and value.isdigit()):
            self.fail(f"{value!r} is no port: give a number from 1 to 65535", param, ctx)
        return super().convert(value, param, ctx)


class _OwnWords(click.ParamType):  # type: ignore[type-arg]
    """The type of a knob: it refuses in the words that settings are refused with everywhere."""

    entry: "Field[Any]"

    def convert(self, value: Any, param: _Param, ctx: _Context) -> Any:  # noqa: ANN401
        """The value of a text; what is no text was not typed here."""
        return from_text(value, self.entry) if isinstance(value, str) else value


class _Name(_OwnWords, click.Choice):  # type: ignore[type-arg]
    """One of the choices of a knob."""


class _Whole(_OwnWords, click.IntRange):
    """A whole number between the bounds of a knob."""


class _Number(_OwnWords, click.FloatRange):
    """A number between the bounds of a knob."""


class _Text(_OwnWords, click.types.StringParamType):
    """Any text."""


class _Place(_OwnWords, click.Path):
    """A folder, or nothing."""


def type_of(entry: "Field[Any]") -> click.ParamType:  # type: ignore[type-arg]
    """The type that shows what a knob takes."""
    domain, kind = domain_of(entry), type(entry.default)
    found: _OwnWords = _Text()
    if domain.choices:
        found = _Name(domain.choices)
    elif domain.folder:
        found = _Place()
    elif kind in (int, float):
        found = (_Whole if kind is int else _Number)(domain.low, domain.high)  # type: ignore[arg-type]
    found.entry = entry
    return found
