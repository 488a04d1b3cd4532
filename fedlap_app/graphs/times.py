"""When nodes and edges came: the optional columns `time` of an organisation folder.

A time is a number, such as a day or a Unix time. A node was there from the earliest of its own time
and those of its edges, so that both sides of an edge between organisations tell alike when it was.
What has no time was always there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedlap_app.errors import DataError
from fedlap_app.graphs.arrays import Floats
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.graphs.tables import column_names, find_table, read_table
from fedlap_app.graphs.without import with_edges

COLUMN = "time"


@dataclass(frozen=True, eq=False)
class Dated:
    """A part of the graph whose nodes and edges have times.

    Attributes
    ----------
    part : what the organisation holds.
    nodes, edges : (n,) and (E,) since when; minus infinity: always.
    """

    part: Subgraph
    nodes: Floats
    edges: Floats

    def until(self, moment: float) -> Subgraph:
        """The part as it was at a moment, with what came at that very moment."""
        return with_edges(self.part, self.edges <= moment, self.nodes <= moment)


def read_dated(folder: Path, part: Subgraph) -> Dated:
    """Times of what a folder holds; a folder without any is refused.

    Parameters
    ----------
    folder, part
        An organisation folder, and what `read_folder` gave of it.
    """
    tables = {stem: find_table(folder, stem) for stem in ("nodes", "edges")}
    dated = {stem for stem, path in tables.items() if COLUMN in column_names(path)}
    if not dated:
        raise DataError(
            f"{folder} says of no node and no edge since when it was there: add a column "
            f"'{COLUMN}' to the table of edges or of nodes"
        )
    nodes, edges = np.full(part.num_nodes, -np.inf), np.full(part.edge_weight.size, -np.inf)
    if "edges" in dated:
        edges = _edge_times(tables["edges"], part)
        first = np.full(part.num_nodes + part.num_external, np.inf)
        np.minimum.at(first, part.edge_index.ravel(), np.tile(edges, 2))
        nodes = first[: part.num_nodes]
        nodes[np.isinf(nodes)] = -np.inf
    if "nodes" in dated:
        own = _times(tables["nodes"], ("id",))[1]
        nodes = np.where(np.isinf(nodes), own, np.minimum(nodes, own))
    return Dated(part, nodes, edges)


def _times(path: Path, text: Sequence[str]) -> tuple[dict[str, list[str]], Floats]:
    """Columns of a table, and its times."""
    table = read_table(path, text, (COLUMN,))
    times = table.numbers[:, 0]
    bad = np.flatnonzero(~np.isfinite(times))
    if bad.size:
        raise DataError(f"{table.where(bad[0])}: the time is no finite number: correct it.")
    return {name: table.text[name].tolist() for name in text}, times


def _edge_times(path: Path, part: Subgraph) -> Floats:
    """The earliest time of every edge, which may be listed in both directions."""
    text, times = _times(path, ("source", "target"))
    first: dict[tuple[str, str], float] = {}
    for source, target, time in zip(text["source"], text["target"], times.tolist(), strict=True):
        ends = (source, target) if part.directed or source < target else (target, source)
        first[ends] = min(time, first.get(ends, np.inf))
    everyone = [*part.ids.tolist(), *part.external_ids.tolist()]
    found = np.empty(part.edge_weight.size)
    for at, (source, target) in enumerate(part.edge_index.T.tolist()):
        one, other = everyone[source], everyone[target]
        found[at] = first[(one, other) if part.directed or one < other else (other, one)]
    return found


@dataclass(frozen=True, eq=False)
class PastAndNow:
    """A federation at the moment that separates validation from test, and as it is.

    Attributes
    ----------
    past : parts with training and validation nodes only.
    now : the same with the nodes that came later, which are the test nodes.
    moment : when the past ends.
    """

    past: list[Subgraph]
    now: list[Subgraph]
    moment: float


def split_by_time(parts: Sequence[Dated], train: float, val: float) -> PastAndNow:
    """Train on the past and test on what came later.

    Parameters
    ----------
    parts
        All organisations.
    train, val
        Shares of the labelled nodes, the earliest first; all later ones are test nodes.
    """
    times = np.sort(np.concatenate([each.nodes[each.part.labels >= 0] for each in parts]))
    if not 0.0 < train < train + val < 1.0 or not times.size:
        raise DataError(
            f"{train:g} and {val:g} of {times.size} labelled nodes leave none for training, "
            "validation or test: give shares above 0 that add up to less than 1"
        )
    places = [min(int(share * times.size), times.size - 1) for share in (train, train + val)]
    first, moment = (float(times[max(place - 1, 0)]) for place in places)
    if not first < moment < times[-1]:
        raise DataError(
            f"the times of {times.size} labelled nodes do not tell past from future (training "
            f"ends at {first:g}, validation at {moment:g}, the last node came at {times[-1]:g}): "
            "give nodes or edges finer times"
        )
    now = [_masked(each, first, moment) for each in parts]
    past = [replace(each, part=part).until(moment) for each, part in zip(parts, now, strict=True)]
    return PastAndNow(past, now, moment)


def _masked(dated: Dated, first: float, moment: float) -> Subgraph:
    """A part with splits by time."""
    labelled, times = dated.part.labels >= 0, dated.nodes
    return replace(
        dated.part,
        train_mask=labelled & (times <= first),
        val_mask=labelled & (times > first) & (times <= moment),
        test_mask=labelled & (times > moment),
    )
