"""Opaque names of nodes, under which the server keeps rows that organisations learn together.

A name is a keyed hash of the node's id under a key of the group, so that all who hold a copy of a
row call it the same and the server cannot test a guessed id. A member lists its rows in the order
of their names, which tells neither the order of its nodes nor which of them are its own.
"""

from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.store import names
from fedlap_app.store.job_files import JobFiles
from fedlap_app.sums.job.party import job_files
from fedlap_app.sums.keyring import KeyRing

KEY_BYTES = 16
_ORDER = names.ORDER
Order = NDArray[np.int64]


def name_rows(keys: KeyRing, subgraph: Subgraph) -> tuple[bytes, Order]:
    """Names of the internal and external nodes, sorted, and the node at each place."""
    base = blake2b(key=keys.group_secret("rows"), digest_size=KEY_BYTES)
    names = []
    for node in (*subgraph.ids.tolist(), *subgraph.external_ids.tolist()):
        hashed = base.copy()
        hashed.update(node.encode())
        names.append(hashed.digest())
    order = sorted(range(len(names)), key=names.__getitem__)
    return b"".join(names[at] for at in order), np.array(order, dtype=np.int64)


def write_order(files: JobFiles, order: Order) -> None:
    """Keep the order of the rows for the messages of the training."""
    files.write(_ORDER, order.astype("<i8").tobytes())


def read_order(root: Path, job: str, held: int) -> Order:
    """Node at each place of the rows that a job named; `root` is the organisation's store."""
    files = job_files(root, job, durable=False)
    if not files.has(_ORDER):
        raise ProtocolError(
            f"there is no order of the rows of job {job} in the store: it was lost, or another "
            "run has taken its place; start the run again"
        )
    order = np.frombuffer(files.read(_ORDER, 1)[0], "<i8")
    if order.size != held:
        raise ProtocolError(
            f"job {job} named {order.size} rows where the graph has {held}: the data changed "
            "during the run, start it again"
        )
    return order
