import json

from click.testing import CliRunner

from fedlap_app.cli import main

SMALL = ["--accounts", "240", "--clients", "3", "--vectors", "8", "--block", "4"]


def plan(*words):
    return CliRunner().invoke(main, ["plan", *words], catch_exceptions=False)


def test_json_agrees_with_the_spectrum():
    found = json.loads(plan(*SMALL, "--json").stdout)
    done = CliRunner().invoke(main, ["spectrum", *SMALL, "--json"], catch_exceptions=False)
    real = json.loads(done.stdout)
    for key in ("round_trips", "handshake_round_trips", "bytes_up_per_client", "clients"):
        assert found[key] == real[key]
    for key in ("bytes_down_per_client", "values_per_client", "bytes_per_value_up"):
        assert abs(found[key] / real[key] - 1) < 0.05
    assert set(found["backends"]) == {"mask", "plain", "ckks", "ckks-4096", "tenseal-default"}
    assert found["backend"] == "ckks"
    sent = [found["backends"][name]["bytes_up_per_client"] for name in ("mask", "tenseal-default")]
    assert sent[0] < found["bytes_up_per_client"] < sent[1]
    assert found["seconds"] > 0


def test_a_profile_is_planned_by_its_name():
    words = ["--nodes", "3000", "--clients", "3", "--json"]
    chosen = json.loads(plan(*words, "--profile", "tenseal-default").stdout)
    usual = json.loads(plan(*words).stdout)
    assert chosen["profile"] == "tenseal-default"
    for key in ("bytes_up_per_client", "ciphertexts_per_client"):
        assert chosen[key] == usual["backends"]["tenseal-default"][key]
        assert chosen["backends"]["ckks"][key] == usual[key]


def test_the_table_shows_all_back_ends_and_the_calibration():
    result = plan("--nodes", "5000", "--clients", "4", "--round-trip-seconds", "7")
    assert result.exit_code == 0
    assert "13 and 3 in the handshake" in result.output
    for name in ("plain", "mask", "ckks", "ckks-4096", "tenseal-default"):
        assert name in result.output
    assert "7 s a round trip" in result.output


def test_a_graph_that_is_too_small_is_said():
    assert "may end earlier" in plan("--nodes", "50", "--clients", "2").output


def test_edges_without_nodes_are_refused():
    result = CliRunner().invoke(main, ["plan", "--edges", "5"])
    assert result.exit_code == 2
    assert "--nodes" in result.output


def test_a_method_without_sums_before_training_is_planned_by_its_training():
    result = plan("--accounts", "240", "--clients", "3", "--method", "fedavg")
    assert "fedavg has no sums before training" in result.output
    assert "Sealed training:" in result.output
    assert "in the handshake" not in result.output


def test_the_names_of_fedlaps_rows_are_planned():
    found = json.loads(plan("--accounts", "240", "--clients", "3", "--method", "fedlap", "--json")
                       .stdout)  # fmt: skip
    assert found["program"] == "row-names"
    assert found["bytes_up_per_client"] > 16 * 80
