"""The table ``[policy]`` of an organisation's ``org.toml``: what it allows, whoever asks.

A run can ask for less protection than the defaults only where this file allows it. They hold when
the table is absent. A simulation, whose parts are in one process anyway, has the same keys and
leaves everything open that it does not name. ``[consent]`` is an older name of the table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from fedlap_app.errors import DataError
from fedlap_app.graphs.organisation import FILE, parse_file
from fedlap_app.knobs import key_of, nearest
from fedlap_app.spectral.operators import KINDS

TABLES = ("policy", "consent")
BACKENDS = ("mask", "plain", "ckks")
TRAINING_SEALS = ("mask", "plain", "ckks")


@dataclass(frozen=True)
class Policy:
    """What an organisation allows; None: no limit.

    Attributes
    ----------
    most_vectors
        Vectors exchanged since its graph last changed, over all jobs together.
    least_pinned_partners
        Other organisations of a run whose fingerprint its own ``[peers]`` pins.
    largest_auc
        AUC of the paper's worst-case attacker on the edges among its own nodes.
    operators, backends
        What a run may use.
    hide_topology
        Whether a run must hide who shares edges with whom.
    unpadded_sums
        Whether ciphertexts without pads inside are allowed.
    trust_on_first_use
        Whether organisations without a pin are accepted when a run asks for it.
    server_steps
        Whether single gradients may leave unsealed (``optimizer-at = "server"``).
    score_histograms
        Whether histograms of predicted probabilities by class may leave unsealed (``metric =
        "roc-auc"`` and ``"average-precision"``); they tell the labels of a split by their counts.
    jobs_a_day, runs_a_day
        Jobs before training, and training runs, that begin within 24 hours.
    most_rounds, most_stages, most_evaluations
        Training rounds, stages of self-training and evaluations of one run.
    least_scored_nodes
        Nodes that a split must have for its scores to leave.
    methods
        Methods that do not come with the app and may be run, each with the hash of its file.
    most_feature_columns
        Feature columns whose sums over neighbours were exchanged, counted like vectors.
    training_backends
        How training may hide updates from the server; ``plain`` hides nothing.
    two_members
        Whether it trains with one other alone, where each learns the update of the other.
    least_members
        Members that a sum of sealed training must have, from three.
    list_changes
        How often members may be left out of a sealed training job.
    least_published_nodes
        Nodes of a split, of all members together, that its published accuracy must be of, from 50.
    least_straggler_timeout
        Seconds that a run must wait for an absent member before it goes on without it.
    publish_model
        Whether a run may put the trained model into the server's run folder.
    most_feature_moments
        Computations of means and deviations of feature columns over all organisations; two of them
        show the values of a node that has changed in between.
    most_walk_columns
        Columns of rows of walks that were exchanged, one for every node of the graph and step:
        they show edges among its own nodes.
    """

    most_vectors: int | None = None
    least_pinned_partners: int | None = None
    largest_auc: float | None = None
    operators: tuple[str, ...] | None = None
    backends: tuple[str, ...] | None = ("ckks", "mask")
    hide_topology: bool = True
    unpadded_sums: bool = False
    trust_on_first_use: bool = False
    server_steps: bool = False
    score_histograms: bool = False
    jobs_a_day: int | None = 24
    runs_a_day: int | None = 24
    most_rounds: int | None = 1000
    most_stages: int | None = 10
    most_evaluations: int | None = 32
    least_scored_nodes: int = 10
    methods: Mapping[str, str] | None = field(default_factory=dict)
    most_feature_columns: int | None = 0
    training_backends: tuple[str, ...] | None = ("mask", "ckks")
    two_members: bool = False
    least_members: int = 3
    list_changes: int | None = 2
    least_published_nodes: int = 50
    least_straggler_timeout: int = 0
    publish_model: bool = False
    most_feature_moments: int | None = 10
    most_walk_columns: int | None = 0

    @property
    def fewest_members(self) -> int:
        """Members without whom nothing is sealed for training."""
        return 2 if self.two_members and self.least_members == 3 else self.least_members

    @property
    def weaker(self) -> tuple[str, ...]:
        """Keys whose values allow more than the defaults, for the organisation's own log."""
        return tuple(
            key_of(entry.name)
            for entry in fields(Policy)
            if _allows_more(entry.name, getattr(self, entry.name), getattr(SAFE, entry.name))
        )


SAFE = Policy()
SIMULATED = Policy(
    backends=None,
    hide_topology=False,
    unpadded_sums=True,
    trust_on_first_use=True,
    server_steps=True,
    score_histograms=True,
    jobs_a_day=None,
    runs_a_day=None,
    most_rounds=None,
    most_stages=None,
    most_evaluations=None,
    least_scored_nodes=0,
    methods=None,
    most_feature_columns=None,
    training_backends=None,
    two_members=True,
    least_members=1,
    list_changes=None,
    least_published_nodes=0,
    publish_model=True,
    most_feature_moments=None,
    most_walk_columns=None,
)


