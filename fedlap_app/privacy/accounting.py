"""What noise on updates promises: epsilon and delta of all releases of one organisation together.

Releases of the same clipped update under Gaussian noise add up: with noise of z times the
sensitivity each, n of them are as one with z / sqrt(n).
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedlap_app.errors import ConfigError
from fedlap_app.store import names
from fedlap_app.store.rewritten import RewrittenFile

UNIT = "one organisation's clipped update in every round, not one of its nodes"
OMITTED = (
    "programs before training (a basis, sums over neighbours, moments of columns), scores of every "
    "round, the choice of the round by validation, sums that weigh the branches of a portfolio, "
    "who takes part, and trials or runs with another store"
)


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
        Norm that no update of an organisation passes.
    noise
        Deviation of the noise that who did not collude draws together, over the clipped norm.
    delta
        Probability with which the bound need not hold.
    colluders
        Members that may collude with each other and with the server.
    """

    clip: float
    noise: float
    delta: float
    colluders: int

    def of(self, releases: int) -> dict[str, Any]:
        """What so many releases promise."""
        return {
            "unit": UNIT,
            "epsilon": epsilon(self.noise, releases, self.delta),
            "delta": self.delta,
            "releases": releases,
            "noise": self.noise,
            "clip": self.clip,
            "colluders": self.colluders,
            "omits": OMITTED,
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

    def add(self, noise: float) -> None:
        """Count one release before it leaves."""
        count, squares = self._read()
        after = {"releases": count + 1, "inverse-squares": squares + noise**-2}
        self._file.write(json.dumps(after), after)

    def total(self, delta: float) -> dict[str, Any]:
        """All of them together."""
        count, squares = self._read()
        return {
            "releases in all runs": count,
            "epsilon of all runs": epsilon(squares**-0.5, 1, delta) if count else 0.0,
        }

    def _read(self) -> tuple[int, float]:
        found = self._file.read()
        if found is None:
            return 0, 0.0
        count, squares = found.get("releases"), found.get("inverse-squares")
        if type(count) is not int or not isinstance(squares, float) or not 0 <= squares < math.inf:
            raise self._file.damaged()
        return count, squares
