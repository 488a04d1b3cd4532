"""Processes of a federation: started in sessions of their own, found and ended by their pid."""

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

PATIENCE = 300.0  # seconds; generous, since a test machine may be busy with other things


class Party:
    """What one party's start.sh runs, supervised by that script.

    Parameters
    ----------
    command, environment
        The script, and what it inherits.
    home
        Flower's home folder of the party, by which its processes are known.
    log
        File that gets their output.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], home: Path, log: Path
    ) -> None:
        self.command, self.environment = list(command), dict(environment)
        self.home, self.log = home, log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; a party that runs stays as it is."""
        if self._process is not None and self._process.poll() is None:
            return
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_the_tests,
            )

    def kill(self, *programs: str) -> list[int]:
        """kill -9 of the programs, or of all; the script starts them again."""
        killed = []
        for pid, command in self.running():
            if not programs or any(program in command for program in programs):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
        return killed

    def stop(self, patience: float = 15.0) -> None:
        """End the script and all it started; what does not end by itself is killed."""
        if self._process is None:
            return
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + patience
        while self.running() and time.monotonic() < deadline:
            self._process.poll()
            time.sleep(0.1)
        self.die()

    def die(self) -> None:
        """kill -9 of the script and all it started, as when the machine loses its power."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
        self.kill()

    def running(self) -> list[tuple[int, str]]:
        """Pid and command line of the party's Flower programs."""
        mark = f"FLWR_HOME={self.home}".encode()
        return [(pid, words) for pid, words, env in _processes() if mark in env.split(b"\0")]

    @property
    def output(self) -> str:
        """What has been logged so far."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _end_with_the_tests() -> None:
    """Let the script end, with all it started, when the tests are killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _processes() -> Iterator[tuple[int, str, bytes]]:
    """Pid, command line and environment of the processes that may be read."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if words:
                yield int(entry.name), words, (entry / "environ").read_bytes()


def wait_for(
    what: str,
    happened: Callable[[], object],
    timeout: float = PATIENCE,
    unless: Callable[[], object] | None = None,
) -> None:
    """Wait until something has happened, with a limit; `unless` ends the wait as a failure."""
    deadline = time.monotonic() + timeout
    while not happened():
        if unless is not None and unless():
            raise AssertionError(f"it ended before this happened: {what}")
        if time.monotonic() > deadline:
            raise AssertionError(f"this did not happen within {timeout:.0f} s: {what}")
        time.sleep(0.1)
