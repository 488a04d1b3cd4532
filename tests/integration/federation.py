"""A federation of real processes: SuperLink, SuperNodes and SuperExecs with TLS and keys."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedlap_app.graphs.federation import DataSpec, load_federation
from fedlap_app.graphs.folder import write_folder
from fedlap_app.secure.identity import Identity
from server_app.flower import ENVIRONMENT
from tests.integration.processes import PATIENCE, Supervised, wait_for
from tests.integration.provision import Authority, node_key, shared_secret

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CONNECTION = "test"
HOST = "127.0.0.1"


@dataclass
class Organisation:
    """One organisation: its folder, its keys and its two processes."""

    name: str
    folder: Path
    home: Path
    port: int
    prefix: tuple[str, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)
    node: Supervised | None = None
    executor: Supervised | None = None

    @property
    def store(self) -> Path:
        """Its client store."""
        return self.folder / "store"

    @property
    def processes(self) -> list[Supervised]:
        """What runs at the organisation."""
        return [each for each in (self.node, self.executor) if each is not None]

    def kill(self) -> None:
        """The machine of the organisation dies; its supervisor starts everything again."""
        for each in self.processes:
            each.kill()


class Federation:
    """A SuperLink and its organisations on this machine, in a folder of their own.

    Parameters
    ----------
    folder
        Everything is below it: keys, homes, database, logs.
    organisations
        Folders of the organisations; copied, since stores and pins are written into them.
    """

    def __init__(
        self, folder: Path, organisations: Sequence[Path], *, project: Path = ROOT
    ) -> None:
        self.folder, self.project = folder, project
        self.logs = _made(folder / "logs")
        self.home = _made(folder / "coordinator")
        ports = free_ports(1 + len(organisations))
        self.address = f"{HOST}:{ports[0]}"
        self.authority = Authority(folder / "keys")
        self.server_certificate = self.authority.issue("server", self._hosts())
        self.secret = shared_secret(folder / "keys" / "superlink.secret")
        self.organisations = {
            source.name: self._organisation(source, port)
            for source, port in zip(organisations, ports[1:], strict=True)
        }
        self._pin()
        self.superlink: Supervised | None = None
        self.executor: Supervised | None = None

    def __enter__(self) -> "Federation":
        self.start_superlink()
        for organisation in self.organisations.values():
            self.register(organisation)
            self.start_organisation(organisation)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.stop()
        if kind is not None:
            kept = Path(tempfile.mkdtemp(prefix="fedlap-federation-")) / "logs"
            shutil.copytree(self.logs, kept)
            print(f"logs of the federation: {kept}")

    def stop(self) -> None:
        """End every process that was started here."""
        ours = [each for one in self.organisations.values() for each in one.processes]
        for each in [*ours, self.executor, self.superlink]:
            if each is not None:
                each.stop()

    # Flower's own commands

    def submit(self, config: Mapping[str, Any]) -> int:
        """Submit the app and return the number of the run."""
        file = self.home / "run.toml"
        lines = [f"{key} = {json.dumps(value)}" for key, value in config.items()]
        file.write_text("\n".join(lines), encoding="utf-8")
        answer = self.flwr("run", ".", CONNECTION, "--format", "json", "--run-config", str(file))
        assert answer.get("success"), answer
        return int(answer["run-id"])

    def status(self, run_id: int) -> str:
        """What Flower says about a run, such as ``finished:completed``."""
        answer = self.flwr("list", CONNECTION, "--run-id", str(run_id), "--format", "json")
        return str((answer.get("runs") or [{}])[0].get("status", ""))

    def wait(self, run_id: int, timeout: float = 2 * PATIENCE) -> "Outcome":
        """Wait for the end of a run, with a limit."""
        deadline = time.monotonic() + timeout
        while not (status := self.status(run_id)).startswith("finished"):
            assert time.monotonic() < deadline, f"run {run_id} did not end within {timeout:.0f} s"
            time.sleep(2)
        return Outcome(status, self.run_folder(run_id))

    def run(self, config: Mapping[str, Any], timeout: float = 2 * PATIENCE) -> "Outcome":
        """Submit and wait."""
        return self.wait(self.submit(config), timeout)

    def run_folder(self, run_id: int) -> Path | None:
        """The run's folder, once the ServerApp has made it."""
        found = sorted((self.home / "fedlap" / "runs").glob(f"*-{run_id}"))
        return found[-1] if found else None

    def flwr(self, *arguments: str) -> dict[str, Any]:
        """Run Flower's command at the coordinator; one that cannot connect is tried again."""
        deadline = time.monotonic() + PATIENCE
        while True:
            done = subprocess.run(
                [str(BIN / "flwr"), *arguments],
                cwd=self.project,
                env=self.environment(self.home),
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
            )
            start = done.stdout.find("{")
            try:
                answer: dict[str, Any] = json.loads(done.stdout[start:])
            except ValueError:
                answer = {"error": done.stdout + done.stderr}
            if answer.get("success") or time.monotonic() > deadline or arguments[0] != "list":
                return answer
            time.sleep(2)

    # Processes

    def start_superlink(self) -> None:
        """Start the SuperLink and the SuperExec that runs the ServerApp; wait for its health."""
        certificate, key = self.server_certificate
        host, port = self.address.split(":")
        self.superlink = self._start(
            "superlink",
            self.home,
            [
                "flower-superlink", "--host", host, "--port", port,
                "--ssl-ca-certfile", str(self.authority.certificate),
                "--ssl-certfile", str(certificate), "--ssl-keyfile", str(key),
                "--enable-supernode-auth", "--database", str(self.database),
                "--isolation", "process", "--superexec-auth-secret-file", str(self.secret),
                "--disable-runtime-dependency-installation",
            ],
        )  # fmt: skip
        self.executor = self._start(
            "superexec",
            self.home,
            [
                "flower-superexec", "--runtime-api-address", self.address,
                "--root-certificates", str(self.authority.certificate),
                "--superexec-auth-secret-file", str(self.secret),
            ],
        )  # fmt: skip
        wait_for("the SuperLink listens", lambda: listens(self.address))

    @property
    def database(self) -> Path:
        """The SuperLink's database."""
        return self.folder / "superlink.db"

    @property
    def server_log(self) -> str:
        """What the ServerApp has logged."""
        return self.executor.output if self.executor else ""

    def register(self, organisation: Organisation) -> None:
        """Make the organisation's SuperNode key known to the SuperLink."""
        public = node_key(organisation.home / "node")
        answer = self.flwr(
            "supernode", "register", str(public), CONNECTION,
            "--name", organisation.name, "--format", "json",
        )  # fmt: skip
        assert answer.get("success"), answer

    def start_organisation(self, organisation: Organisation) -> None:
        """Start the SuperNode and its SuperExec."""
        name, home = organisation.name, organisation.home
        certificate, key = self.authority.issue(f"{name}-runtime", [HOST, "localhost"])
        secret = shared_secret(home / "superexec.secret")
        address = f"{HOST}:{organisation.port}"
        organisation.node = self._start(
            f"{name}-supernode",
            home,
            [
                *organisation.prefix, "flower-supernode", "--superlink", self.address,
                "--root-certificates", str(self.authority.certificate),
                "--auth-supernode-private-key", str(home / "node"),
                "--host", HOST, "--port", str(organisation.port),
                "--ssl-ca-certfile", str(self.authority.certificate),
                "--ssl-certfile", str(certificate), "--ssl-keyfile", str(key),
                "--isolation", "process", "--superexec-auth-secret-file", str(secret),
                "--node-config", f"data-dir='{organisation.folder}'",
            ],
            organisation.extra,
        )  # fmt: skip
        organisation.executor = self._start(
            f"{name}-superexec",
            home,
            [
                *organisation.prefix, "flower-superexec", "--runtime-api-address", address,
                "--root-certificates", str(self.authority.certificate),
                "--superexec-auth-secret-file", str(secret),
            ],
            organisation.extra,
        )  # fmt: skip

    def environment(self, home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Environment of a process: no code but the bundle's, a home folder of its own."""
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        return {
            **kept,
            **ENVIRONMENT,
            "FLWR_HOME": str(_made(home / "flwr")),
            "FEDLAP_HOME": str(_made(home / "fedlap")),
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.5",
            "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}",
            "OMP_NUM_THREADS": "1",
            **(extra or {}),
        }

    def _start(
        self, name: str, home: Path, command: list[str], extra: Mapping[str, str] | None = None
    ) -> Supervised:
        log = self.logs / f"{name}.log"
        environment = self.environment(home, extra)
        return Supervised(command, environment, log, cwd=home).start()

    # What is prepared before anything starts

    def _hosts(self) -> list[str]:
        return [HOST, "localhost"]

    def _organisation(self, source: Path, port: int) -> Organisation:
        home = _made(self.folder / source.name)
        data = home / "data"
        if not data.exists():
            shutil.copytree(source, data)
        return Organisation(source.name, data, home, port)

    def _pin(self) -> None:
        """Give every organisation an identity and the fingerprints of the others."""
        marks = {}
        for name, organisation in self.organisations.items():
            identity = Identity.generate()
            _made(organisation.store / "offline")
            identity.save(organisation.store / "offline" / "identity")
            marks[name] = identity.fingerprint
        for name, organisation in self.organisations.items():
            peers = [f'"{peer}" = "{mark}"' for peer, mark in marks.items() if peer != name]
            with (organisation.folder / "org.toml").open("a", encoding="utf-8") as file:
                file.write("\n[peers]\n" + "\n".join(peers) + "\n")
        connection = (
            f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\n'
            f'address = "{self.address}"\n'
            f'root-certificates = "{self.authority.certificate}"\n'
        )
        (_made(self.home / "flwr") / "config.toml").write_text(connection, encoding="utf-8")


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


def write_organisations(folder: Path, spec: DataSpec) -> list[Path]:
    """Organisation folders of a data set."""
    paths = []
    for subgraph in load_federation(spec):
        paths.append(folder / subgraph.name)
        write_folder(subgraph, paths[-1])
    return paths


def listens(address: str) -> bool:
    """Whether somebody answers at an address."""
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def free_ports(count: int) -> list[int]:
    """Ports that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
