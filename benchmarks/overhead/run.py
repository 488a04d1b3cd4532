"""The phase before training at two commits, in turns: `python benchmarks/overhead/run.py b31d214`.

Checks the older commit out beside this one, runs `fedlap bench offline` at both with the packages
that are installed, each time in a process of its own, and gives the median over all pairs of the
ratio, in seconds and in seconds of the processor, and the ratio of the quickest runs, which what
else the machine does disturbs least. The older goes first in every other pair.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MEASURED = ("seconds", "cpu_seconds", "cpu_seconds_iteration")
Found = dict[str, float]


def main() -> None:
    """Measure, and print a line for each pair and the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", help="what this one is compared with")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--repeats", type=int, default=1, help="turns in each process")
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--backend", default="ckks")
    parser.add_argument("--solver", default="block-lanczos")
    parser.add_argument("--vectors", type=int, default=100)
    given = parser.parse_args()
    taken: list[tuple[Found, Found]] = []
    with checked_out(given.commit) as other:
        for pair in range(given.pairs):
            places = (other, ROOT) if pair % 2 == 0 else (ROOT, other)
            found = {place: measured(place, given) for place in places}
            now, before = found[ROOT], found[other]
            taken.append((now, before))
            said = ", ".join(f"{key} {before[key]:.2f} -> {now[key]:.2f}" for key in MEASURED)
            print(f"pair {pair + 1}: {said}", flush=True)
    for key in MEASURED:
        ratios = [now[key] / before[key] for now, before in taken]
        least = min(now[key] for now, _ in taken) / min(before[key] for _, before in taken)
        print(
            f"{key}: median ratio {statistics.median(ratios):.3f} (from {min(ratios):.3f} to "
            f"{max(ratios):.3f}), of the quickest runs {least:.3f}"
        )


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A folder with another commit, for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="fedlap-overhead-") as folder:
        place = Path(folder) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(place), commit], check=True)
        try:
            yield place
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


def measured(place: Path, given: argparse.Namespace) -> Found:
    """What the phase takes at one commit."""
    words = ["bench", "offline", "--json", "--no-paper", f"--repeats={given.repeats}"]
    for key in ("dataset", "clients", "backend", "solver", "vectors"):
        words.append(f"--{key}={getattr(given, key)}")
    words += ["--partition=random", "--operator=sym", "--block=10"]  # as both have them
    # The folder before the installed package: the commit's own code runs.
    environment = {**os.environ, "PYTHONPATH": str(place)}
    command = [sys.executable, "-P", "-c", "from fedlap_app.cli import main; main()", *words]
    done = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{place}: {done.stderr.strip()}")
    report: dict[str, Any] = json.loads(done.stdout)
    (row,) = (each for each in report["rows"] if each["backend"] == given.backend)
    return {key: float(row[key]) for key in MEASURED}


if __name__ == "__main__":
    main()
