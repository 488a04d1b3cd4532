"""Write what repeats the code: `python docs/reference.py`; with `--check` only look.

The reference in python.md follows from the docstrings; settings.md and the table of settings in
pyproject.toml from the knobs; cli.md from the commands.
"""

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

import fedlap_app
from fedlap_app.cli import main
from fedlap_app.cli.settings_options import KnobOption
from fedlap_app.knobs import Domain, by_key, domain_of, toml
from fedlap_app.methods.registry import BUILT_IN, method_class
from fedlap_app.relevance import group_readers, readers_of, title_of
from fedlap_app.settings import GROUPS

ROOT = Path(__file__).parents[1]
GUIDE = Path(__file__).parent / "python.md"
SETTINGS, COMMANDS = GUIDE.with_name("settings.md"), GUIDE.with_name("cli.md")
PROJECT = ROOT / "pyproject.toml"
TABLE = "[tool.flwr.app.config]\n"
WRITTEN = "<!-- written by docs/reference.py from the code -->\n"
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


# Settings


def table() -> str:
    """The settings with their defaults, as pyproject.toml has them."""
    return "\n".join(_group_table(group) for group in GROUPS)


def _group_table(group: type) -> str:
    lines = [f"# {title_of(group)}"]
    for key, entry in by_key(group).items():
        lines += [*_comment(domain_of(entry)), f"{key} = {_toml(entry.default)}"]
    return "\n".join(lines) + "\n"


def _comment(domain: Domain) -> list[str]:
    """Help and choices as comments; the choices begin a line when both do not fit on one."""
    choices = f"({' | '.join(domain.choices)})" if domain.choices else ""
    whole = f"# {domain.help} {choices}".rstrip()
    if len(whole) <= 100:
        return [whole]
    wrapper = textwrap.TextWrapper(100, initial_indent="# ", subsequent_indent="# ")
    return [*wrapper.wrap(domain.help), *wrapper.wrap(choices)]


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else toml(value)


def with_table(project: str) -> str:
    """pyproject.toml with the settings as they should be."""
    start = project.index(TABLE) + len(TABLE)
    end = project.index("\n[", start)
    return project[:start] + table() + project[end:]


def settings_page() -> str:
    """The reference of the settings."""
    pieces = [WRITTEN, SETTINGS_INTRO, *(_group_page(group) for group in GROUPS), _methods()]
    return "\n".join(pieces)


def _group_page(group: type) -> str:
    usual = group_readers(group)
    lines = [f"## {title_of(group)}\n", f"{inspect.getdoc(group)}\n"]
    lines += ["| setting | default | values | |", "|---|---|---|---|"]
    notes = []
    for key, entry in by_key(group).items():
        domain = domain_of(entry)
        about = domain.help + "".join(_limits(key, domain, usual))
        lines.append(f"| `{key}` | `{_toml(entry.default)}` | {_values(entry)} | {about} |")
        notes += [f"`{key}`: {domain.more}\n"] if domain.more else []
    return "\n".join([*lines, "", *notes])


def _limits(key: str, domain: Domain, usual: tuple[str, ...]) -> Iterator[str]:
    """Where a knob has no effect, and what it leaves alone."""
    if (readers := readers_of(key)) != usual:
        yield f"; read by {', '.join(readers)}"
    if domain.only:
        other, choices = domain.only
        yield f"; only with {other} = {' or '.join(f'`{each}`' for each in choices)}"


def _values(entry: Any) -> str:  # noqa: ANN401 - a field of a dataclass
    domain, kind = domain_of(entry), type(entry.default)
    if domain.choices:
        return ", ".join(f"`{each}`" for each in domain.choices)
    if kind is bool:
        return "`true`, `false`"
    name = {int: "whole number", float: "number", str: "folder" if domain.folder else "text"}[kind]
    low = "" if domain.low is None else f" from {domain.low:g}"
    high = "" if domain.high is None else f" to {domain.high:g}" if kind is float else ""
    return f"{name}{low}{high or (f' to {domain.high}' if domain.high is not None else '')}"


def _methods() -> str:
    """What each method reads, group by group."""
    lines = ["## What a method reads\n", "| method | | groups |", "|---|---|---|"]
    for name in BUILT_IN:
        groups = [each.title for each in GROUPS if name in group_readers(each)]
        lines.append(f"| `{name}` | {method_class(name).summary} | {', '.join(groups)} |")
    lines += ["", "## What a method reveals\n", "| method | |", "|---|---|"]
    lines += [f"| `{name}` | {' '.join(method_class(name).reveals)} |" for name in BUILT_IN]
    return "\n".join(lines) + "\n"


SETTINGS_INTRO = """# Settings

Every setting is a key of a preset and of `flwr run . --run-config`, an option of `fedlap train`,
`fedlap run` and the other commands that take settings (`--local-epochs 5`; `--directed` and
`--no-directed`), and a keyword of `fedlap.train` (`local_epochs=5`). Unknown keys, wrong types and
values out of range are refused, with the nearest valid one named.

A setting that the chosen method does not read is refused when it was typed: as an option, as a
keyword, or in `--run-config`, where what differs from the default counts as typed. In a preset
(`--conf`, `preset=`) it is ignored, and one line says so. A value that equals the default asks for
nothing. `spectral = true` makes every method that leaves the data where they are read the basis and
the sealed sums. Titles name the methods that read a group, unless all do.
"""


# Commands


def commands_page() -> str:
    """The reference of the commands."""
    lines = [WRITTEN, COMMANDS_INTRO]
    for path, command in _walk(main, "fedlap"):
        if not isinstance(command, click.Group):
            lines.append(_command(path, command))
    return "\n".join(lines)


def _walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _walk(found, f"{path} {name}")


def _command(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path, **main.context_settings)
    own = [each for each in command.params if not isinstance(each, KnobOption)]
    records = [record for each in own if (record := each.get_help_record(context))]
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    lines = [
        f"## `{path}`\n",
        f"```text\n{usage}\n```\n",
        f"{inspect.cleandoc(command.help or '')}\n",
    ]
    if len(own) < len(command.params):
        lines.append("Takes all [settings](settings.md) as options.\n")
    if records:
        lines += ["| option | |", "|---|---|"]
        lines += [f"| `{_cell(words)}` | {_cell(about)} |" for words, about in records]
        lines.append("")
    if command.epilog:
        lines.append(f"```bash\n{command.epilog.removeprefix('Example: ')}\n```\n")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


COMMANDS_INTRO = """# Commands

`fedlap COMMAND --help` shows the same on the command line, with the usual settings; `--help-all`
with every setting. Bad input ends with exit code 2 and one sentence.
"""


def stale(*, write: bool) -> list[Path]:
    """Files that are not as they should be; with `write` they are afterwards."""
    guide, project = (each.read_text(encoding="utf-8") for each in (GUIDE, PROJECT))
    wanted = {
        GUIDE: updated(guide),
        SETTINGS: settings_page(),
        COMMANDS: commands_page(),
        PROJECT: with_table(project),
    }
    old = [p for p, t in wanted.items() if not p.exists() or p.read_text(encoding="utf-8") != t]
    for path in old if write else ():
        path.write_text(wanted[path], encoding="utf-8")
    return old


if __name__ == "__main__":
    check = sys.argv[1:] == ["--check"]
    names = ", ".join(str(path.relative_to(ROOT)) for path in stale(write=not check))
    if check and names:
        sys.exit(f"not as the code has it: {names}; run `python docs/reference.py`")
