import json

from click.testing import CliRunner

from fedlap_app.cli import main

SMALL = [
    "--accounts", "240", "--clients", "3", "--rounds", "2", "--self-training", "0", "--hidden", "8",
    "--vectors", "12", "--backend", "mask", "--trials", "2",
]  # fmt: skip


def test_a_preset_for_other_commands(tmp_path):
    words = ["tune", *SMALL, "--folder", str(tmp_path)]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "[TRIAL 2/2]" in done.stderr
    assert done.stdout.rstrip().endswith(f"preset: {tmp_path / 'preset.toml'}")
    given = ["--accounts", "240", "--clients", "3", "--conf", str(tmp_path / "preset.toml")]
    trained = CliRunner().invoke(main, ["train", *given, "--json"], catch_exceptions=False)
    again = CliRunner().invoke(main, [*words, "--json"], catch_exceptions=False)
    found = json.loads(again.stdout)
    assert json.loads(trained.stdout)["validation_mean"] == 100 * found["chosen"]
