import json

from click.testing import CliRunner

from fedlap_app.cli import main

SMALL = ["--accounts", "240", "--clients", "3", "--vectors", "8", "--block", "4"]


def attack(*words):
    return CliRunner().invoke(main, ["attack", *SMALL, *words], catch_exceptions=False)


def test_text_has_theory_attack_and_figure(tmp_path):
    result = attack("--attack", "worst,client", "--plot", str(tmp_path / "figures"))
    assert result.exit_code == 0
    assert result.stdout.count("Attacker: ") == 3
    for word in ("theory", "both rows", "no message", "at FPR 1e-2"):
        assert word in result.stdout
    drawn = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert drawn[2:] == ["attack-whole-graph.png", "attack-whole-graph.svg"]
    assert len(drawn) == 4


def test_json_of_the_server():
    report = json.loads(attack("--attack", "server", "--runs", "4", "--json").stdout)
    (found,) = report["attacks"]
    assert found["runs"] == found["runs_tested"] == 4
    assert found["attacker"].startswith("the server")
    low, high = found["contents"]["auc_interval"]
    assert 0 <= low <= found["contents"]["auc"] <= high <= 1


def test_unknown_attacks_are_one_sentence():
    result = CliRunner().invoke(main, ["attack", *SMALL, "--attack", "magic"])
    assert result.exit_code == 2
    assert "choose from worst, client, coalition, server" in result.output
