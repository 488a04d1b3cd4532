"""What noise on updates promises: epsilon and delta of all releases of one unit together.

Releases under Gaussian noise add up: with noise of z times the sensitivity each, n of them are as
one with z / sqrt(n). A unit is taken in or left out; an organisation's update without one of its
nodes may be any other one of the clipped norm, twice the sensitivity away.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedlap_app.errors import ConfigError
from fedlap_app.store import names
from fedlap_app.store.rewritten import RewrittenFile

ORGANISATION, NODE = "organisation", "node"
_MEANT = {
    ORGANISATION: "one organisation's clipped update in every round, not one of its nodes",
    NODE: "one node's own features and label, by the clipped gradient of its example in every "
    "round; not its edges and what they tell, such as its row of a basis",
}
UNITS = tuple(_MEANT)
_KEYS = {
    ORGANISATION: ("releases", "inverse-squares"),
    NODE: ("releases of nodes", "inverse-squares of nodes"),
}
_OMITTED = (
    "programs before training (a basis, sums over neighbours, moments of columns), scores of every "
    "round, the choice of the round by validation, sums that weigh the branches of a portfolio, "
    "who takes part, and trials or runs with another store"
)
_OMITTED_OF = {
    ORGANISATION: f"{_OMITTED} or with dp-unit = {NODE}",
    NODE: f"{_OMITTED}, and how many training nodes all have together",
}


def epsilon(noise: float, releases: int, delta: float) -> float:
    """Epsilon of so many releases, by the library `dp-accounting`.

    Parameters
    ----------
    noise
        Standard deviation of the noise of each, over the sensitivity.
    releases
        How many there are.
    delta
        Probability with which the bound need not hold.
    """
    if not releases:
        return 0.0
    try:
        from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
    except ImportError:
        raise ConfigError(
            "dp-noise needs the package dp-accounting, which is not installed here: install the "
            "app with its extra dp (pip install 'fedlap[dp]'), or set dp-noise = 0"
        ) from None
    return float(get_epsilon_gaussian(noise / math.sqrt(releases), delta))


@dataclass(frozen=True)
class Promise:
    """Settings of the noise of a run, as organisations and the server compute with them.

    Attributes
    ----------
    clip
        Norm that nothing of a single unit passes.
    noise
        Deviation of the noise that who did not collude draws together, over the clipped norm.
    delta
        Probability with which the bound need not hold.
    colluders
        Members that may collude with each other and with the server.
    unit
        What is protected, one of `UNITS`.
    """

    clip: float
    noise: float
    delta: float
    colluders: int
    unit: str = ORGANISATION

    @property
    def by_example(self) -> bool:
        """Whether the gradient of every example is clipped, not an organisation's whole update."""
        return self.unit == NODE

    def of(self, releases: int) -> dict[str, Any]:
        """What so many releases promise."""
        return {
            "unit": _MEANT[self.unit],
            "epsilon": epsilon(self.noise, releases, self.delta),
            "delta": self.delta,
            "releases": releases,
            "noise": self.noise,
            "clip": self.clip,
            "colluders": self.colluders,
            "omits": _OMITTED_OF[self.unit],
        }


class Released:
    """How many noisy updates an organisation has released in all runs; its caller holds the lock.

    Parameters
    ----------
    root
        Folder of the store.
    durable
        Whether the count must survive a power failure.
    """

    def __init__(self, root: Path, *, durable: bool) -> None:
        remedy = "restore it from a backup, or nobody knows what was released"
        self._file = RewrittenFile(root / names.NOISED, durable=durable, remedy=remedy)

    def add(self, promise: Promise) -> None:
        """Count one release before it leaves."""
        found = self._read()
        count, squares = found[promise.unit]
        found[promise.unit] = count + 1, squares + promise.noise**-2
        after: dict[str, float] = {}
        for unit, kept in found.items():
            after |= dict(zip(_KEYS[unit], kept, strict=True))
        self._file.write(json.dumps(after), after)

    def total(self, promise: Promise) -> dict[str, Any]:
        """All of them together, for the unit of a promise.

        A release of an organisation's update is one of each of its nodes, with half the noise.
        """
        found = self._read()
        count, squares = found[ORGANISATION]
        if promise.by_example:
            count, squares = count + found[NODE][0], 4 * squares + found[NODE][1]
        return {
            "releases in all runs": count,
            "epsilon of all runs": epsilon(squares**-0.5, 1, promise.delta) if count else 0.0,
        }

    def _read(self) -> dict[str, tuple[int, float]]:
        found = self._file.read()
        if found is None:
            return dict.fromkeys(UNITS, (0, 0.0))
        # Stores of earlier releases count no nodes.
        found = dict(zip(_KEYS[NODE], (0, 0.0), strict=True)) | found
        return {unit: self._checked(*map(found.get, _KEYS[unit])) for unit in UNITS}

    def _checked(self, count: object, squares: object) -> tuple[int, float]:
        if type(count) is not int or not isinstance(squares, float) or not 0 <= squares < math.inf:
            raise self._file.damaged()
        return count, squares
