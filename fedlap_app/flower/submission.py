"""A `flwr run .` of one's own: its SuperLink, its ports, its outcome and its end.

Flower's command returns before the run ends and exits with 0 whatever comes of it, and the
SuperLink that it starts stays up and keeps the working directory of the first run. This module
gives a run a SuperLink of its own, or the one that is named, waits for the outcome and stops what
it started.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fedlap_app.errors import RunError
from fedlap_app.knobs import Value

ENVIRONMENT = {
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_TELEMETRY_ENABLED": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
_MINUTE = 60.0
_CANCEL_SECONDS = 30.0
_CALL_SECONDS = 600.0
_SILENT_SECONDS = 300.0
_UNAVAILABLE = "Connection to the SuperLink is unavailable"  # as Flower says it, whatever the cause
_USING = "Using SuperLink:"


class Flower:
    """Flower's command in the folder of the app, with a home folder of its own.

    Parameters
    ----------
    project : Path
        Folder with the app's ``pyproject.toml``.
    home : Path
        Flower's home folder; logs and state go there.
    """

    connection: tuple[str, ...] = ()

    def __init__(self, project: Path, home: Path) -> None:
        self.project = project
        self.home = home.absolute()
        self._environment = {
            **os.environ,
            **ENVIRONMENT,
            "FLWR_HOME": str(self.home),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
            "OMP_NUM_THREADS": "1",
        }

    def __enter__(self) -> Self:
        self.home.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def submit(self, config: Mapping[str, Value], nodes: int) -> int:
        """Submit the app and return the number of the run."""
        command = ["run", ".", *self.connection, "--format", "json", *self._size(nodes)]
        if config:
            pairs = [f"{key}={_toml(value)}" for key, value in config.items()]
            command += ["--run-config", " ".join(pairs)]
        answer = self._flwr(*command)
        if not answer.get("success") or "run-id" not in answer:
            reason = _sentence(answer)
            if _UNAVAILABLE in reason:
                raise RunError(self._unreachable())
            raise RunError(f"flwr run did not start: {reason}")
        return int(answer["run-id"])

    def wait(self, run_id: int, timeout: float) -> str:
        """Wait for the end of the run; return its status, such as ``finished:completed``."""
        deadline = time.monotonic() + timeout
        heard = time.monotonic()
        while time.monotonic() < deadline:
            try:
                status = self.status(run_id)
                heard = time.monotonic()
            except RunError as error:
                # A SuperLink that is started again goes on with the run.
                if time.monotonic() - heard > _SILENT_SECONDS:
                    raise RunError(
                        f"the SuperLink has not answered for {_SILENT_SECONDS:.0f} s ({error}): "
                        "start it again and look at the run with `flwr list`"
                    ) from None
                status = ""
            if status.startswith("finished"):
                return status
            time.sleep(1.0)
        raise RunError(f"the run did not end within {timeout / _MINUTE:.0f} minutes")

    def cancel(self, run_id: int) -> None:
        """Ask Flower to stop the run, and wait a little for it to end."""
        self._flwr("stop", str(run_id), *self.connection, "--format", "json")
        with contextlib.suppress(RunError):
            self.wait(run_id, _CANCEL_SECONDS)

    def stop(self) -> None:
        """End what was started here; a SuperLink of others goes on."""

    def where_to_look(self) -> str:
        """Where the reason of a failure may be."""
        return f"`flwr log RUN {' '.join(self.connection)}` shows the log of the ServerApp"

    def _unreachable(self) -> str:
        """What may be behind a SuperLink that Flower calls unavailable."""
        return f"the SuperLink cannot be reached; {self.where_to_look()}"

    def _size(self, nodes: int) -> list[str]:
        """Options that say how many nodes there are to be."""
        return []

    def status(self, run_id: int) -> str:
        """What Flower says of a run, such as ``finished:completed``; it takes seconds."""
        answer = self._flwr("list", *self.connection, "--run-id", str(run_id), "--format", "json")
        if not answer.get("success"):
            raise RunError(_sentence(answer))
        runs = answer.get("runs") or [{}]
        return str(runs[0].get("status", ""))

    def _flwr(self, *arguments: str) -> dict[str, Any]:
        try:
            done = subprocess.run(
                ["flwr", *arguments],
                cwd=self.project,
                env=self._environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=_CALL_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise RunError(
                f"flwr {arguments[0]} gave no answer within {_CALL_SECONDS:.0f} s: is the "
                "SuperLink reachable?"
            ) from None
        start = done.stdout.find("{")
        try:
            answer: dict[str, Any] = json.loads(done.stdout[start:])
        except ValueError:
            lines = (done.stderr or done.stdout).strip().splitlines()
            raise RunError(
                f"flwr {arguments[0]} failed: {lines[-1] if lines else 'no output'}"
            ) from None
        return answer


class LocalFlower(Flower):
    """Flower's simulation on a SuperLink of its own, which ends with it."""

    def __init__(self, project: Path, home: Path) -> None:
        super().__init__(project, home)
        ports = free_ports(2)
        self._environment["FLWR_LOCAL_SUPERLINK_HTTP_API_PORT"] = str(ports[0])
        self._environment["FLWR_LOCAL_CONTROL_API_PORT"] = str(ports[1])

    @property
    def log_file(self) -> Path:
        """The SuperLink's log."""
        return self.home / "local-superlink" / "superlink.log"

    def stop(self) -> None:
        """End the SuperLink of this home folder and what it started."""
        for pid in _processes_with(str(self.log_file)):
            _end(pid)

    def where_to_look(self) -> str:
        """The SuperLink's log."""
        return f"the log is {self.log_file}"

    def _size(self, nodes: int) -> list[str]:
        size = f"num-supernodes={nodes} client-resources-num-cpus=1"
        return ["--federation-config", size]


