"""What tuning tries: a small portfolio first, then single changes of what validates best."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest

import numpy as np

from fedlap_app.errors import ConfigError
from fedlap_app.knobs import Value, key_of, name_of
from fedlap_app.settings import Settings, parse_settings

Changes = Mapping[str, Value]
"""Settings of a trial that differ from the ones that tuning began with, by their keys."""

_FEATURES: tuple[Changes, ...] = (
    {},
    {"model": "sage"},
    {"method": "fedavg", "model": "sage"},
    {"hops": 0},
    {"model": "none"},
    {"self-training": 0},
    {"diffusion": 20.0, "self-training": 2},
    {"column-weights": "none"},
    {"model": "gcn"},
    {"learning-rate": 0.005, "hidden": "128"},
)
_MAGNITUDE = {"operator": "adjacency", "keep": "magnitude", "column-weights": "eigenvalue"}
_DIRECTED = {"operator": "directed", "keep": "magnitude", "column-weights": "root"}
_SMOOTH = {"operator": "sym", "column-weights": "none"}
_FACTORS: Mapping[str, tuple[float, ...]] = {
    "learning-rate": (0.5, 2.0),
    "weight-decay": (0.25, 4.0),
    "smoothing": (0.1, 4.0),
    "diffusion": (0.3, 4.0),
}
_VALUES: Mapping[str, tuple[Value, ...]] = {
    "hidden": ("64", "128", "256"),
    "dropout": (0.3, 0.5, 0.7),
    "input-dropout": (0.0, 0.3, 0.5),
    "local-epochs": (1, 3, 6),
    "hops": (0, 1, 2, 3),
    "self-training": (0, 1, 2),
    "self-training-weight": (0.3, 1.0),
    "branch-loss": (0.3, 1.0),
    "relay": (True, False),
    "structure-width": (128, 256),
    "structure-hidden": ("", "64"),
}
_OF_STRUCTURE = ("smoothing", "diffusion", "branch-loss", "structure-width", "structure-hidden")


def portfolio(settings: Settings, *, bases: int) -> list[Changes]:
    """Trials that differ most from one another, those that share the basis first.

    Parameters
    ----------
    settings
        What tuning begins with.
    bases
        How many different bases may be computed; each has vectors of its own.
    """
    structural = settings.needs_basis
    kept = [
        changes
        for changes in _FEATURES
        if structural or not changes.keys() & {"method", "column-weights", "diffusion"}
    ]
    if structural:
        kept[3:3] = [group[0] for group in _other_bases(settings)[: bases - 1]]
        kept += [change for group in _other_bases(settings)[: bases - 1] for change in group[1:]]
    return [changes for changes in kept if _fits(settings, changes)]


def _other_bases(settings: Settings) -> list[tuple[Changes, ...]]:
    """Trials on each further basis."""
    magnitude: list[tuple[Changes, ...]] = [(_MAGNITUDE, {**_MAGNITUDE, "model": "none"})]
    if settings.directed:
        magnitude.insert(0, (_DIRECTED, {**_DIRECTED, "model": "none"}))
    return [*magnitude, (_SMOOTH,)]


def neighbours(settings: Settings, changes: Changes, seed: int) -> Iterator[Changes]:
    """All single changes of a trial, in an order that the seed decides."""
    chosen = changed(settings, changes)
    now, idle = chosen.to_config(), _idle(chosen)
    found: list[Changes] = []
    for key, factors in _FACTORS.items():
        steps = [] if key in idle else [float(f"{float(now[key]) * each:.4g}") for each in factors]
        found += [{**changes, key: value} for value in steps if value != now[key]]
    for key, values in _VALUES.items():
        rest = [] if key in idle else [value for value in values if value != now[key]]
        found += [{**changes, key: value} for value in rest]
    for number in np.random.default_rng([seed, len(changes)]).permutation(len(found)):
        if _fits(settings, found[number]):
            yield found[number]


def _idle(settings: Settings) -> set[str]:
    """Settings that change nothing."""
    found = set() if settings.needs_basis else set(_OF_STRUCTURE)
    if settings.column_weights != "diffusion":
        found.add("diffusion")
    if settings.model != "decoupled":
        found.add("hops")
    if settings.model == "none":
        found |= {"hidden", "input-dropout", "relay", "branch-loss"}
    if not settings.self_training:
        found.add("self-training-weight")
    return found


def in_turn(sources: list[Iterator[Changes]]) -> Iterator[Changes]:
    """One of each, until all are exhausted."""
    for row in zip_longest(*sources):
        yield from (each for each in row if each is not None)


def changed(settings: Settings, changes: Changes) -> Settings:
    """The settings of a trial."""
    known = {name_of(key): value for key, value in changes.items()}
    own = {key for key, _ in settings.options}
    if own & changes.keys():
        return parse_settings({**settings.to_config(), **changes})
    return replace(settings, **known)  # type: ignore[arg-type]


def basis_of(settings: Settings) -> str:
    """What two trials with the same basis have in common; empty without one."""
    return repr(settings.offline_spec) if settings.needs_basis else ""


def name_of_trial(changes: Changes) -> str:
    """A trial in words."""
    return ", ".join(f"{key_of(key)} = {value}" for key, value in changes.items()) or "as given"


def _fits(settings: Settings, changes: Changes) -> bool:
    """Whether the settings go together."""
    try:
        changed(settings, changes)
    except ConfigError:
        return False
    return True
