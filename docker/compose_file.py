"""Compose files as data: merged and with variables filled in, as far as these files need it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

# What an image runs when the service names no entry point.
ENTRY_POINTS = {
    "flwr/superlink": ["flower-superlink"],
    "flwr/supernode": ["flower-supernode"],
    "flwr/superexec": ["flower-superexec"],
    "fedlap/superexec": ["flower-superexec"],
}
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_REPLACED = ("command", "entrypoint", "test")


@dataclass(frozen=True)
class Service:
    """One service, as a process needs it.

    Attributes
    ----------
    name
        Of the service, under which others reach it.
    command
        Entry point and command.
    environment
        What the service sets.
    mounts
        Volume of every path that is mounted.
    folder
        Where it starts.
    after
        For each service that comes before, the condition it must have reached.
    health
        Command that succeeds when the service is well; empty: none.
    lasting
        Whether it is started again when it ends.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: Mapping[str, str]
    folder: str
    after: Mapping[str, str] = field(default_factory=dict)
    health: tuple[str, ...] = ()
    lasting: bool = True


def read_services(files: Sequence[Path], variables: Mapping[str, str]) -> dict[str, Service]:
    """The services of compose files, later files over earlier ones."""
    merged: dict[str, Any] = {}
    for file in files:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        merged = _merge(merged, _filled(content, variables))
    return {name: _service(name, facts) for name, facts in merged["services"].items()}


def _merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Compose's rules: tables are merged, lists are joined, commands are replaced."""
    merged = dict(old)
    for key, value in new.items():
        before = merged.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            merged[key] = _merge(before, value)
        elif isinstance(before, list) and isinstance(value, list) and key not in _REPLACED:
            merged[key] = [*before, *(each for each in value if each not in before)]
        else:
            merged[key] = value
    return merged


def _filled(value: Any, variables: Mapping[str, str]) -> Any:  # noqa: ANN401 - any YAML value
    if isinstance(value, Mapping):
        return {key: _filled(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, variables) for item in value]
    if not isinstance(value, str):
        return value
    return _VARIABLE.sub(lambda found: variables.get(found[1]) or found[2] or "", value)


def _service(name: str, facts: Mapping[str, Any]) -> Service:
    image = str(facts["image"]).split(":")[0]
    entry = facts.get("entrypoint") or ENTRY_POINTS[image]
    test = facts.get("healthcheck", {}).get("test", [])
    return Service(
        name=name,
        command=tuple(str(word) for word in (*entry, *facts.get("command", ()))),
        environment={key: str(value) for key, value in facts.get("environment", {}).items()},
        mounts=dict(reversed(each.split(":")[:2]) for each in facts.get("volumes", ())),
        folder=str(facts.get("working_dir", "/app")),
        after={key: each["condition"] for key, each in facts.get("depends_on", {}).items()},
        health=tuple(test[1:]),
        lasting=facts.get("restart") == "unless-stopped",
    )
