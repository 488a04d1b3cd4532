"""The services of compose files as plain processes: the same commands, the same environment.

    python docker/processes.py docker/compose.yml docker/compose.tls.yml

does what `docker compose run run` does with these files on a machine without a Docker engine:
what `run` depends on is started in order and kept up, then `run` itself, then all is stopped.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from compose_file import Service, read_services
from places import Loopback, Namespaces

BIN = Path(sys.executable).parent
PREDICTS = "predict-"
PATIENCE = 300.0  # seconds for a service to become healthy, and for a one-time service


class Fleet:
    """Processes of services, started in the order of their conditions.

    Parameters
    ----------
    place
        Where they run.
    """

    def __init__(self, place: Loopback) -> None:
        self.place = place
        self.logs = place.root / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._done: set[str] = set()

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for process in reversed(self._running.values()):
            _signal(process, signal.SIGTERM)
        for process in self._running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=15)
            _signal(process, signal.SIGKILL)
            process.wait()

    def up(self, name: str) -> None:
        """Start what a service depends on."""
        for before, condition in self.place.services[name].after.items():
            service = self.place.services[before]
            if before in self._running or before in self._done:
                continue
            self.up(before)
            say(f"{before}: {'starts' if service.lasting else 'runs once'}")
            if condition == "service_completed_successfully":
                self._once(service)
            else:
                self._running[before] = self._start(service)
                self._wait_until_healthy(service)

    def run(self, name: str) -> int:
        """Run a service to its end in the foreground, and keep the others up meanwhile."""
        service = self.place.services[name]
        command, environment = self.command(service), self.environment(service)
        process = subprocess.Popen(
            command, env=environment, cwd=self._folder(service), start_new_session=True
        )
        try:
            while process.poll() is None:
                self._keep_up()
                time.sleep(1)
        finally:
            # In a session of its own it gets Ctrl-C once, from here, and may tidy up.
            with contextlib.suppress(subprocess.TimeoutExpired):
                _signal(process, signal.SIGINT)
                process.wait(timeout=90)
            _signal(process, signal.SIGKILL)
            process.wait()
        return process.returncode

    def results(self, out: Path) -> None:
        """Let every organisation predict, and copy what it and the server ended with.

        Parameters
        ----------
        out
            Folder of the copies: one for each organisation, and one for the server.
        """
        for name, service in self.place.services.items():
            if name.startswith(PREDICTS) and self.run(name) == 0:
                data = self.place.home(service) / "organisation" / "data"
                (bank,) = service.mounts.values()
                for file in ("predictions.csv", "report.html"):
                    self._copy(data / file, out / bank / file)
        pages = (self.place.root / "volumes").glob("coordinator/fedlap/runs/*/report.html")
        for page in sorted(pages):
            self._copy(page, out / "server" / page.name)

    def _copy(self, source: Path, target: Path) -> None:
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
            say(f"{target.parent.name}: {target}")

    def command(self, service: Service) -> list[str]:
        """The process's own words."""
        words = self.place.words(service, service.command)
        return [*self.place.prefix(service), *words]

    def environment(self, service: Service) -> dict[str, str]:
        """What a container would see: nothing of this shell but the path to the programs."""
        own = {key: self.place.translate(service, v) for key, v in service.environment.items()}
        path = f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        image = {"PATH": path, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
        return {**image, "HOME": str(self.place.home(service)), **own}

    def _folder(self, service: Service) -> Path:
        return self.place.home(service) / service.folder.lstrip("/")

    def _start(self, service: Service) -> subprocess.Popen[bytes]:
        with (self.logs / f"{service.name}.log").open("ab") as log:
            return subprocess.Popen(
                self.command(service),
                env=self.environment(service),
                cwd=self._folder(service),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _once(self, service: Service) -> None:
        process = self._start(service)
        try:
            code = process.wait(timeout=PATIENCE)
        finally:
            _signal(process, signal.SIGKILL)
        if code:
            raise SystemExit(f"{service.name} ended with {code}: {self._last_line(service)}")
        self._done.add(service.name)

    def _wait_until_healthy(self, service: Service) -> None:
        deadline = time.monotonic() + PATIENCE
        test = [*self.place.prefix(service), *self.place.words(service, service.health)]
        environment = self.environment(service)
        while subprocess.run(test, env=environment, check=False, capture_output=True).returncode:
            self._keep_up()
            if time.monotonic() > deadline:
                last = self._last_line(service)
                raise SystemExit(f"{service.name} was not healthy in {PATIENCE:.0f} s: {last}")
            time.sleep(1)

    def _keep_up(self) -> None:
        """Start again what has ended, as the restart policy says."""
        for name, process in self._running.items():
            if process.poll() is not None:
                say(f"{name}: ended with {process.returncode}, starts again")
                self._running[name] = self._start(self.place.services[name])

    def _last_line(self, service: Service) -> str:
        lines = (self.logs / f"{service.name}.log").read_text(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "it wrote nothing")


def say(what: str) -> None:
    """One line for whoever watches."""
    print(what, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a service of compose files, `run` unless told otherwise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--service", default="run")
    parser.add_argument("--root", type=Path, help="folder of volumes and logs (default: a new one)")
    parser.add_argument("--namespaces", action="store_true", help="as root: one for each party")
    parser.add_argument("--results", type=Path, help="folder for predictions and reports")
    given = parser.parse_args(arguments)
    root = given.root or Path(tempfile.mkdtemp(prefix="fedlap-demo-"))
    services = read_services(given.files, os.environ)
    place = (Namespaces if given.namespaces else Loopback)(root, services)
    try:
        with place, Fleet(place) as fleet:
            fleet.up(given.service)
            code = fleet.run(given.service)
            if code == 0 and given.results:
                fleet.results(given.results.absolute())
            return code
    except KeyboardInterrupt:
        return 130
    finally:
        if given.root is None:
            shutil.rmtree(root, ignore_errors=True)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal a process and all it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
