import json

from click.testing import CliRunner

from fedlap_app.cli import main


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_one_line_a_check_and_code_two(tmp_path):
    assert (
        run("keys", "demo", "--out", tmp_path / "d", "--accounts", 200, "--port", 1).exit_code == 0
    )
    folder = tmp_path / "d" / "organisations" / "bank-00"
    words = ("doctor", "--federation", folder / "federation.toml", "--data", folder / "data")
    done = run(*words)
    assert done.exit_code == 2
    lines = done.output.splitlines()
    assert all(line.split()[0] in ("ok", "warn", "fail") for line in lines)
    assert sum(line.startswith("fail") for line in lines) == 1
    report = json.loads(run(*words, "--json").output)
    assert report["ok"] is False
    assert [row["check"] for row in report["checks"] if row["state"] == "fail"] == ["SuperLink"]
    checked = run("keys", "check", tmp_path / "d", "--json")
    assert checked.exit_code == 0
    assert json.loads(checked.output)["ok"] is True
    (folder / "keys" / "supernode").chmod(0o644)
    assert run("keys", "check", folder).exit_code == 2


def test_a_bad_preset_is_a_failed_check(tmp_path):
    run("keys", "demo", "--out", tmp_path / "d", "--accounts", 200, "--port", 1)
    conf = tmp_path / "x.toml"
    conf.write_text("rouns = 3\n")
    file = tmp_path / "d" / "coordinator" / "federation.toml"
    done = run("doctor", "--federation", file, "--conf", conf)
    assert any(line.startswith("fail  settings") for line in done.output.splitlines())
