import shutil
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from flwr.supercore.cli.flower_superexec import _parse_args as superexec_parser
from flwr.superlink.cli.flower_superlink import _parse_args_run_superlink as superlink_parser
from flwr.supernode.cli.flower_supernode import _parse_args_run_supernode as supernode_parser

from fedlap_app.deploy.coordinator import Wishes, issue
from fedlap_app.deploy.demo import make_demo
from fedlap_app.deploy.folders import slug, write_start_commands
from fedlap_app.deploy.organisation import make_request
from fedlap_app.privacy.federation import read_federation_file
from tests.deploy.conftest import SMALL

ODD = "Bank & Söhne $1 50% 'x'"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    return make_demo(tmp_path_factory.mktemp("demo") / "out", SMALL, port=18000, node_port=19094)


def words_of(script: Path, process: str, fake: Path) -> list[str]:
    """The command that a start script runs, told by stand-ins for Flower's programs and Python."""
    fake.mkdir(exist_ok=True)
    (fake / "python").write_text(
        '#!/bin/sh\n[ "$3" = fedlap_app.deploy.expiry ] || printf "%s\\n" python "$@"\n'
    )
    (fake / "python").chmod(0o755)
    for program in ("flower-superlink", "flower-supernode", "flower-superexec"):
        path = fake / program
        path.write_text('#!/bin/sh\nprintf "%s\\n" "$(basename "$0")" "$@"\n')
        path.chmod(0o755)
    for name in ("organisation.env", "coordinator.env"):
        env = script.parent / name
        if env.exists():
            lines = [x for x in env.read_text().splitlines() if not x.startswith("FEDLAP_BIN")]
            env.write_text("\n".join([*lines, f"FEDLAP_BIN='{fake}'"]) + "\n")
    done = subprocess.run(
        ["sh", str(script), process], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()


def test_flower_takes_the_superlink_command(demo, tmp_path):
    program, *words = words_of(demo.superlink / "start.sh", "superlink", tmp_path / "bin")
    assert program == "flower-superlink"
    args = superlink_parser().parse_args(words)
    assert (args.host, args.port, args.isolation) == ("127.0.0.1", 18000, "process")
    assert args.enable_supernode_auth
    assert not args.insecure
    assert not args.runtime_dependency_install
    for path in (args.ssl_certfile, args.ssl_keyfile, args.superexec_auth_secret_file):
        assert Path(path).is_file()
    program, *words = words_of(demo.superlink / "start.sh", "superexec", tmp_path / "bin")
    assert program == "flower-superexec"
    args = superexec_parser().parse_args(words)
    assert args.runtime_api_address == "127.0.0.1:18000"
    assert args.root_certificates == str(demo.superlink / "ca.crt")
    assert not args.insecure


def test_flower_takes_the_commands_of_each_organisation(demo, tmp_path):
    from flwr.common.config import parse_config_args

    for number, name in enumerate(sorted(demo.federation.pins)):
        folder = demo.organisation(name)
        program, *words = words_of(folder / "start.sh", "supernode", tmp_path / "bin")
        assert program == "flower-supernode"
        args = supernode_parser().parse_args(words)
        assert (args.superlink, args.port) == ("127.0.0.1:18000", 19094 + number)
        assert (args.host, args.isolation, args.insecure) == ("127.0.0.1", "process", False)
        config = parse_config_args([args.node_config])
        assert config == {
            "data-dir": str(folder / "data"),
            "store-dir": str(folder / "data" / "store"),
            "federation": str(folder / "federation.toml"),
        }
        words = words_of(folder / "start.sh", "superexec", tmp_path / "bin")
        # Isolated, so that no folder and no variable chooses other modules than the installed.
        assert words[:4] == ["python", "-I", "-m", "client_app.superexec"]
        args = superexec_parser().parse_args(words[4:])
        assert args.runtime_api_address == f"127.0.0.1:{19094 + number}"
        assert Path(args.superexec_auth_secret_file).is_file()


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        ("keys/supernode", "run 'fedlap keys request' again"),
        ("organisation.env", "run 'fedlap keys request' again"),
        ("ca.crt", "that the coordinator sent"),
        ("federation.toml", "that the coordinator sent"),
    ],
)
def test_a_start_script_says_which_file_is_missing(demo, tmp_path, missing, says):
    folder = tmp_path / "bank-00"
    shutil.copytree(demo.organisation("bank-00"), folder)
    (folder / missing).unlink()
    done = subprocess.run(
        ["sh", str(folder / "start.sh")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"{folder / missing}" in done.stderr
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "address", ["a.org:1 --insecure", "$(touch x):1", "a.org:1\\n--insecure", "`id`:1", ""]
)
def test_a_start_script_takes_no_more_than_an_address_from_the_coordinator(demo, tmp_path, address):
    folder = tmp_path / "bank-00"
    shutil.copytree(demo.organisation("bank-00"), folder)
    file = folder / "federation.toml"
    file.write_text(file.read_text().replace("127.0.0.1:18000", address))
    done = subprocess.run(
        ["sh", str(folder / "start.sh")], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert "names no address of a SuperLink" in done.stderr
    assert not (tmp_path / "x").exists()


def test_the_supervisor_starts_again_and_ends_all(demo, tmp_path):
    script = demo.organisation("bank-02") / "start.sh"
    words_of(script, "supernode", tmp_path / "bin")
    marker = tmp_path / "started"
    for program, first in (
        ("flower-supernode", ""),
        ("python", '[ "$3" != client_app.superexec ]'),
    ):
        path = tmp_path / "bin" / program
        skip = f"{first} && exit 0\n" if first else ""
        path.write_text(
            f'#!/bin/sh\n{skip}echo "$(basename "$0")" $$ >> {marker}\nexec sleep 600\n'
        )
    running = subprocess.Popen(["sh", str(script)], stderr=subprocess.DEVNULL)
    try:
        first = _wait_for(marker, 2)
        assert {line.split()[0] for line in first} == {"flower-supernode", "python"}
    finally:
        running.terminate()
        assert running.wait(20) == 0
    for line in first:
        assert not Path(f"/proc/{line.split()[1]}").exists()


def _wait_for(marker: Path, count: int) -> list[str]:
    import time

    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        lines = marker.read_text().splitlines() if marker.exists() else []
        if len(lines) >= count:
            return lines
        time.sleep(0.05)
    raise AssertionError("the processes did not start")


@pytest.fixture
def odd(tmp_path, requests):
    """A federation with a member whose name has letters that mean something to shells."""
    first, *others = requests.values()
    given = [replace(first, name=ODD), *others]
    issue(tmp_path / "c", given, Wishes(name="banks", servers=("2001:db8::7",)))
    write_start_commands(tmp_path / "c" / ODD, ODD, first.fingerprint)
    return tmp_path / "c"


def test_every_script_is_good_shell_also_for_an_odd_name(odd):
    scripts = sorted(odd.rglob("*.sh"))
    assert len(scripts) == 1 + 4
    for script in scripts:
        subprocess.run(["sh", "-n", str(script)], check=True)
        assert script.stat().st_mode & 0o111
        assert "@" not in script.read_text().replace('"$@"', "")
    assert ODD in read_federation_file(odd / "federation.toml").pins


def test_units_and_compose_files_of_an_odd_name(odd):
    folder = odd / ODD
    assert slug(ODD) == "bank-s-hne-1-50-x"
    unit = (folder / "systemd" / f"fedlap-{slug(ODD)}-supernode.service").read_text()
    assert "ExecStart=/bin/sh \"/srv/fedlap/Bank & Söhne $$1 50%% 'x'/start.sh\" supernode" in unit
    predict = (folder / "systemd" / f"fedlap-{slug(ODD)}-predict.service").read_text()
    assert "ExecStart=/bin/sh \"/srv/fedlap/Bank & Söhne $$1 50%% 'x'/start.sh\" predict" in predict
    timer = (folder / "systemd" / f"fedlap-{slug(ODD)}-predict.timer").read_text()
    assert "OnCalendar=" in timer
    assert "[Install]" in timer
    assert "[Install]" not in predict  # the timer starts it
    compose = yaml.safe_load((folder / "compose.yml").read_text())
    assert compose["name"] == f"fedlap-{slug(ODD)}"
    services = compose["services"]
    assert all(isinstance(word, str) for word in services["supernode"]["command"])
    assert supernode_parser().parse_args(services["supernode"]["command"]).isolation == "process"
    assert services["superexec"]["entrypoint"] == ["python", "-I", "-m", "client_app.superexec"]


def test_the_container_of_a_supernode_takes_the_address_from_the_federation_file(odd, tmp_path):
    service = yaml.safe_load((odd / ODD / "compose.yml").read_text())["services"]["supernode"]
    (tmp_path / "flower-supernode").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "flower-supernode").chmod(0o755)
    shutil.copy(odd / "organisations" / ODD / "federation.toml", tmp_path)
    shell, option, script, *rest = (*service["entrypoint"], *service["command"])
    # Compose makes one dollar sign of two.
    script = script.replace("$$", "$").replace("/federation/", f"{tmp_path}/")
    done = subprocess.run(
        [shell, option, script, *rest],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    args = supernode_parser().parse_args(done.stdout.splitlines())
    assert args.superlink == "[2001:db8::7]:8000"
    assert args.root_certificates == "/federation/ca.crt"


@pytest.mark.parametrize("elsewhere", ["", "superlink:8000"])
def test_flwr_gets_a_connection_to_this_superlink(demo, elsewhere, tmp_path):
    (tmp_path / "flwr").write_text("#!/bin/sh\n")
    (tmp_path / "flwr").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "FEDLAP_SUPERLINK": elsewhere}
    subprocess.run(["sh", demo.superlink / "flwr.sh", "--version"], env=environment, check=True)
    written = (demo.superlink / "state" / "flwr" / "config.toml").read_text()
    connection = tomllib.loads(written)["superlink"]["fedlap"]
    assert connection["address"] == (elsewhere or "127.0.0.1:18000")
    assert connection["root-certificates"] == str(demo.superlink / "ca.crt")


@pytest.mark.parametrize(
    ("answer", "code"),
    [('{"success": true}', 0), ('{"success": false, "error-message": "no such node"}', 2)],
)
def test_a_supernode_is_forgotten_only_when_flower_says_so(demo, tmp_path, answer, code):
    (tmp_path / "flwr").write_text(f"#!/bin/sh\necho '{answer}'\n")
    (tmp_path / "flwr").chmod(0o755)
    (demo.superlink / "coordinator.env").write_text(f"FEDLAP_BIN='{tmp_path}'\n")
    known = demo.superlink / "state" / "nodes" / "bank-00"
    known.parent.mkdir(parents=True, exist_ok=True)
    known.write_text("17\n")
    done = subprocess.run(
        ["sh", demo.superlink / "unregister.sh", "bank-00"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == code, done.stderr
    assert known.exists() == bool(code)
    assert ("no such node" in done.stderr) == bool(code)


def stand_in_for_flwr(folder, known):
    """A `flwr` that registers and forgets keys in a file, one `id key` a line."""
    (folder / "flwr").write_text(
        f"""#!/bin/sh
case "$2" in
    register)
        if grep -qF "$(cat "$3")" "{known}"; then echo "public key already in use"; exit 0; fi
        id=$(($(wc -l < "{known}") + 1))
        echo "$id $(cat "$3")" >> "{known}"
        echo "{{\\"node-id\\": \\"$id\\"}}" ;;
    unregister)
        sed "s/^$3 .*/gone/" "{known}" > "{known}.new" && mv "{known}.new" "{known}"
        echo '{{"success": true}}' ;;
esac
"""
    )
    (folder / "flwr").chmod(0o755)
    known.write_text("")


def test_a_new_key_is_registered_only_when_the_old_one_is_out(tmp_path, requests, places):
    out = tmp_path / "c"
    issue(out, list(requests.values()), Wishes(name="banks", servers=("a.org",)))
    known = tmp_path / "known"
    stand_in_for_flwr(tmp_path, known)
    (out / "superlink" / "coordinator.env").write_text(f"FEDLAP_BIN='{tmp_path}'\n")

    def script(name, *words):
        return subprocess.run(
            ["sh", out / "superlink" / name, *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    for said in ("registered as SuperNode", "registered already"):
        done = script("register.sh")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(said) == 3
    renewed = make_request(places["bank-01"], renew=True)
    issue(out, [renewed], Wishes(replace=True))
    (out / "superlink" / "coordinator.env").write_text(f"FEDLAP_BIN='{tmp_path}'\n")
    done = script("register.sh")
    assert done.returncode == 2
    assert "bank-01: not registered: another key of it is registered as SuperNode 2" in done.stderr
    assert renewed.supernode_key not in known.read_text()
    assert script("unregister.sh", "bank-01").returncode == 0
    assert requests["bank-01"].supernode_key not in known.read_text()
    assert script("register.sh").returncode == 0
    assert renewed.supernode_key in known.read_text()


def test_the_readme_has_the_whole_command_for_new_keys(demo, tmp_path):
    folder = demo.organisation("bank-01")
    readme = (folder / "README.md").read_text()
    words = 'fedlap keys request --data "$FEDLAP_ORG_DATA" --out . --renew'
    assert f"`. ./organisation.env` and then\n  `{words}`" in readme
    (tmp_path / "fedlap").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "fedlap").chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", f'. ./organisation.env; PATH="{tmp_path}:$PATH"; {words}'],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = ["keys", "request", "--data", str(folder / "data"), "--out", ".", "--renew"]
    assert done.stdout.splitlines() == expected
