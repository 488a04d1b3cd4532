"""Mutate many messages: ``python -m tests.fuzz 20000 [--seed 1] [--kinds mask plain]``.

Half of them go to the clients of every kind of run, half of them to its server. It says what went
wrong, and ends with exit code 1 if anything did.
"""

import argparse
import faulthandler
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from .clients import attack_clients
from .runs import KINDS, recorded
from .server import MEGABYTES, attack_server


def main() -> int:
    """Attack every kind of run; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("number", type=int, help="mutations each way, clients and server")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    asked = parser.parse_args()
    faulthandler.enable()
    share = -(-asked.number // len(asked.kinds))
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="fedlap-fuzz-") as place:
        os.environ["FEDLAP_HOME"] = str(Path(place) / "home")
        for kind in asked.kinds:
            wrong += _attacked(kind, Path(place) / kind, share, asked.seed)
    print(f"{wrong} faults" if wrong else "no fault")
    return bool(wrong)


def _attacked(kind: str, folder: Path, count: int, seed: int) -> int:
    """Attack one kind of run; how much went wrong."""
    known, expected = recorded(kind, folder / "calm")
    before, started = _memory(), time.perf_counter()
    found, ended = attack_clients(kind, folder / "attacked", known, count, seed)
    grown, same = _memory() - before, ended == expected
    seconds = time.perf_counter() - started
    print(
        f"{kind}, clients: {dict(found.outcomes)}, {len(found.faults)} faults, {grown:.0f} MB "
        f"more, {seconds:.0f} s; the honest run ended {'the same' if same else 'otherwise'}"
    )
    started = time.perf_counter()
    replied, _ = attack_server(kind, folder / "calm", known, count, seed)
    seconds = time.perf_counter() - started
    print(
        f"{kind}, server: {dict(replied.outcomes)}, {len(replied.faults)} faults, {seconds:.0f} s",
        flush=True,
    )
    faults = [*found.faults, *replied.faults]
    for fault in faults[:20]:
        print(fault, file=sys.stderr)
    return len(faults) + (not same) + (grown > MEGABYTES)


def _memory() -> float:
    """The most megabytes that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
