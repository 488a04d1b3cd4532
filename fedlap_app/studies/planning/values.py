"""Numbers that are sealed and opened in an offline phase, and the pads on them."""

from dataclasses import dataclass

from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.sums import checks


@dataclass(frozen=True)
class Values:
    """Counts for one member.

    Attributes
    ----------
    wanted
        Numbers that it contributes, without free slots: what bytes per value refers to.
    sealed, opened
        Numbers that it seals and opens, free slots included.
    contributions
        Vectors that it seals.
    padded
        Numbers, check slots included, times pads on them, in all that it seals with `mask`.
    ciphertexts
        Ciphertexts that it sends.
    """

    wanted: int
    sealed: int
    opened: int
    contributions: int
    padded: int
    ciphertexts: int = 0


def values_of(phase: Phase) -> dict[str, Values]:
    """Counts for every member."""
    rows = {part.name: part.rows(phase.spec) for part in phase.shape.parts}
    everyone = phase.shape.names
    small = sum(this.small for this in phase.rounds)
    widths = [this.width for this in phase.rounds if this.width]
    # Slots in all rounds of the block sums of a recipient.
    slots = {name: sum(phase.frames[name].length(width) for width in widths) for name in everyone}
    checked = checks.SLOTS * len(widths)
    pads = {name: _partners(phase.senders[name]) + 1 for name in everyone}
    found = {}
    for index, name in enumerate(everyone):
        targets = phase.recipients(name)
        group = _partners(everyone) + (index == 0)
        found[name] = Values(
            wanted=sum(widths) * sum(rows[target] for target in targets) + small,
            sealed=sum(slots[target] for target in targets) + small,
            opened=(slots[name] if phase.senders[name] else 0) + small,
            contributions=len(widths) * len(targets) + len(phase.rounds),
            ciphertexts=_ciphertexts(phase, targets),
            padded=sum((slots[target] + checked) * pads[target] for target in targets)
            + (small + checks.SLOTS * len(phase.rounds)) * group,
        )
    return found


def _ciphertexts(phase: Phase, targets: list[str]) -> int:
    """Ciphertexts of one member in all rounds; 0 for back ends without any."""
    spec, count = phase.spec, 0
    for this in phase.rounds:
        lengths = [this.small]
        if this.width:
            lengths += [phase.frames[name].length(this.width) for name in targets]
        count += sum(spec.facts.ciphertexts(spec.profile, each) for each in lengths)
    return count


def _partners(senders: tuple[str, ...]) -> int:
    """Zero-sum pads on one contribution."""
    return max(len(senders) - 1, 0)
