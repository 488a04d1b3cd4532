"""Random variation of a score over seeds: mean, deviation, and Student's interval of the mean."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.95
ONE_SEED = "one seed: its random variation is not known"


@dataclass(frozen=True)
class Spread:
    """A score over seeds.

    Attributes
    ----------
    count : seeds that have the score.
    mean : None without any.
    std : deviation of a single seed; None with fewer than two.
    interval : covers the mean over all seeds in 95 of 100 such experiments; None likewise.
    """

    count: int
    mean: float | None = None
    std: float | None = None
    interval: tuple[float, float] | None = None

    def row(self, name: str) -> dict[str, float | None]:
        """The numbers under a name, for a row of a table."""
        low, high = self.interval or (None, None)
        values = {"mean": self.mean, "std": self.std, "low": low, "high": high}
        return {f"{name}_{key}": value for key, value in values.items()}

    def __str__(self) -> str:
        """The mean and half the interval, or that there is but one seed."""
        if self.mean is None:
            return "-"
        if self.interval is None:
            return f"{self.mean:.2f}"
        return f"{self.mean:.2f} +- {self.interval[1] - self.mean:.2f}"


def spread(values: Sequence[float | None]) -> Spread:
    """Mean, deviation and interval of a score; a seed without the score does not count."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if len(known) < 2:
        return Spread(len(known), known[0] if known else None)
    from scipy.special import stdtrit

    mean, std = statistics.mean(known), statistics.stdev(known)
    quantile = float(stdtrit(len(known) - 1, (1 + LEVEL) / 2))
    half = quantile * std / math.sqrt(len(known))
    return Spread(len(known), mean, std, (mean - half, mean + half))


def explained(found: Spread, unit: str = " %") -> str:
    """A score in words, for a line of its own."""
    if found.mean is None:
        return "none"
    if found.std is None or found.interval is None:
        return f"{found.mean:.2f}{unit} ({ONE_SEED})"
    low, high = found.interval
    return (
        f"{found.mean:.2f}{unit}, {low:.2f} to {high:.2f} (95 % interval over {found.count} "
        f"seeds, deviation {found.std:.2f})"
    )
