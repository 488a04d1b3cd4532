"""Folders and ports on the command line: what click would let through by mistake is refused."""

from pathlib import Path
from typing import Any

import click

from fedlap_app.errors import ConfigError


class Folder(click.Path):
    """A path that is not empty; an empty one, as an unset variable gives, would mean `.`."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401 - as click has it
        """A path of a text that has letters."""
        if value == "":
            shown = f"--{param.name}" if isinstance(param, click.Option) else "the path"
            raise ConfigError(f"{shown} is empty: name a folder, for example `.`")
        return super().convert(value, param, ctx)


class Port(click.IntRange):
    """A port in plain digits; Python's own numbers may have underscores and foreign digits."""

    def __init__(self) -> None:
        super().__init__(1, 65535)

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401 - as click has it
        """A number of a text that has digits only."""
        if isinstance(value, str) and not (value.isascii() and value.isdigit()):
            self.fail(f"{value!r} is no port: give a number from 1 to 65535", param, ctx)
        return super().convert(value, param, ctx)
