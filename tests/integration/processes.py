"""Processes of a federation: started in groups of their own, supervised, ended by their pid."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PATIENCE = 300.0  # seconds; generous, since a test machine may be busy with other things


class Supervised:
    """A command that is started again when it ends, as systemd or compose would do.

    Parameters
    ----------
    command, environment
        What runs.
    log
        File that gets its output, over all starts.
    pause
        Seconds between the end and the next start.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        *,
        cwd: Path,
        pause: float = 3.0,
    ) -> None:
        self.command, self.environment, self.log = list(command), dict(environment), log
        self.cwd, self.pause = cwd, pause
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self._wanted = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> "Supervised":
        """Start it and keep it up."""
        self._wanted.set()
        self._launch()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def kill(self) -> None:
        """End the process and all it started, without a chance to tidy up."""
        if self.process is not None:
            _signal_group(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def stop(self) -> None:
        """End it for good; what does not end by itself is killed."""
        self._wanted.clear()
        if self._thread is not None:
            self._thread.join()
        if self.process is None:
            return
        _signal_group(self.process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=15)
        _signal_group(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def output(self) -> str:
        """What it has written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def _launch(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                env=self.environment,
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.starts += 1

    def _watch(self) -> None:
        ended = None
        while self._wanted.is_set():
            if self.process is not None and self.process.poll() is None:
                ended = None
            elif ended is None:
                ended = time.monotonic()
            elif time.monotonic() - ended > self.pause:
                self._launch()
            time.sleep(0.2)


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


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
