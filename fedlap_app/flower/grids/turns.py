"""Turns of runs on this machine whose simulated organisations share their stores."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from logging import WARNING
from pathlib import Path

from flwr.common.logger import log

from fedlap_app.errors import RunError
from fedlap_app.store import places
from fedlap_app.store.locks import Lock

_WAITING = "Waiting for another run on this machine that uses the store of %s"


@contextmanager
def turn(names: Sequence[str], stores: str, limit: float) -> Iterator[None]:
    """Keep other runs away from the offline phase of these organisations.

    A client holds one card at a time, so that two phases at once would take it from each other.
    Whoever comes second waits, and may find the basis that the first one computed.

    Parameters
    ----------
    names : Sequence[str]
        The organisations.
    stores : str
        Folder of their stores; empty: the usual one.
    limit : float
        Seconds after which waiting ends with an error.
    """
    place = str(Path(stores).absolute()) if stores else ""
    deadline = time.monotonic() + limit
    with ExitStack() as held:
        # In one order everywhere, so that two runs never wait for each other.
        for name in sorted(names):
            mark = sha256(f"{place}\n{name}".encode()).hexdigest()[:32]
            lock = Lock(places.turns_dir() / mark)
            left = max(deadline - time.monotonic(), 0.0)
            if not lock.take(left, waiting=lambda name=name: log(WARNING, _WAITING, name)):  # type: ignore[misc]
                raise RunError(
                    f"another run on this machine has used the store of {name} for {limit:.0f} s: "
                    "wait for its end, or give this run a store-dir of its own"
                )
            held.callback(lock.release)
        yield