def _allows_more(name: str, value: Any, safe: Any) -> bool:  # noqa: ANN401 - of any key
    if value == safe or safe is None:
        return False
    if isinstance(safe, tuple):
        return value is None or not {*value} <= {*safe}
    if name.startswith("least_"):
        return bool(value < safe)
    if isinstance(safe, bool) or not isinstance(safe, int):
        return True
    return value is None or bool(value > safe)


def read_policy(folder: Path, absent: Policy = SAFE) -> Policy:
    """Policy of the organisation folder.

    Parameters
    ----------
    folder
        Holds ``org.toml``.
    absent
        What holds for keys that the file does not have.
    """
    path = folder / FILE
    facts = parse_file(path)
    _require_placed(path, facts)
    values: dict[str, Any] = {}
    for name in TABLES:
        table = facts.get(name, {})
        if not isinstance(table, dict):
            raise DataError(f"{path}: {name} is not a table: write [{name}] and its keys below.")
        if twice := sorted(values.keys() & table.keys()):
            raise DataError(f"{path}: {twice[0]} is in [policy] and in [consent]: keep one.")
        try:
            parse_policy(table)
        except DataError as error:
            raise DataError(f"{path}, [{name}]: {error}") from None
        values |= table
    return parse_policy(values, absent)


def _require_placed(path: Path, facts: Mapping[str, Any]) -> None:
    """Refuse a limit outside of its table: it would hold for nothing, and nobody would notice."""
    known = {key_of(entry.name) for entry in fields(Policy)}
    for name, value in facts.items():
        if name in known:
            raise DataError(f"{path}: {name} is in no table: write it below a line [policy].")
        lost = sorted(known.intersection(value)) if isinstance(value, dict) else []
        if lost and name not in (*TABLES, "peers"):  # an organisation may have any name
            raise DataError(f"{path}: {lost[0]} is in [{name}], not in [policy]: move it there.")


def parse_policy(table: Mapping[str, Any], absent: Policy = SAFE) -> Policy:
    """Check the keys and values of the table; keys that it has not are those of `absent`."""
    known = {key_of(entry.name): entry.name for entry in fields(Policy)}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            raise DataError(f"unknown limit {key!r}: the nearest is {nearest(key, known)!r}.")
        values[known[key]] = _READERS.get(known[key], _count)(key, value)
    if "backends" in values:  # who names back ends means them with their pads
        values.setdefault("unpadded_sums", False)
    if "least_members" in values and values.setdefault("two_members", False):
        raise DataError(
            f"two-members = true and least-members = {values['least_members']} exclude each other: "
            "keep one."
        )
    if values.get("two_members") is False:
        values.setdefault("least_members", SAFE.least_members)
    return replace(absent, **values)


def _count(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise DataError(f"{key} = {value!r} is not a whole number from 0: write `{key} = 100`.")
    return value


def _from(least: int) -> Callable[[str, object], int]:
    """Whole numbers that may only be raised."""

    def read(key: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            other = ", or `two-members = true` for fewer" if key == "least-members" else ""
            raise DataError(
                f"{key} = {value!r} is not a whole number from {least}: write "
                f"`{key} = {2 * least}`{other}."
            )
        return value

    return read


def _auc(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.5 <= value <= 1.0:
        raise DataError(
            f"{key} = {value!r} is not a number from 0.5 (the attacker guesses) to 1 (it finds "
            f"every edge): write `{key} = 0.75`."
        )
    return float(value)


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise DataError(f"{key} = {value!r} is neither true nor false: write `{key} = true`.")
    return value


def _hashes(key: str, value: object) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise DataError(
            f"{key} = {value!r} is no table of names and hashes: write "
            f'`{key} = {{"my-method" = "HASH"}}` with the hash that a refusal names.'
        )
    return dict(value)


def _some_of(choices: tuple[str, ...]) -> Callable[[str, object], tuple[str, ...]]:
    def read(key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not value:
            raise DataError(
                f'{key} = {value!r} is not a list of names: write `{key} = ["{choices[0]}"]`.'
            )
        for name in value:
            if name not in choices:
                raise DataError(
                    f"{key} names {name!r}: the nearest valid one is "
                    f"{nearest(str(name), choices)!r}."
                )
        return tuple(value)

    return read


_READERS: dict[str, Callable[[str, object], Any]] = {
    "largest_auc": _auc,
    "backends": _some_of(BACKENDS),
    "training_backends": _some_of(TRAINING_SEALS),
    "operators": _some_of(KINDS),
    "hide_topology": _flag,
    "unpadded_sums": _flag,
    "trust_on_first_use": _flag,
    "server_steps": _flag,
    "score_histograms": _flag,
    "two_members": _flag,
    "least_members": _from(SAFE.least_members),
    "least_published_nodes": _from(SAFE.least_published_nodes),
    "publish_model": _flag,
    "methods": _hashes,
}
