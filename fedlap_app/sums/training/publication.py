"""What a training job tells the server: whole counts over all members, the same from each."""

import json
from collections.abc import Mapping

from fedlap_app.errors import ProtocolError
from fedlap_app.store.packing import Data, text


def released(totals: Mapping[str, tuple[float, float]], least: int) -> bytes:
    """Counts that may leave: of splits with enough nodes, all members together.

    Parameters
    ----------
    totals
        For each split how many nodes it has and how many of them were classified right, from the
        opened sum over one final member list.
    least
        Nodes that a split must have.
    """
    counts = {
        split: [round(nodes), round(correct)]
        for split, (nodes, correct) in sorted(totals.items())
        if round(nodes) >= least
    }
    return json.dumps(counts).encode()


def published(releases: Mapping[str, Data]) -> dict[str, tuple[int, int]]:
    """Counts that all members have released alike; anything else is refused, whoever differs."""
    first, *others = sorted(releases)
    for name in others:
        if releases[name] != releases[first]:
            raise ProtocolError(
                f"{first!r} and {name!r} release different scores; one of them runs another "
                "release, or means harm: no score is published."
            )
    try:
        counts = json.loads(text(releases[first]))
        found = {str(split): (int(nodes), int(right)) for split, (nodes, right) in counts.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ProtocolError("The released scores cannot be read; start the run again.") from None
    if any(not 0 <= right <= nodes for nodes, right in found.values()):
        raise ProtocolError("The released scores count more hits than nodes; they were altered.")
    return found
