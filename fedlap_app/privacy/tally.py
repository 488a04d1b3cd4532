"""How many vectors an organisation has exchanged, for each state of its graph.

The count is in the file ``consent.json`` of the organisation's store, apart from the files of jobs:
deleting jobs or bases leaves it. A job is counted by its columns so far, which a resent or
recomputed step does not change, so that a vector counts once however often it is sent.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.store import names
from fedlap_app.store.rewritten import RewrittenFile

FILE = names.CONSENT
_MOST_GRAPHS = 256
_MOST_JOBS = 16


def graph_mark(subgraph: Subgraph) -> str:
    """Fingerprint of nodes and edges alone.

    The order of rows, features, labels and splits do not change it, and neither do weights and
    directions: a run may ask for directed edges, which must not begin a new count.
    """
    ids = np.concatenate([subgraph.ids, subgraph.external_ids])
    order = np.argsort(ids, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    ends = place[subgraph.edge_index]
    pairs = np.unique(ends.min(axis=0) * order.size + ends.max(axis=0))
    mark = sha256("\0".join(ids[order].tolist()).encode())
    mark.update(np.less(order, subgraph.num_nodes).tobytes())
    mark.update(pairs.astype("<i8").tobytes())
    return mark.hexdigest()


class Tally:
    """The counts of one store; the caller holds the store's lock.

    Parameters
    ----------
    root
        Folder of the store.
    durable
        Whether a count must survive a power failure.
    """

    def __init__(self, root: Path, *, durable: bool) -> None:
        self._file = RewrittenFile(root / FILE, durable=durable, remedy=_REMEDY)
        self._known: dict[str, Any] = {}

    def exchanged(self, graph: str, *, besides: str = "") -> int:
        """Vectors exchanged with a graph, those of one job left out."""
        counted = self._graphs().get(graph, {"before": 0, "jobs": {}})
        jobs: dict[str, int] = counted["jobs"]
        return int(counted["before"]) + sum(n for job, n in jobs.items() if job != besides)

    def note(self, graph: str, job: str, vectors: int) -> None:
        """Take down that a job reaches so many vectors, before they leave."""
        graphs = self._graphs()
        counted = graphs.get(graph, {"before": 0, "jobs": {}})
        if counted["jobs"].get(job, 0) >= vectors:
            return
        others = {name: known for name, known in graphs.items() if name != graph}
        jobs = {name: count for name, count in counted["jobs"].items() if name != job}
        before = counted["before"]
        while len(jobs) >= _MOST_JOBS:  # the oldest can no longer be gone on with
            before += jobs.pop(next(iter(jobs)))
        jobs[job] = vectors
        while len(others) >= _MOST_GRAPHS:
            del others[next(iter(others))]
        now = {**others, graph: {"before": before, "jobs": jobs}}
        lines = ",\n".join(f'"{name}": {json.dumps(known)}' for name, known in now.items())
        text = f'{{"about": "{_ABOUT}", "graphs": {{\n{lines}\n}}}}\n'
        self._file.write(text, {"about": _ABOUT, "graphs": now})
        self._known = now

    def _graphs(self) -> dict[str, Any]:
        found = self._file.read()
        if found is None:
            return {}
        graphs: Any = found.get("graphs")
        if graphs is not self._known and not _is_count(graphs):
            raise self._file.damaged()
        self._known = graphs
        return self._known


_REMEDY = (
    "restore it from a backup; deleting it forgets how many vectors have left, so that limits "
    "count from zero again"
)
_ABOUT = "vectors that left, by graph; deleting this file forgets them"


def _is_count(graphs: object) -> bool:
    """Whether the file says what this module writes."""
    if not isinstance(graphs, dict):
        return False
    for counted in graphs.values():
        if not isinstance(counted, dict) or not isinstance(counted.get("jobs"), dict):
            return False
        if not all(isinstance(n, int) for n in (counted.get("before"), *counted["jobs"].values())):
            return False
    return True
