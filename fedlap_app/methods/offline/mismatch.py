"""The sentence about organisations that list different edges between them: counts, no ids."""

from collections.abc import Mapping, Sequence

from fedlap_app.methods.offline.messages import Data, text


def describe(replies: Mapping[str, Sequence[Data]]) -> str:
    """Counts of every pair, from each side's comparison.

    Parameters
    ----------
    replies
        By member: peer, edges only here, edges only there, and so on.
    """
    sentences = []
    for name, parts in sorted(replies.items()):
        for at in range(0, len(parts), 3):
            peer, mine, theirs = (text(part) for part in parts[at : at + 3])
            if name < peer:
                sentences.append(
                    f"{name} and {peer}: {_edges(int(mine))} only at {name}, "
                    f"{int(theirs)} only at {peer}"
                )
    return (
        f"organisations list different edges between them ({'; '.join(sentences)}): each side's "
        "own are in edge-mismatch.log in its store, correct the lists and start again"
    )


def _edges(count: int) -> str:
    return f"{count} edge" if count == 1 else f"{count} edges"
