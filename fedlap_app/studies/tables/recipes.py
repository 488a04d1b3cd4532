"""How every system of the tables is set for a data set and a protocol."""

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fedlap_app
from fedlap_app.errors import ConfigError
from fedlap_app.knobs import nearest
from fedlap_app.methods.registry import method_class
from fedlap_app.presets import read_preset
from fedlap_app.relevance import choose
from fedlap_app.settings import Settings, parse_settings

_HERE = Path(__file__).parent
_CONF = Path(fedlap_app.__file__).parents[1] / "conf"
_FIXED = "paper"  # the protocol under which presets are the paper's own
Values = dict[str, Any]


@dataclass(frozen=True)
class System:
    """A row of the tables.

    Attributes
    ----------
    name, method
        What it is called, and the method that it is.
    paper
        What the paper calls it; empty: it has none.
    raw
        Whether raw features of other organisations are read.
    shows
        What organisations see of each other's data besides models, if no program says it.
    """

    name: str
    method: str
    paper: str = ""
    raw: bool = False
    shows: str = ""


@cache
def _recipes() -> dict[str, Any]:
    return tomllib.loads((_HERE / "recipes.toml").read_text(encoding="utf-8"))


@cache
def paper_figures() -> dict[str, Any]:
    """What the paper says, by table, data set, system and column."""
    found: dict[str, Any] = json.loads((_HERE / "paper.json").read_text(encoding="utf-8"))
    return found


def protocols() -> tuple[str, ...]:
    """Names of the protocols, the usual one first."""
    return tuple(_recipes()["protocols"])


def partition_of(protocol: str) -> str:
    """The partition that a protocol prescribes; empty: the table says."""
    if protocol not in protocols():
        raise ConfigError(
            f"protocol = {protocol!r} is not one of {', '.join(protocols())}: the nearest one is "
            f"{nearest(protocol, protocols())!r}"
        )
    return str(_recipes()["protocols"][protocol].get("partition", ""))


def systems(names: Sequence[str] = ()) -> list[System]:
    """Systems by name; without names, or with `all`, every one."""
    known = _recipes()["systems"]
    wanted = list(known) if not names or "all" in names else list(names)
    for name in wanted:
        if name not in known:
            raise ConfigError(
                f"there is no system {name!r} in the tables: the nearest one is "
                f"{nearest(name, known)!r}"
            )
    return [
        System(
            name,
            facts.get("method", name),
            facts.get("paper", ""),
            facts.get("raw", False),
            facts.get("shows", ""),
        )
        for name, facts in ((name, known[name]) for name in wanted)
    ]


def settings_for(system: System, dataset: str, protocol: str, changes: Values) -> Settings:
    """Settings of a cell.

    Parameters
    ----------
    system, dataset, protocol
        What is run.
    changes
        What the column of the table says: organisations, partition, shares, seed, a value on the
        axis of a figure.
    """
    recipes = _recipes()
    facts = recipes["systems"][system.name]
    preset = facts.get("preset")
    values = _preset(preset, dataset, protocol) if preset else {}
    if not values:
        values = {**recipes["common"], **recipes["data"].get(dataset, {})}
    values |= recipes["protocols"][protocol]
    values |= facts.get("settings", {}) | facts.get("data", {}).get(dataset, {})
    values |= {"dataset": dataset, "method": system.method, "backend": "mask"} | changes
    if method_class(system.method).pooled:
        # However the graph was divided, it is put together again: one cell for all columns.
        values |= {"clients": 2, "partition": "random"}
    return parse_settings(choose(values, {}, _unsaid))


def _preset(folder: str, dataset: str, protocol: str) -> Values:
    """A preset file of the project; under the paper's protocol that of the paper."""
    places = [_CONF / ("paper" if protocol == _FIXED else folder), _CONF]
    for place in places:
        if (place / f"{dataset}.toml").is_file():
            return read_preset(place / f"{dataset}.toml")
    return {}


def _unsaid(text: str) -> None:
    """What a system ignores of the common settings is expected."""
