"""What sealed training costs on real SuperNodes: all parties of a demonstration on this machine."""

import contextlib
import os
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fedlap_app.deploy.demo import Demo, make_demo
from fedlap_app.deploy.organisation import ENVIRONMENT
from fedlap_app.errors import RunError
from fedlap_app.flower.server.run_folder import RunFolder, offline_file
from fedlap_app.flower.submission import Flower, RemoteFlower, free_ports
from fedlap_app.graphs import organisation
from fedlap_app.knobs import Value
from fedlap_app.settings import Settings
from fedlap_app.store import names
from fedlap_app.studies.training_bench import bytes_of
from fedlap_app.sums.programs import Training

# What a bench of both needs to be allowed: the parties are all this machine's own.
_POLICY = '\n[policy]\ntraining-backends = ["plain", "mask"]\nserver-steps = true\n'
_BACKENDS = ("plain", "mask")
_HOUR, _MINUTE, _PAUSE = 3600.0, 60.0, 0.5
_PATIENCE = 15.0  # seconds for processes to end by themselves
_HERE = frozenset({"run-dir", "store-dir"})


def bench_supernodes(settings: Settings, repeats: int, project: Path) -> dict[str, Any]:
    """Medians of rounds of sealed and of plain training on SuperNodes, taken in turns.

    Parameters
    ----------
    settings
        What is trained; there is one stage, and it has all its rounds.
    repeats
        Turns.
    project
        Folder of the app.
    """
    settings = replace(settings, self_training=0, patience=0, backend="mask", training_ring=32)
    found: dict[str, list[dict[str, Any]]] = {backend: [] for backend in _BACKENDS}
    with TemporaryDirectory(prefix="fedlap-bench-", ignore_cleanup_errors=True) as folder:
        demo = _demo(Path(folder) / "demo", settings)
        authority = demo.superlink / "ca.crt"
        address = demo.federation.own_address
        with (
            _running(demo, Path(folder)),
            RemoteFlower(project, Path(folder) / "flwr", address, authority) as flower,
        ):
            count = len(demo.federation.members)
            for _ in range(repeats):
                for backend, seen in found.items():
                    one = replace(settings, clients=count, training_backend=backend)
                    seen.append(_measured(demo, flower, one))
    report: dict[str, Any] = {
        "dataset": settings.dataset,
        "method": settings.method,
        "clients": count,
        "rounds": settings.rounds * repeats,
    }
    for backend, seen in found.items():
        report[backend] = {
            "bytes": seen[-1]["bytes"],
            "ms": 1000 * statistics.median(each for one in seen for each in one["rounds"]),
            "parts_s": {
                part: statistics.median(one["parts_s"][part] for one in seen)
                for part in seen[0]["parts_s"]
            },
        }
    for what in ("bytes", "ms"):
        report[f"{what}_ratio"] = report["mask"][what] / report["plain"][what]
    return report


def table_of(report: Mapping[str, Any]) -> str:
    """The report as lines of text."""
    plain, mask = (report[backend] for backend in _BACKENDS)
    lines = [
        f"{report['dataset']}, {report['method']}, {report['clients']} SuperNodes on this machine, "
        f"median of {report['rounds']} round{'s' * (report['rounds'] != 1)}",
        f"  {'':18}{'plain':>12}{'mask':>12}{'ratio':>8}",
        f"  {'bytes':18}{plain['bytes']:>12,}{mask['bytes']:>12,}{report['bytes_ratio']:>8.3f}",
        f"  {'ms a round':18}{plain['ms']:>12.0f}{mask['ms']:>12.0f}{report['ms_ratio']:>8.3f}",
        "  seconds of one training:",
    ]
    for part, seconds in plain["parts_s"].items():
        lines.append(f"    {part:16}{seconds:>12.1f}{mask['parts_s'][part]:>12.1f}")
    return "\n".join(lines)


