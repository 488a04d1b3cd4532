"""Ratios of measured times, each with the limit that it should stay below.

They are made of the seconds that the process computed, so that others on the machine do not count.
"""

from collections.abc import Sequence
from typing import Any

from fedlap_app.planning.exchanges import Phase
from fedlap_app.planning.values import values_of

BARE, TEXTBOOK = "bare", "textbook"
PLAIN, MASK = "plain", "mask"

PLAIN_LIMIT = 3.0
MASK_SHARE, MASK_NANOSECONDS = 1.2, 8.0


def bars_of(phase: Phase, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ratios of the rows of one solver.

    Parameters
    ----------
    phase
        The phase with the back end `mask`, for the number of pads.
    rows
        Rows of the bare loops and of the back ends.
    """
    solver = phase.spec.solver
    seconds = {row["backend"]: row["cpu_seconds"] for row in rows}
    after = {row["backend"]: row["cpu_seconds_iteration"] for row in rows}
    found = []
    for loop in (BARE, TEXTBOOK) if PLAIN in seconds else ():
        if loop in seconds:
            limit = PLAIN_LIMIT if loop == BARE else None
            ratio, rest = seconds[PLAIN] / seconds[loop], after[PLAIN] / seconds[loop]
            found.append(_bar(solver, f"plain / {loop}", ratio, limit))
            found.append(_bar(solver, f"plain / {loop}, after the handshake", rest, limit))
    if {PLAIN, MASK} <= set(seconds):
        padded = sum(each.padded for each in values_of(phase).values())
        over = 1e9 * (seconds[MASK] - MASK_SHARE * seconds[PLAIN]) / padded
        added = 1e9 * (seconds[MASK] - seconds[PLAIN]) / padded
        unit = "ns a value and pad"
        found.append(_bar(solver, f"mask - 1.2 plain, {unit}", over, MASK_NANOSECONDS))
        found.append(_bar(solver, f"mask - plain, {unit}", added, None))
    return found


def _bar(solver: str, what: str, value: float, limit: float | None) -> dict[str, Any]:
    met = None if limit is None else bool(value <= limit)
    return {"solver": solver, "what": what, "value": value, "limit": limit, "met": met}
