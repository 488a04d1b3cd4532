"""Attack (d): the server, which sees sizes, counts and sealed bytes, but holds no key.

Views of runs over two graphs, which have the same nodes at the same organisations and other edges,
are given to a classifier; it is then asked about further runs, which graph they were over. If
nothing about edges shows in what the server sees, it guesses: an AUC of 1/2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedlap_app.studies.attacks.scores import Scores

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

_PIECES = 12
_STRENGTH = 0.3


@dataclass(frozen=True)
class Exchange:
    """One message of the server and the reply.

    Attributes
    ----------
    member
        Number of the node.
    kind
        Type of the message.
    sent, answered
        All bytes of the two, without those that say how long the client worked.
    seconds
        What the client says about its time.
    """

    member: int
    kind: str
    sent: bytes
    answered: bytes
    seconds: float


def contents_of(exchanges: Sequence[Exchange]) -> Array:
    """Numbers of messages, their sizes, and how bytes are distributed in pieces of each reply."""
    rows = [_described(each) for each in exchanges]
    return np.concatenate([[len(exchanges)], *rows])


def times_of(exchanges: Sequence[Exchange]) -> Array:
    """How long each client says that it worked on each message."""
    return np.array([each.seconds for each in exchanges])


def attack_server(
    seen: Sequence[Array], labels: Bools, asked: Sequence[Array], truth: Bools
) -> Scores:
    """Train a classifier on views, and score it on others.

    Parameters
    ----------
    seen, labels
        Numbers that describe each view, and whether the run was over the second graph.
    asked, truth
        The same of runs that the classifier has not seen.
    """
    from sklearn.svm import LinearSVC

    length = max(map(len, (*seen, *asked)))
    known, new = (np.stack([_padded(each, length) for each in part]) for part in (seen, asked))
    center, spread = known.mean(axis=0), known.std(axis=0)
    varies = spread > 1e-12 * np.maximum(1.0, np.abs(center))
    if not varies.any():
        return Scores(np.zeros(truth.size), truth, np.arange(truth.size))
    known, new = ((each[:, varies] - center[varies]) / spread[varies] for each in (known, new))
    # The l1 penalty finds the few numbers that tell, if any do.
    model = LinearSVC(C=_STRENGTH, penalty="l1", dual=False, random_state=0).fit(known, labels)
    return Scores(model.decision_function(new), truth, np.arange(truth.size))


def _described(exchange: Exchange) -> Array:
    """Sizes of a message and its reply, and for each piece of it three moments of its bytes."""
    data = np.frombuffer(exchange.answered, np.uint8)
    pieces = np.array_split(data, _PIECES)
    moments = [
        [float((piece == 0).mean()), float(piece.mean()), float(piece.std())]
        if piece.size
        else [0.0] * 3
        for piece in pieces
    ]
    return np.array([len(exchange.sent), data.size, *np.ravel(moments)], dtype=np.float64)


def _padded(values: Array, length: int) -> Array:
    return np.pad(values, (0, length - values.size), constant_values=-1.0)