def _demo(folder: Path, settings: Settings) -> Demo:
    """A demonstration whose organisations allow what is compared."""
    port = free_ports(1)[0]
    demo = make_demo(folder, settings.data_spec, port=port)
    members = demo.federation.members
    for member, free in zip(members, free_ports(len(members)), strict=True):
        place = demo.organisation(member.name)
        with (place / ENVIRONMENT).open("a", encoding="utf-8") as file:
            file.write(f"FEDLAP_NODE_PORT={free}\n")
        with (place / "data" / organisation.FILE).open("a", encoding="utf-8") as file:
            file.write(_POLICY)
    return demo


@contextmanager
def _running(demo: Demo, logs: Path) -> Iterator[None]:
    """All processes of a demonstration meanwhile, each party's by its own start.sh."""
    folders = [demo.superlink, *(demo.organisation(each.name) for each in demo.federation.members)]
    with contextlib.ExitStack() as stack:
        for folder in folders:
            stack.enter_context(_started(folder, logs / f"{folder.name}.log"))
            if folder == demo.superlink:
                _register(folder)
        yield


def _register(folder: Path) -> None:
    """Make the SuperNodes known to the SuperLink, which the script waits for."""
    done = subprocess.run(
        ["sh", str(folder / "register.sh")],
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        told = (done.stderr or done.stdout).strip().splitlines()
        raise RunError(f"the SuperNodes were not registered: {told[-1] if told else 'no reason'}")


@contextmanager
def _started(folder: Path, log: Path) -> Iterator[None]:
    """The processes of one party, which end with the bench."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["sh", str(folder / "start.sh")],
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        # The script, all that it started, and what these have left behind: a session of its own.
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)


def _environment() -> dict[str, str]:
    """What a party inherits: no setting of this shell."""
    ours = ("PYTHONPATH", "FEDLAP_", "FLWR_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return {**kept, "OMP_NUM_THREADS": "1"}


def _ended(demo: Demo, flower: Flower, run_id: int) -> RunFolder:
    """Folder of a run that went well, once it has ended.

    The folder tells it: to ask Flower takes seconds of the processor that is measured.
    """
    started = asked = time.monotonic()
    while True:
        folder = RunFolder.find(run_id, demo.superlink / "state" / "fedlap" / "runs")
        if folder is not None and folder.finished:
            return folder
        now, reason = time.monotonic(), ""
        if folder is not None and (folder.path / names.ERROR).exists():
            reason = folder.read_json(names.ERROR)["error"]
        elif now - started > _HOUR:
            reason = "it takes more than an hour; take fewer clients or rounds"
        elif now - asked > _MINUTE:
            asked, status = now, flower.status(run_id)
            reason = status if status.startswith("finished") else ""
        if reason:
            raise RunError(f"a run of the bench failed: {reason}")
        time.sleep(_PAUSE)


def _measured(demo: Demo, flower: Flower, settings: Settings) -> dict[str, Any]:
    """Seconds of every round of one run, and of what comes before and after."""
    usual = Settings().to_config()
    config: dict[str, Value] = {
        key: value
        for key, value in settings.to_config().items()
        if key not in _HERE and value != usual.get(key)
    }
    run_id = flower.submit(config, settings.clients)
    folder = _ended(demo, flower, run_id)
    summary = folder.read_json(names.SUMMARY)
    times = [row["seconds"] for row in folder.read_rounds()]
    # The first round, which begins training, is left out.
    rounds = [after - before for before, after in pairwise(times)]
    sealed = settings.training_backend == "mask"
    keys = folder.read_json(offline_file(Training.name))["seconds"] if sealed else 0.0
    rest = summary["seconds"]["train"] - keys - sum(rounds)
    parts = {"keys": keys, "later rounds": sum(rounds), "all else": rest}
    return {"rounds": rounds, "parts_s": parts, "bytes": bytes_of(folder.path, summary)}
