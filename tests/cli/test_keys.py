import json
import stat

import pytest
from click.testing import CliRunner

from fedlap_app.cli import main


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def data(tmp_path):
    out = tmp_path / "data"
    done = run("partition", "banks", "--clients", 2, "--accounts", 200, "--out", out)
    assert done.exit_code == 0, done.output
    return out


def test_from_requests_to_a_federation(tmp_path, data):
    files = []
    for name in ("bank-00", "bank-01"):
        out = tmp_path / name
        shown = run(
            "keys", "request", "--name", name, "--data", data / name, "--out", out, "--json"
        )
        assert shown.exit_code == 0, shown.output
        facts = json.loads(shown.output)
        assert facts["request"] == str(out / "request.json")
        files.append((facts["fingerprint"], out / "request.json"))
    done = run(
        *("keys", "issue", "--name", "banks", "--server", "fedlap.example.org", "--server"),
        *("10.0.0.5", "--port", 443, "--listen", "127.0.0.1:8000", "--out", tmp_path / "c"),
        *(path for _, path in files),
        "--json",
    )
    assert done.exit_code == 0, done.output
    facts = json.loads(done.output)
    assert facts["address"] == "fedlap.example.org:443"
    assert facts["servers"] == ["fedlap.example.org", "10.0.0.5"]
    assert list(facts["members"].values()) == [fingerprint for fingerprint, _ in files]
    shown = run("keys", "issue", "--out", tmp_path / "c")
    assert files[1][0] in shown.output
    assert "certificate good until" in shown.output
    assert "Warning" not in shown.output
    shown = run("keys", "issue", "--out", tmp_path / "c", "--listen", "0.0.0.0:8000")
    assert "Warning: the SuperLink listens at 0.0.0.0:8000" in shown.stderr
    shown = run("keys", "issue", "--out", tmp_path / "c", "--json")
    assert len(json.loads(shown.stdout)["warnings"]) == 1


def test_request_needs_no_name_and_no_folder(tmp_path, data, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("keys", "request", "--data", data / "bank-00")
    assert done.exit_code == 0, done.output
    key = tmp_path / "fedlap-bank-00" / "keys" / "supernode"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert "send it to the coordinator" in done.output


def test_demo_says_what_it_is_for(tmp_path):
    done = run("keys", "demo", "--out", tmp_path / "d", "--clients", 2, "--accounts", 200)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("For demonstrations only")
    assert "For demonstrations only" in (tmp_path / "d" / "DEMONSTRATION.txt").read_text()
    for name in ("bank-00", "bank-01"):
        folder = tmp_path / "d" / "organisations" / name
        assert {"data", "keys", "start.sh", "ca.crt", "federation.toml"} <= {
            path.name for path in folder.iterdir()
        }
    again = run("keys", "demo", "--out", tmp_path / "d", "--json")
    assert again.exit_code == 2
    assert "is not an empty folder" in again.output


def test_demo_fills_empty_volumes_and_keeps_what_is_there(tmp_path):
    out = tmp_path / "d"
    (out / "organisations" / "bank-00").mkdir(parents=True)
    (out / "coordinator").mkdir()
    words = ("keys", "demo", "--out", out, "--clients", 2, "--accounts", 200, "--keep", "--json")
    first, again = run(*words), run(*words)
    assert first.exit_code == again.exit_code == 0, first.output
    assert json.loads(again.output) == json.loads(first.output)
    (out / "coordinator" / "DEMONSTRATION.txt").unlink()
    assert run(*words).exit_code == 2, "what was cut short is not taken for whole"


def test_the_store_of_a_request_is_its_owners_only(tmp_path, data):
    done = run("keys", "request", "--data", data / "bank-00", "--out", tmp_path / "keys")
    assert done.exit_code == 0, done.output
    assert stat.S_IMODE((data / "bank-00" / "store").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("request", "--data", "nowhere"), "no nowhere/org.toml"),
        (("issue", "--out", "x", "nothing.json"), "There is no nothing.json"),
        (("issue", "--out", "x", "--name", "b", "--server", "https://a"), "neither a host name"),
        (("issue", "--out", "x"), "add --name"),
        (("issue", "--out", ""), "--out is empty"),
        (("request", "--data", "x", "--out", ""), "--out is empty"),
        (("request", "--data", "x", "--store", ""), "--store is empty"),
        (("check", ""), "the path is empty"),
        (("issue", "--out", "x", "--name", "b", "--server", "a.org", "--listen", ""), "ADDRESS"),
        (("demo", "--out", "x", "--dataset", "coar"), "cora"),
        (("demo", "--out", "x", "--accounts", "200", "--node-port", "65534"), "at most 65533"),
        (("demo", "--out", "x", "--accounts", "200", "--node-port", "7998"), "port 8000 is the"),
        (("demo", "--out", "x", "--listen", "0.0.0.0"), "is not ADDRESS:PORT"),
        (("demo", "--out", "x", "--server", "https://a"), "neither a host name"),
        (("demo", "--out", "a$b"), "The path"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    done = run("keys", *arguments)
    assert done.exit_code == 2
    assert sentence in done.output
    assert len(done.output.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("port", ["\u0668\u0660\u0668\u0660", "8_000", "0", "65536", "+80"])
def test_a_port_is_a_number_in_plain_digits(tmp_path, port):
    done = run(
        "keys", "issue", "--name", "b", "--server", "a.org", "--out", tmp_path, "--port", port
    )
    assert done.exit_code == 2
    assert "--port" in done.output


def test_the_last_ports_will_do_for_a_demonstration(tmp_path):
    words = ("--clients", 2, "--accounts", 200, "--node-port", 65534, "--server", "::1")
    done = run("keys", "demo", "--out", tmp_path / "d", *words, "--json")
    assert done.exit_code == 0, done.output
    env = tmp_path / "d" / "organisations" / "bank-01" / "organisation.env"
    assert "FEDLAP_NODE_PORT='65535'" in env.read_text()
    start = tmp_path / "d" / "coordinator" / "superlink" / "start.sh"
    assert "--host ::1 --port 8000" in start.read_text()
