"""Write the reference in python.md from the docstrings: `python docs/reference.py`."""

import inspect
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import fedlap_app

GUIDE = Path(__file__).parent / "python.md"
MARK = "<!-- written by docs/reference.py from the docstrings -->\n"


def reference() -> str:
    """All of what the package offers, in the order of the alphabet."""
    return "\n".join(_entry(name, getattr(fedlap_app, name)) for name in fedlap_app.__all__)


def updated(guide: str) -> str:
    """The guide with the reference as it should be."""
    return guide[: guide.index(MARK) + len(MARK)] + "\n" + reference()


def _entry(name: str, thing: Any) -> str:  # noqa: ANN401 - a class or a function
    if not inspect.isclass(thing):
        return f"### `fedlap.{_shown(name, thing)}`\n\n{_text(thing)}"
    pieces = [f"### `fedlap.{name}`\n\n{_text(thing)}"]
    if thing.__module__.startswith("fedlap_app.api"):
        pieces += [_member(name, key, each) for key, each in vars(thing).items() if _is_open(each)]
    return "\n".join(pieces)


def _is_open(member: object) -> bool:
    """Whether it is a method or a property that users call."""
    function = getattr(member, "fget", None) or getattr(member, "func", None) or member
    return inspect.isfunction(function) and not function.__name__.startswith("_")


def _member(owner: str, name: str, member: Any) -> str:  # noqa: ANN401 - a method or property
    shown = _shown(name, member) if inspect.isfunction(member) else name
    return f"#### `{owner}.{shown}`\n\n{_text(member)}"


def _shown(name: str, function: Any) -> str:  # noqa: ANN401 - a function
    """A function as one calls it: its types are in the code."""
    parameters = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in inspect.signature(function).parameters.values()
        if each.name != "self"
    ]
    return f"{name}{inspect.Signature(parameters)}"


def _text(thing: object) -> str:
    """A docstring as Markdown: the titles of its sections in bold, their entries as a list."""
    lines, inside = [], False
    given = [*(inspect.getdoc(thing) or "").replace("``", "`").splitlines(), ""]
    for line, following in pairwise(given):
        if re.fullmatch("-{3,}", following):
            lines.append(f"**{line}**\n")
            inside = True
        elif inside and line and not line.startswith((" ", "---")):
            name, _, rest = line.partition(" : ")
            lines.append(f"- `{name}`: {rest}".rstrip())
        elif not line.startswith("---"):
            lines.append(f"  {line.strip()}" if inside and line else line)
    return "\n".join(lines).strip() + "\n"


if __name__ == "__main__":
    GUIDE.write_text(updated(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")
