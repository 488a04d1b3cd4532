"""Services as plain processes: the same commands, and a whole demonstration run that way."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docker"


def test_a_later_file_replaces_commands_and_joins_the_rest(compose_file, tmp_path):
    one, two = tmp_path / "one.yml", tmp_path / "two.yml"
    one.write_text(
        "services: {a: {image: flwr/superlink:1, command: [--x, '${N:-1}'], volumes: [v:/v],"
        " environment: {K: k}, depends_on: {b: {condition: service_healthy}}}}"
    )
    two.write_text("services: {a: {command: [--y], volumes: [w:/w], environment: {L: l}}}")
    first = compose_file.read_services([one], {"N": "7"})["a"]
    assert first.command == ("flower-superlink", "--x", "7")
    assert compose_file.read_services([one], {})["a"].command[-1] == "1"
    both = compose_file.read_services([one, two], {})["a"]
    assert both.command == ("flower-superlink", "--y")
    assert both.mounts == {"/v": "v", "/w": "w"}
    assert both.environment == {"K": "k", "L": "l"}
    assert both.after == {"b": "service_healthy"}


def test_on_the_loopback_only_paths_and_addresses_change(services, places, processes, tmp_path):
    with places.Loopback(tmp_path, services) as place:
        fleet = processes.Fleet(place)
        nodes = [services[f"supernode-{number:02d}"] for number in range(3)]
        commands = [fleet.command(node) for node in nodes]
        for node, command in zip(nodes, commands, strict=True):
            assert len(command) == len(node.command)
            home = place.home(node)
            changed = {
                word: now for word, now in zip(node.command, command, strict=True) if word != now
            }
            assert set(changed) == {
                "superlink:8000",
                "0.0.0.0",
                "9094",
                "/organisation/keys/superexec-secret",
                "data-dir='/organisation/data' federation='/organisation/federation.toml'",
            }
            assert changed["0.0.0.0"] == "127.0.0.1"
            secret = changed["/organisation/keys/superexec-secret"]
            assert secret == f"{home}/organisation/keys/superexec-secret"
        ports = {command[command.index("--port") + 1] for command in commands}
        assert len(ports) == 3, "three SuperNodes on one address need three ports"
        executor = fleet.command(services["superexec-00"])
        assert f"127.0.0.1:{commands[0][commands[0].index('--port') + 1]}" in executor
        volume = (place.home(nodes[0]) / "organisation").resolve()
        assert volume == (place.home(services["superexec-00"]) / "organisation").resolve()
        assert volume != (place.home(nodes[1]) / "organisation").resolve()


def test_the_environment_is_the_services_and_nothing_else(
    services, places, processes, tmp_path, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    with places.Loopback(tmp_path, services) as place:
        found = processes.Fleet(place).environment(services["superexec-01"])
        image = {"PATH", "LANG", "PYTHONUNBUFFERED", "HOME"}
        assert set(found) == image | set(services["superexec-01"].environment)
        home = place.home(services["superexec-01"])
        assert found["FEDLAP_HOME"] == f"{home}/organisation/fedlap"
        assert found["FLWR_TELEMETRY_ENABLED"] == "0"


def test_in_namespaces_addresses_stay_as_they_are(services, places, tmp_path):
    place = places.Namespaces(tmp_path, services)
    node, executor = services["supernode-02"], services["superexec-02"]
    words = place.words(node, node.command)
    assert "superlink:8000" in words
    assert words[words.index("--port") + 1] == "9094"
    assert place.prefix(node) == place.prefix(executor)
    assert place.prefix(node) != place.prefix(services["supernode-01"])


@pytest.mark.integration
@pytest.mark.parametrize(
    ("files", "method"),
    [(["compose.yml"], "fedlap+"), (["compose.yml", "compose.tls.yml"], "fedavg")],
    ids=["plain", "tls"],
)
def test_the_demonstration_runs_from_its_compose_files(tmp_path, files, method):
    command = [sys.executable, str(FOLDER / "processes.py")]
    command += [str(FOLDER / file) for file in files]
    if os.geteuid() == 0 and shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin"):
        command.append("--namespaces")
    chosen = {"FEDLAP_METHOD": method, "FEDLAP_ROUNDS": "1"}
    done = subprocess.run(
        [*command, "--root", str(tmp_path / "demo"), "--results", str(tmp_path / "results")],
        env={**os.environ, **chosen},
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "test accuracy" in done.stdout
    runs = tmp_path / "demo" / "volumes" / "coordinator" / "fedlap" / "runs"
    (summary,) = runs.glob("*/summary.json")
    facts = json.loads(summary.read_text(encoding="utf-8"))
    assert (facts["method"], facts["clients"]) == (method, 3)
    assert [stage["rounds"] for stage in facts["stages"]] == [1]
    assert facts["client_accuracy"] == {}  # those stay with the banks
    assert sorted(facts["bytes_up"]) == ["bank-00", "bank-01", "bank-02"]
    status = json.loads((summary.parent / "status.json").read_text(encoding="utf-8"))
    assert status["state"] == "finished"
    for bank in ("bank-00", "bank-01", "bank-02"):
        assert (tmp_path / "results" / bank / "predictions.csv").is_file()
        assert (tmp_path / "results" / bank / "report.html").is_file()
    assert (tmp_path / "results" / "server" / "report.html").is_file()
