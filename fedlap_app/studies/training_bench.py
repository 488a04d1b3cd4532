"""What both ways of sealing a training cost beside plain training: bytes, seconds, and where."""

import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fedlap_app.api.run import Run
from fedlap_app.api.training import conduct
from fedlap_app.flower.course import Course
from fedlap_app.methods.registry import method_class
from fedlap_app.settings import Settings
from fedlap_app.store import names
from fedlap_app.sums.ckks.parameters import TRAINING_2048
from fedlap_app.sums.training.adder import Adder
from fedlap_app.sums.training.covers import CKKS, COVERS, MASK
from fedlap_app.sums.training.records import Records
from fedlap_app.sums.training.sealing import Sealer
from fedlap_app.sums.training.shape import SumShape

_PLAIN = "plain"
_PARTS: Mapping[str, tuple[type, str]] = {
    "whole numbers": (SumShape, "encode"),
    "sealing": (Sealer, "seal"),
    "adding": (Adder, "add"),
    "opening": (Sealer, "open"),
    "next model": (Course, "taken"),
    "records": (Records, "_write"),
}


@dataclass
class _Pacer:
    """Observer that notes the seconds between rounds; the first one builds models."""

    last: tuple[float, float] | None = None
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def step_done(self, number: int, steps: int) -> None:
        """Only rounds are compared."""

    def round_done(self, number: int, rounds: int, totals: Mapping[str, float]) -> None:
        """Note the time of a round."""
        now = time.perf_counter(), time.process_time()
        if self.last is not None:
            self.wall.append(now[0] - self.last[0])
            self.cpu.append(now[1] - self.last[1])
        self.last = now


def bench_training(settings: Settings, repeats: int) -> dict[str, Any]:
    """Medians of rounds of plain and of sealed training, taken in turns in this process.

    Parameters
    ----------
    settings
        What is trained; there is one stage, and it has all its rounds.
    repeats
        Turns.
    """
    # What is compared is the training, not the phase before it.
    settings = replace(settings, self_training=0, patience=0, backend="mask", training_ring=32)
    pacers: dict[str, list[_Pacer]] = {each: [] for each in (_PLAIN, *COVERS)}
    runs: dict[str, Run] = {}
    spent = {each: defaultdict[str, float](float) for each in pacers}
    rounds = 0
    for _ in range(repeats):
        for backend, found in pacers.items():
            found.append(_Pacer())
            one = replace(settings, training_backend=backend)
            with _timed(spent[backend], method_class(one.method)):
                runs[backend] = conduct(one, found[-1])
        rounds += settings.rounds
    report: dict[str, Any] = {
        "dataset": settings.dataset,
        "method": settings.method,
        "clients": runs[_PLAIN].summary["clients"],
        "rounds": settings.rounds * repeats,
    }
    for backend, found in pacers.items():
        report[backend] = {
            "bytes": bytes_of(runs[backend].folder, runs[backend].summary),
            "ms": 1000 * statistics.median(each for pacer in found for each in pacer.wall),
            "cpu_ms": 1000 * statistics.median(each for pacer in found for each in pacer.cpu),
        }
    for backend in COVERS:
        for what in ("bytes", "ms", "cpu_ms"):
            report[backend][f"{what}_ratio"] = report[backend][what] / report[_PLAIN][what]
        found_in = spent[backend]
        parts = {name: 1000 * found_in[name] / rounds for name in (*_PARTS, "training")}
        report[backend]["parts_ms"] = parts
    above = report[CKKS]["cpu_ms"] - report[_PLAIN]["cpu_ms"]
    report["ciphertexts"] = _ciphertexts(runs[CKKS])
    report["ms_per_ciphertext"] = above / (report["clients"] * report["ciphertexts"])
    return report


def _ciphertexts(run: Run) -> int:
    """Ciphertexts of the parameters of a model, which one organisation sends in a round."""
    return TRAINING_2048.ciphertexts(sum(value.size for value in run.parameters.values()))


def table_of(report: Mapping[str, Any]) -> str:
    """The report as lines of text."""
    kinds = (_PLAIN, *COVERS)
    lines = [
        f"{report['dataset']}, {report['method']}, {report['clients']} clients, "
        f"median of {report['rounds']} round{'s' * (report['rounds'] != 1)} in one process",
        f"  {'':16}" + "".join(f"{kind:>12}" for kind in kinds) + "   ratios to plain",
    ]
    for what, name in (("bytes", "bytes"), ("ms", "ms a round"), ("cpu_ms", "CPU ms a round")):
        form = ",.0f" if what == "bytes" else ".1f"
        shown = "".join(f"{format(report[kind][what], form):>12}" for kind in kinds)
        ratios = "".join(f"{report[kind][f'{what}_ratio']:>8.3f}" for kind in COVERS)
        lines.append(f"  {name:16}{shown}{ratios}")
    lines.append("  of a sealed round, all clients together, CPU ms:")
    for name in report[MASK]["parts_ms"]:
        parts = "".join(f"{report[kind]['parts_ms'][name]:>12.1f}" for kind in COVERS)
        lines.append(f"    {name:14}{'':>12}{parts}")
    lines.append(
        f"  ckks: {report['ciphertexts']} ciphertexts an organisation and round, "
        f"{report['ms_per_ciphertext']:.2f} CPU ms each above plain"
    )
    return "\n".join(lines)


def bytes_of(folder: Path, summary: Mapping[str, Any]) -> int:
    """Bytes of a run's training both ways, the handshake of its sums included."""
    total = sum(int(sum(summary[way].values())) for way in ("bytes_up", "bytes_down"))
    file = folder / names.PRICE
    if file.exists():  # the basis is the same for both
        found = json.loads(file.read_text(encoding="utf-8"))
        total -= int(sum(found["up"].values()) + sum(found["down"].values()))
    return total


@contextmanager
def _timed(spent: defaultdict[str, float], method: type) -> Iterator[None]:
    """Count the CPU seconds of the parts of a sealed round meanwhile."""
    with ExitStack() as stack:
        for name, (owner, call) in {**_PARTS, "training": (method, "train")}.items():
            stack.enter_context(_clocked(spent, name, owner, call))
        yield


@contextmanager
def _clocked(spent: defaultdict[str, float], name: str, owner: type, call: str) -> Iterator[None]:
    own = vars(owner).get(call)
    inner: Callable[..., Any] = getattr(owner, call)

    def clocked(*args: Any, **options: Any) -> Any:  # noqa: ANN401
        started = time.process_time()
        try:
            return inner(*args, **options)
        finally:
            spent[name] += time.process_time() - started

    setattr(owner, call, clocked)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, call)
        else:
            setattr(owner, call, own)
