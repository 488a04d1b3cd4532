import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.benchmarks import EXTRA
from fedlap_app.knobs import domain_of, keys_of
from fedlap_app.models.specs import parse_widths
from fedlap_app.presets import read_preset
from fedlap_app.settings import GROUPS, KNOBS, Settings, parse_settings

ROOT = Path(__file__).parents[1]
PRESETS = sorted((ROOT / "conf").rglob("*.toml"))


def test_pyproject_holds_every_setting_with_its_default():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["flwr"]["app"]["config"] == Settings().to_config()


def test_every_setting_in_pyproject_has_a_comment():
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    start = lines.index("[tool.flwr.app.config]")
    for key in KNOBS:
        row = next(i for i in range(start, len(lines)) if lines[i].startswith(f"{key} = "))
        assert lines[row - 1].startswith("# "), key


@pytest.mark.parametrize(
    ("values", "profile"),
    [
        ({}, "ckks-2048"),
        ({"operator": "regularised"}, "ckks-2048"),
        ({"operator": "laplacian"}, "ckks-4096"),
        ({"operator": "directed", "directed": True}, "ckks-4096"),
        ({"operator": "laplacian", "profile": "ckks-2048"}, "ckks-2048"),
        ({"operator": "laplacian", "backend": "mask"}, "q44"),
        ({"profile": "tenseal-default"}, "tenseal-default"),
        ({"insecure-no-pads": True}, "ckks-2048+insecure-no-pads"),
    ],
)
def test_sums_are_encrypted_with_parameters_that_the_operator_needs(values, profile):
    assert Settings().backend == "ckks"
    assert parse_settings(values).offline_spec.profile == profile


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: str(path.relative_to(ROOT)))
def test_presets_are_valid_for_every_way_of_running(path):
    values = read_preset(path)
    assert parse_settings(values).to_config().items() >= values.items()
    # `flwr run .` takes a preset with any number of nodes only when it leaves the number open.
    assert "clients" not in values


def test_there_is_a_preset_for_every_data_set():
    names = {path.stem for path in (ROOT / "conf").glob("*.toml")}
    choices = next(domain_of(f).choices for f in fields(Settings) if f.name == "dataset")
    assert names >= set(choices) - set(EXTRA)  # the defaults are for graphs like those


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"learning-rat": 0.1}, "nearest valid one is 'learning-rate'"),
        ({"dataset": "coar"}, "nearest valid choice is 'cora'"),
        ({"method": "FedAvg"}, "nearest valid choice is 'fedavg'"),
        ({"rounds": "ten"}, "must be a whole number"),
        ({"rounds": 1.5}, "must be a whole number"),
        ({"rounds": True}, "must be a whole number"),
        ({"directed": 1}, "must be true or false"),
        ({"learning-rate": True}, "must be a number"),
        ({"hidden": 64}, "must be a text"),
        ({"rounds": 0}, "nearest valid value is 1"),
        ({"dropout": 1.5}, "nearest valid value is 0.99"),
        ({"dropout": float("nan")}, "out of range"),
        ({"learning-rate": float("inf")}, "out of range"),
        ({"accounts": 10}, "nearest valid value is 200"),
        ({"hidden": "64;32"}, "list of layer widths"),
        ({"hidden": "0"}, "list of layer widths"),
        ({"train-ratio": 0.5, "val-ratio": 0.5, "test-ratio": 0.5}, "add up to at most 1"),
        ({"train-ratio": 0.0}, "nothing to train on"),
        ({"rounds": [1, 2]}, "must be a whole number"),
        ({"training-backend": "ckks", "training-ring": 16}, "set training-ring = 32 or"),
    ],
)
def test_bad_values_are_refused_with_the_nearest_valid_choice(values, sentence):
    with pytest.raises(ConfigError, match=sentence):
        parse_settings(values)


def test_equal_looking_values_of_other_types_are_told_apart():
    assert parse_settings({"rounds": 1}).rounds == 1
    with pytest.raises(ConfigError):
        parse_settings({"rounds": 1.0})


def test_a_whole_number_serves_as_a_number():
    assert parse_settings({"learning-rate": 1}).learning_rate == 1.0


def test_widths():
    assert parse_widths("128, 64") == (128, 64)
    assert parse_widths("") == ()


def test_groups_own_every_knob_once():
    owned = [key for group in GROUPS for key in keys_of(group)]
    assert sorted(owned) == sorted(KNOBS)
    assert list(KNOBS)[:2] == ["method", "seed"]
    assert len({group.title for group in GROUPS}) == len(GROUPS)


def test_private_is_what_changes_nothing_that_leaves():
    assert {key for key, entry in KNOBS.items() if domain_of(entry).private} == {
        "data", "run-dir", "store-dir", "device", "encryption-processes", "join-timeout",
        "step-timeout", "straggler-timeout", "min-clients", "message-mb", "processes", "resume",
        "refresh-basis",
    }  # fmt: skip


def test_digest_ignores_where_files_lie_and_nothing_else():
    plain = Settings()
    assert parse_settings({"run-dir": "/elsewhere", "device": "cpu"}).digest() == plain.digest()
    assert parse_settings({"seed": 1}).digest() != plain.digest()


def test_unreadable_presets_give_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match="no preset file"):
        read_preset(tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("rounds = = 3")
    with pytest.raises(ConfigError, match="not a readable TOML"):
        read_preset(broken)
    broken.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not a readable TOML"):
        read_preset(broken)