class RemoteFlower(Flower):
    """A SuperLink that runs already, with its SuperNodes.

    Parameters
    ----------
    project, home : as above.
    address : str
        HOST:PORT of the SuperLink.
    authority : Path, optional
        Certificate by which it is known (default: None, a connection without TLS).
    """

    connection = ("fedlap",)

    def __init__(
        self, project: Path, home: Path, address: str, authority: Path | None = None
    ) -> None:
        super().__init__(project, home)
        self._address, self._authority = address, authority
        self._lines = ["[superlink]", 'default = "fedlap"', "", "[superlink.fedlap]"]
        self._lines.append(f"address = {json.dumps(address)}")
        if authority is None:
            self._lines.append("insecure = true")
        else:
            self._lines.append(f"root-certificates = {json.dumps(str(authority.absolute()))}")

    def __enter__(self) -> Self:
        super().__enter__()
        (self.home / "config.toml").write_text("\n".join(self._lines) + "\n", encoding="utf-8")
        return self

    def _unreachable(self) -> str:
        cause = f"its certificate was not signed by {self._authority} or is for another name"
        if self._authority is None:
            cause = "it wants TLS, for which --root-certificates is missing"
        return (
            f"there is no connection to the SuperLink {self._address}: it cannot be reached, or "
            f"{cause}; `fedlap doctor --federation FILE` says which"
        )


def _sentence(answer: Mapping[str, Any]) -> str:
    """The reason that Flower gives, in one line and without what it did before."""
    lines = str(answer.get("error-message") or answer).splitlines()
    told = (line.strip() for line in lines if not line.startswith(_USING))
    return " ".join(line for line in told if line)


def _toml(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}'" if isinstance(value, str) else repr(value)


def free_ports(count: int) -> list[int]:
    """Ports that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _processes_with(argument: str) -> list[int]:
    """Processes whose command line names `argument`."""
    found = [pid for pid, command in _command_lines() if argument in command]
    return [pid for pid in found if pid != os.getpid()]


def _command_lines() -> Iterator[tuple[int, str]]:
    """Every process and its command line; `ps` serves where there is no /proc."""
    if Path("/proc/self/cmdline").exists():
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                yield int(entry.parent.name), entry.read_bytes().decode(errors="replace")
        return
    listing = subprocess.run(
        ["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=False
    )
    for line in listing.stdout.splitlines():
        pid, _, command = line.strip().partition(" ")
        yield int(pid), command


def _end(pid: int, patience: float = 10.0) -> None:
    """Ask a process to end, then insist."""
    try:
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            os.kill(pid, 0)
            time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
