"""Ways to sum that plans and benchmarks compare: back ends, and profiles of ckks by their names."""

from dataclasses import replace

from fedlap_app.privacy.policy import BACKENDS
from fedlap_app.settings import Settings
from fedlap_app.sums.ckks.profiles import CAPACITIES

PLAIN, MASK, CKKS = "plain", "mask", "ckks"
_, *_OTHERS = CAPACITIES
COLUMNS = (PLAIN, *(name for name in BACKENDS if name != PLAIN), *_OTHERS)


def column_of(settings: Settings) -> str:
    """Name of the way that some settings choose."""
    return settings.profile if settings.profile in _OTHERS else settings.backend


def with_sums(settings: Settings, column: str) -> Settings:
    """The same settings with another way, or as they are when they choose it."""
    if column == column_of(settings):
        return settings
    if column not in (CKKS, *_OTHERS):
        return replace(settings, backend=column, profile="auto", insecure_no_pads=False)
    profile = "auto" if column == CKKS else column
    return replace(settings, backend=CKKS, profile=profile)
