"""A federation of real processes, made by `fedlap keys demo` and started by its own scripts."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedlap_app.deploy.demo import make_demo
from fedlap_app.flower.submission import free_ports
from fedlap_app.graphs.federation import DataSpec, load_federation
from tests.integration.network import Loopback, Namespaces, make_network
from tests.integration.processes import PATIENCE, Party, wait_for

ROOT = Path(__file__).parents[2]
CONNECTION = "fedlap"


class Federation:
    """A SuperLink and its organisations on this machine, each with the folder that it would get.

    Parameters
    ----------
    folder
        Everything is below it: data, keys, stores, database, logs.
    spec
        The data and how they are divided.
    network
        Where the organisations are (default: each in a namespace of its own, if possible).
    """

    def __init__(
        self, folder: Path, spec: DataSpec, network: "Namespaces | Loopback | None" = None
    ) -> None:
        self.names = sorted(part.name for part in load_federation(spec))
        self.network = network or make_network(self.names)
        port, *others, self.free_port = free_ports(2 + len(self.names))
        self.ports = {port, *others}
        self.address = f"{self.network.server}:{port}"
        self.demo = make_demo(
            folder / "demo",
            spec,
            servers=(self.network.server,),
            port=port,
            node_port=others[0],
            listen=self.address,
        )
        self.logs = folder / "logs"
        self.superlink = self._party("superlink", self.demo.superlink, [])
        self.organisations = {
            name: self._party(name, self.folder(name), self.network.prefix(name))
            for name in self.names
        }
        for name, free in zip(self.names, others, strict=True):
            self.reconfigure(name, FEDLAP_NODE_PORT=str(free))

    def __enter__(self) -> "Federation":
        try:
            self.start_superlink()
            self.register()
            for party in self.organisations.values():
                party.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()
        if kind is not None:
            kept = Path(tempfile.mkdtemp(prefix="fedlap-federation-")) / "logs"
            shutil.copytree(self.logs, kept)
            print(f"logs of the federation: {kept}")

    def close(self) -> None:
        """End every process that was started here and remove the network."""
        for party in (*self.organisations.values(), self.superlink):
            party.stop()
        self.network.close()

    # Folders

    def folder(self, name: str) -> Path:
        """Folder of an organisation."""
        return self.demo.organisation(name)

    def store(self, name: str) -> Path:
        """The client's store of an organisation."""
        return self.folder(name) / "data" / "store"

    @property
    def home(self) -> Path:
        """FedLap's home folder of the coordinator."""
        return self.demo.superlink / "state" / "fedlap"

    @property
    def database(self) -> Path:
        """The SuperLink's database."""
        return self.demo.superlink / "state" / "state.db"

    def reconfigure(self, name: str, **values: str) -> None:
        """Change what an organisation's administrator wrote into organisation.env."""
        file = self.folder(name) / "organisation.env"
        kept = [
            line
            for line in file.read_text(encoding="utf-8").splitlines()
            if line.partition("=")[0] not in values
        ]
        lines = [*kept, *(f"{key}='{value}'" for key, value in values.items())]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    # Processes

    def start_superlink(self) -> None:
        """Start the SuperLink and wait until it listens."""
        self.superlink.start()
        wait_for("the SuperLink listens", lambda: listens(self.address))

    def register(self) -> None:
        """Make the organisations' SuperNode keys known to the SuperLink."""
        done = self.script("register.sh")
        assert done.returncode == 0, done.stdout + done.stderr

    def restart(self, name: str) -> None:
        """An administrator stops an organisation's processes and starts them again."""
        self.organisations[name].stop()
        self.organisations[name].start()

    def _party(self, name: str, folder: Path, prefix: list[str]) -> Party:
        command = [*prefix, "sh", str(folder / "start.sh")]
        home = folder / "state" / "flwr"
        return Party(command, environment(), home, self.logs / f"{name}.log")

    # Runs

    def submit(self, config: Mapping[str, Any], project: Path = ROOT) -> int:
        """Submit the app and return the number of the run."""
        file = self.demo.superlink / "run.toml"
        settings = {"clients": len(self.names), **config}
        lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
        file.write_text("\n".join(lines), encoding="utf-8")
        answer = self.flwr(
            "run", str(project), CONNECTION, "--format", "json", "--run-config", str(file)
        )
        assert answer.get("success"), answer
        return int(answer["run-id"])

    def wait(self, run_id: int, timeout: float = 2 * PATIENCE) -> "Outcome":
        """Wait for the end of a run, with a limit; Flower is asked seldom, since that is slow."""
        deadline = time.monotonic() + timeout
        asked = time.monotonic()
        while True:
            if self._has_ended(run_id) or time.monotonic() - asked > 30:
                asked = time.monotonic()
                if (status := self.status(run_id)).startswith("finished"):
                    return Outcome(status, self.run_folder(run_id))
            assert time.monotonic() < deadline, f"run {run_id} did not end within {timeout:.0f} s"
            time.sleep(0.5)

    def run(self, config: Mapping[str, Any], timeout: float = 2 * PATIENCE) -> "Outcome":
        """Submit and wait."""
        return self.wait(self.submit(config), timeout)

    def status(self, run_id: int) -> str:
        """What Flower says about a run, such as ``finished:completed``."""
        answer = self.flwr("list", CONNECTION, "--run-id", str(run_id), "--format", "json")
        return str((answer.get("runs") or [{}])[0].get("status", ""))

    def online(self) -> int:
        """How many SuperNodes are connected; Flower lists them without their names."""
        answer = self.flwr("supernode", "list", CONNECTION, "--format", "json")
        return sum(node["status"] == "online" for node in answer.get("nodes", []))

    def run_folder(self, run_id: int) -> Path | None:
        """The run's folder, once the ServerApp has made it."""
        found = sorted((self.home / "runs").glob(f"*-{run_id}"))
        return found[-1] if found else None

    def _has_ended(self, run_id: int) -> bool:
        folder = self.run_folder(run_id)
        return folder is not None and any(
            (folder / name).exists() for name in ("summary.json", "error.json")
        )

    def flwr(self, *arguments: str) -> dict[str, Any]:
        """Answer of Flower's command at the coordinator."""
        done = self.script("flwr.sh", *arguments)
        start = done.stdout.find("{")
        try:
            answer: dict[str, Any] = json.loads(done.stdout[start:])
        except ValueError:
            answer = {"error": done.stdout + done.stderr}
        return answer

    def script(self, name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run one of the coordinator's scripts."""
        return subprocess.run(
            ["sh", str(self.demo.superlink / name), *arguments],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    status: str
    folder: Path | None

    @property
    def summary(self) -> dict[str, Any]:
        """Its summary; a failed run has none, and the assertion says why."""
        assert self.status == "finished:completed", f"{self.status}: {self.error}"
        return self._read("summary.json")

    @property
    def offline(self) -> dict[str, Any]:
        """What the offline phase cost."""
        return self._read("offline.json")

    @property
    def error(self) -> str:
        """The sentence that a failed run left."""
        if self.folder is None or not (self.folder / "error.json").exists():
            return ""
        return str(self._read("error.json")["error"])

    def _read(self, name: str) -> dict[str, Any]:
        assert self.folder is not None
        found: dict[str, Any] = json.loads((self.folder / name).read_text(encoding="utf-8"))
        return found


def environment() -> dict[str, str]:
    """What a process inherits: nothing of ours, so that only the bundle's code is found."""
    ours = ("PYTHONPATH", "FEDLAP_", "FLWR_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return {**kept, "OMP_NUM_THREADS": "1"}


def listens(address: str) -> bool:
    """Whether somebody answers at an address."""
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True
