import json

import pytest
from click.testing import CliRunner

from fedlap_app.cli import main

SMALL = ["--accounts", "240", "--clients", "3", "--vectors", "8", "--block", "4"]


def audit(*words):
    return CliRunner().invoke(main, ["audit", *words], catch_exceptions=False)


def test_json_has_its_keys_at_the_top():
    report = json.loads(audit(*SMALL, "--json").stdout)
    for key in ("largest_vectors_p_plus_r", "largest_vectors_auc", "auc", "kl", "alpha_mean"):
        assert isinstance(report[key], int | float)
    assert report["alpha_exact"]
    assert [row["vectors"] for row in report["table"]][:4] == [5, 8, 10, 20]


def test_the_paper_s_reading_takes_the_whole_graph():
    words = ["--dataset", "digits", "--clients", "3", "--paper-p", "--json"]
    report = json.loads(audit(*words).stdout)
    assert report["target"] == "whole graph"
    assert report["nodes"] == report["whole_graph"]["nodes"] == 1797
    # Edges of this data set have no direction, so that each is counted twice.
    assert report["density"] == pytest.approx(2 * report["whole_graph"]["density"], rel=1e-3)


def test_the_text_names_every_attacker():
    text = audit(*SMALL, "--no-exact", "--table", "3,5").output
    assert text.count("Attacker: ") == 4
    assert "the paper's approximation" in text
    assert "most exposed target" in text
    assert "hide-topology is on" in text


def test_figures_are_png_and_svg(tmp_path):
    result = audit(*SMALL, "--no-exact", "--plot", str(tmp_path / "new"))
    assert result.exit_code == 0
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    stems = ("auc-vectors", "p-plus-r", "precision-recall")
    assert names == [f"{stem}{form}" for stem in stems for form in (".png", ".svg")]
    assert all(path.stat().st_size > 1000 for path in (tmp_path / "new").iterdir())


def test_one_folder(tmp_path):
    CliRunner().invoke(
        main, ["partition", "banks", "--clients", "2", "--out", str(tmp_path / "orgs")]
    )
    folder = sorted((tmp_path / "orgs").iterdir())[0]
    text = audit(str(folder), "--vectors", "8").output
    assert "what this organisation alone knows" in text
    assert "at most:" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "There is no folder nowhere"),
        ([".", "--dataset", "banks"], "exclude each other"),
        ([".", "--paper-p"], "needs the whole graph"),
        ([*SMALL, "--auc-bound", "0.2"], "AUC bound of 0.2"),
        ([*SMALL, "--table", "3,x"], "--table 10,31,100"),
        ([*SMALL, "--paper-p", "--exact"], "leave it out"),
    ],
)
def test_bad_input_is_one_sentence(words, sentence):
    result = CliRunner().invoke(main, ["audit", *words])
    assert result.exit_code == 2
    assert sentence in result.output
    assert "Traceback" not in result.output
