"""Every preset can be run, and keeps what its folder promises."""

from pathlib import Path

import pytest

from fedlap_app.presets import read_preset
from fedlap_app.settings import parse_settings

CONF = Path(__file__).parents[1] / "conf"
BENCHMARKS = {"cora", "citeseer", "pubmed", "chameleon", "photo"}
# Largest number of vectors with P + R <= 1 at the true edge density.
BOUND = {"cora": 31, "citeseer": 23, "pubmed": 45, "chameleon": 133, "photo": 215}
# What a measured preset says itself, so that other defaults leave its figures alone.
SAID = {
    "operator", "column-weights", "diffusion", "model", "relay", "dropout", "branch-loss", "fusion",
    "rounds", "local-epochs", "patience", "learning-rate", "weight-decay", "self-training",
}  # fmt: skip


def presets(folder):
    return sorted((CONF / folder).glob("*.toml"))


def settings_of(path):
    return parse_settings(read_preset(path))


@pytest.mark.parametrize(
    "path", sorted(CONF.rglob("*.toml")), ids=lambda path: str(path.relative_to(CONF))
)
def test_every_preset_is_for_the_data_set_it_is_named_after(path):
    assert settings_of(path).dataset == {"demo": "banks"}.get(path.stem, path.stem)


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("best", BENCHMARKS | {"banks", "digits"}),
        ("private", BENCHMARKS),
        ("paper", BENCHMARKS),
    ],
)
def test_every_data_set_has_its_presets(folder, names):
    assert {path.stem for path in presets(folder)} == names
    assert all(settings_of(path).method == "fedlap+" for path in presets(folder))


@pytest.mark.parametrize(
    "path",
    [path for folder in ("best", "private", "paper") for path in presets(folder)],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_measured_presets_do_not_lean_on_defaults(path):
    assert read_preset(path).keys() >= SAID


@pytest.mark.parametrize("path", presets("private"), ids=lambda path: path.stem)
def test_private_presets_stay_inside_the_bound(path):
    settings = settings_of(path)
    products = 2 if settings.operator == "directed" else 1
    assert products * settings.vectors <= BOUND[path.stem]


@pytest.mark.parametrize("path", presets("best"), ids=lambda path: path.stem)
def test_best_presets_stay_inside_their_budget(path):
    settings = settings_of(path)
    assert settings.vectors <= 500
    assert settings.solver == "block-lanczos"
    assert -(-settings.vectors // settings.block) + 10 <= 60


@pytest.mark.parametrize("path", presets("paper"), ids=lambda path: path.stem)
def test_the_presets_of_the_paper_are_as_printed(path):
    settings = settings_of(path)
    assert settings.self_training == 0
    assert settings.branch_loss == 0
    assert (settings.operator, settings.solver) == ("laplacian", "arnoldi")
    assert settings.vectors == settings.rank == (75 if path.stem == "photo" else 100)
