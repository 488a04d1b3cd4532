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
    {"self-training": 0},
    {"method": "fedavg"},
    {"branches": ""},
    {"branches": "", "readings": "ends"},
    {"hidden": "64", "learning-rate": 0.005},
    {"model": "decoupled", "hidden": "64", "dropout": 0.7, "structure-width": 256},
    {"model": "sage", "hidden": "64"},
    {"model": "gcn", "hidden": "64", "self-training": 2},
    {"model": "decoupled", "hops": 0, "hidden": "128", "structure-width": 128},
)
_MAGNITUDE = {"operator": "adjacency", "keep": "magnitude", "readings": "ends"}
_DIRECTED = {"operator": "directed", "keep": "magnitude", "readings": "ends"}
_SMOOTH = {"operator": "sym"}
_FACTORS: Mapping[str, tuple[float, ...]] = {
    "learning-rate": (0.5, 2.0),
    "weight-decay": (0.25, 4.0),
    "smoothing": (0.1, 4.0),
    "diffusion": (0.3, 4.0),
}
_VALUES: Mapping[str, tuple[Value, ...]] = {
    "branches": ("sage,decoupled,mlp", "sage,gcn,decoupled,mlp", "sage", "decoupled,mlp"),
    "readings": ("diffused,flat,ends", "diffused", "diffused,ends"),
    "hidden": ("32", "64", "128"),
    "dropout": (0.3, 0.5, 0.6, 0.7),
    "input-dropout": (0.0, 0.3, 0.5),
    "local-epochs": (1, 3, 6),
    "hops": (0, 1, 2, 3),
    "self-training": (0, 1, 2),
    "self-training-weight": (0.3, 1.0),
    "branch-loss": (0.3, 1.0),
    "relay": (True, False),
    "structure-width": (64, 128, 256),
    "structure-hidden": ("", "64"),
}
_OF_STRUCTURE = (
    "readings", "smoothing", "diffusion", "branch-loss", "structure-width", "structure-hidden",
)  # fmt: skip


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
    kept: list[Changes] = []
    for changes in _FEATURES:
        own = {k: v for k, v in changes.items() if structural or k not in _OF_STRUCTURE}
        if own not in kept and (structural or "method" not in own):
            kept.append(own)
    if structural:
        kept[3:3] = [group[0] for group in _other_bases(settings)[: bases - 1]]
        kept += [change for group in _other_bases(settings)[: bases - 1] for change in group[1:]]
    return [changes for changes in kept if _fits(settings, changes)]


def _other_bases(settings: Settings) -> list[tuple[Changes, ...]]:
    """Trials on each further basis."""
    magnitude: list[tuple[Changes, ...]] = [(_MAGNITUDE, {**_MAGNITUDE, "branches": ""})]
    if settings.directed:
        magnitude.insert(0, (_DIRECTED, {**_DIRECTED, "branches": ""}))
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
    if settings.has_portfolio:
        found.add("branch-loss")
        smoothed = "flat" in settings.readings or "diffused" in settings.readings
        found |= set() if smoothed else {"smoothing"}
        found |= set() if "diffused" in settings.readings else {"diffusion"}
        found |= set() if "decoupled" in settings.branches else {"hops"}
    else:
        found |= {"branches", "readings"}
        found |= set() if settings.column_weights == "diffusion" else {"diffusion"}
        found |= set() if settings.model == "decoupled" else {"hops"}
    if not settings.has_features:
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
