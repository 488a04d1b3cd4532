"""Ratios of measured times, each with the limit that it should stay below.

They are made of the seconds that the process computed, so that others on the machine do not count.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fedlap_app.studies.planning.columns import CKKS, MASK, PLAIN
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.values import values_of
from fedlap_app.sums.ckks.profiles import capacity_of
from fedlap_app.sums.programs import krylov_of

BARE, TEXTBOOK = "bare", "textbook"
PAPER = "paper"

PLAIN_LIMIT = 3.0
MASK_SHARE, MASK_NANOSECONDS = 1.2, 8.0
CKKS_MILLISECONDS, CKKS_SLOT_BYTES = 2.5, 8.0
PAPER_BYTES, PAPER_SECONDS = 290.0, 100.0


def bars_of(phases: Mapping[str, Phase], rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ratios of the rows of one solver.

    Parameters
    ----------
    phases
        The phase with the back ends `mask` and `ckks`, for the number of pads and ciphertexts.
    rows
        Rows of the bare loops and of the back ends.
    """
    solver = krylov_of(phases[MASK].spec).solver
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
        padded = sum(each.padded for each in values_of(phases[MASK]).values())
        over = 1e9 * (seconds[MASK] - MASK_SHARE * seconds[PLAIN]) / padded
        added = 1e9 * (seconds[MASK] - seconds[PLAIN]) / padded
        unit = "ns a value and pad"
        found.append(_bar(solver, f"mask - 1.2 plain, {unit}", over, MASK_NANOSECONDS))
        found.append(_bar(solver, f"mask - plain, {unit}", added, None))
    if {PLAIN, CKKS} <= set(seconds):
        count = sum(each.ciphertexts for each in values_of(phases[CKKS]).values())
        added = 1e3 * (seconds[CKKS] - seconds[PLAIN]) / count
        found.append(_bar(solver, "ckks - plain, ms a ciphertext", added, CKKS_MILLISECONDS))
        sent = next(row["bytes_up_per_client"] for row in rows if row["backend"] == CKKS)
        slots = count * capacity_of(phases[CKKS].spec.profile).slots / len(phases[CKKS].frames)
        found.append(_bar(solver, "ckks, bytes a slot", sent / slots, CKKS_SLOT_BYTES))
    return found


def bars_of_paper(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many times more the paper's algorithm takes, the last row, than block Lanczos."""
    *others, paper = rows
    found = []
    for row in others:
        if (row["solver"], row["backend"]) == ("block-lanczos", CKKS):
            for what, key, least in (
                ("bytes up, paper / ckks", "bytes_up_per_client", PAPER_BYTES),
                ("seconds, paper / ckks", "cpu_seconds", PAPER_SECONDS),
            ):
                bar = _bar(row["solver"], what, paper[key] / row[key], least)
                found.append({**bar, "bound": "at least", "met": bar["value"] >= least})
    return found


def _bar(solver: str, what: str, value: float, limit: float | None) -> dict[str, Any]:
    met = None if limit is None else bool(value <= limit)
    bound = {"limit": limit, "bound": "at most", "met": met}
    return {"solver": solver, "what": what, "value": value, **bound}
