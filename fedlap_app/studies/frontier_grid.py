"""Which settings of the offline phase a frontier is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from fedlap_app.errors import ConfigError
from fedlap_app.knobs import Value, from_text
from fedlap_app.settings import KNOBS, Settings

AXES = ("operator", "keep", "vectors", "rank", "block")
BOUND = "bound"
"""In a list of vectors: as many as the bound allows."""

USUAL_VECTORS = (BOUND, 100, 300)
_EXAMPLES = {
    "operator": "sym,regularised",
    "keep": "smallest,magnitude",
    "vectors": "bound,100,300",
    "rank": "30,100",
    "block": "1,10",
}

Values = Sequence[Value]


@dataclass(frozen=True)
class Point:
    """One setting of the offline phase; `rank` is the number of vectors kept."""

    operator: str
    keep: str
    vectors: int
    rank: int
    block: int

    @property
    def exchanged(self) -> int:
        """M: columns of all block products; `directed` sends A'q and then A (A'q)."""
        return 2 * self.vectors if self.operator == "directed" else self.vectors

    def settings(self, settings: Settings) -> Settings:
        """Settings of a run at this point."""
        return replace(settings, **{name: getattr(self, name) for name in AXES})

    def __str__(self) -> str:
        return (
            f"{self.operator}, {self.keep}, {self.vectors} vectors, {self.rank} kept, "
            f"block {self.block}"
        )


def parse_choices(key: str, text: str) -> list[Value]:
    """Values of one axis from a list such as ``31,100,300``, each of them checked."""
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise ConfigError(
            f"--grid-{key} = '{text}' has an empty place: separate values by single commas, for "
            f"example --grid-{key} {_EXAMPLES[key]}"
        )
    found: list[Value] = []
    for word in words:
        if key == "vectors" and word == BOUND:
            found.append(word)
            continue
        try:
            found.append(from_text(word, KNOBS[key]))
        except ConfigError as error:
            raise ConfigError(f"--grid-{key}: {error}") from None
    return list(dict.fromkeys(found))


def grid_of(
    settings: Settings, lists: Mapping[str, Values], bound: int, nodes: int
) -> tuple[list[Point], list[dict[str, str]]]:
    """All points that can be run, and those that cannot with the reason.

    Parameters
    ----------
    settings
        Value of an axis that has no list; rank and block are then cut to the vectors of a point.
    lists
        Values of the other axes.
    bound
        What the word `bound` stands for: the most vectors exchanged.
    nodes
        Nodes of the whole graph; there are no more directions than these.
    """
    points: dict[Point, None] = {}
    skipped: dict[str, str] = {}
    axes = [lists.get(name, [getattr(settings, name)]) for name in AXES]
    for operator, keep, vectors, rank, block in product(*axes):
        share = 2 if operator == "directed" else 1
        count = bound // share if vectors == BOUND else int(vectors)
        size, kept = int(block), int(rank) or count
        point = Point(
            operator=str(operator),
            keep=str(keep),
            vectors=count,
            rank=kept if "rank" in lists else min(kept, count),
            block=size if "block" in lists else min(size, count),
        )
        if reason := _obstacle(point, nodes):
            skipped[str(point)] = reason
        else:
            points[point] = None
    return list(points), [{"setting": name, "reason": why} for name, why in skipped.items()]


def _obstacle(point: Point, nodes: int) -> str:
    if point.vectors < 1:
        return "the bound leaves no vector"
    if point.vectors > nodes:
        return f"the graph has only {nodes} nodes"
    if point.rank > point.vectors:
        return "no more vectors can be kept than are exchanged"
    if point.block > point.vectors:
        return "a block holds no more vectors than are exchanged"
    return ""
