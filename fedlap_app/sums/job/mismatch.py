"""The sentence about organisations that list different edges between them: counts, no ids."""

from collections.abc import Mapping, Sequence

from fedlap_app.errors import ProtocolError
from fedlap_app.store.packing import Data, text

_DIGITS = 12


def describe(replies: Mapping[str, Sequence[Data]]) -> str:
    """Counts of every pair, from each side's comparison.

    Parameters
    ----------
    replies
        By member: peer, edges only here, edges only there, and so on.
    """
    sentences = []
    for name, parts in sorted(replies.items()):
        if len(parts) % 3:
            raise ProtocolError(
                f"{name!r} counts edges in {len(parts)} parts where a multiple of 3 was expected; "
                "let all parties run one release."
            )
        for at in range(0, len(parts), 3):
            peer, mine, theirs = (text(part) for part in parts[at : at + 3])
            if name < peer and peer in replies:
                sentences.append(
                    f"{name} and {peer}: {_edges(_count(mine, name))} only at {name}, "
                    f"{_count(theirs, name)} only at {peer}"
                )
    return (
        f"organisations list different edges between them ({'; '.join(sentences)}): each side's "
        "own are in edge-mismatch.log in its store, correct the lists and start again"
    )


def _count(number: str, name: str) -> int:
    if not number.isascii() or not number.isdecimal() or len(number) > _DIGITS:
        raise ProtocolError(f"{name!r} counts edges with {number[:20]!r}; start the run again.")
    return int(number)


def _edges(count: int) -> str:
    return f"{count} edge" if count == 1 else f"{count} edges"
