"""Tuning: one basis, validation only, resumable."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fedlap_app as fedlap
from fedlap_app.api.training import conduct
from fedlap_app.api.workplace import folder_at, quietly
from fedlap_app.errors import ConfigError, DataError, RunError
from fedlap_app.flower.submission import Flower
from fedlap_app.knobs import key_of
from fedlap_app.presets import read_preset
from fedlap_app.settings import parse_settings
from fedlap_app.studies import tune_runs
from fedlap_app.studies.tune import Row, Search
from fedlap_app.studies.tune_runs import COMPLETED, Here, Runs
from fedlap_app.studies.tune_space import basis_of, changed, neighbours, portfolio

QUICK: dict[str, Any] = {
    "rounds": 2, "local_epochs": 1, "hidden": "8", "patience": 0, "vectors": 12, "block": 4,
    "backend": "mask",
}  # fmt: skip


@pytest.fixture
def orgs() -> fedlap.Organisations:
    return fedlap.load("banks", clients=3, accounts=240)


def test_all_trials_share_one_basis(orgs: fedlap.Organisations, tmp_path: Path) -> None:
    found = fedlap.tune(orgs, trials=13, folder=tmp_path, **QUICK)
    assert (found.report["trials"], found.report["bases"], found.report["vectors"]) == (13, 1, 12)
    assert len({json.dumps(row["changes"]) for row in found.report["rows"]}) == 13
    # What the preset says is what was chosen, and a run with it has the same validation score.
    values = read_preset(found.preset)
    assert not {"dataset", "clients", "seed"} & values.keys()
    run = fedlap.train(orgs, preset=found.preset)
    assert run.score["val"] == found.report["chosen"]
    assert "given away: 12 vectors for 1 basis" in repr(found)
    assert found.table["val"].is_monotonic_decreasing


def test_further_bases_are_asked_for_and_counted(
    orgs: fedlap.Organisations, tmp_path: Path
) -> None:
    found = fedlap.tune(orgs, trials=4, bases=2, folder=tmp_path, **QUICK)
    assert (found.report["bases"], found.report["vectors"]) == (2, 24)


def test_it_goes_on_where_it_was_stopped(
    orgs: fedlap.Organisations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fedlap.tune(orgs, trials=12, folder=tmp_path / "whole", **QUICK)
    fedlap.tune(orgs, trials=4, folder=tmp_path / "parts", **QUICK)
    table = tmp_path / "parts" / "trials.jsonl"
    table.write_text(table.read_text() + '{"changes": {"hops"')  # killed while it wrote
    trained = []
    conduct = tune_runs.conduct
    monkeypatch.setattr(
        tune_runs, "conduct", lambda *given, **more: trained.append(1) or conduct(*given, **more)
    )
    again = fedlap.tune(orgs, trials=12, folder=tmp_path / "parts", **QUICK)
    assert len(trained) == 8
    assert [_known(row) for row in again.report["rows"]] == [
        _known(row) for row in whole.report["rows"]
    ]
    with pytest.raises(ConfigError, match="other settings or data"):
        fedlap.tune(orgs, trials=12, folder=tmp_path / "parts", **{**QUICK, "rounds": 3})


def _known(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["changes"], row["val"], row["loss"], row["vectors"], row["chosen"]


class SamePlace(Flower):
    """A SuperLink whose runs are trained here, or fail."""

    def __init__(self, folder: Path, status: str = COMPLETED) -> None:
        super().__init__(folder, folder)
        self.status, self.values = status, list[Any]()

    def submit(self, config: Any, nodes: int) -> int:
        self.values.append(config)
        with quietly():
            return int(conduct(parse_settings(config)).summary["run_id"])

    def wait(self, run_id: int, timeout: float) -> str:
        return self.status


def test_runs_of_flower_give_the_same_trials(
    orgs: fedlap.Organisations, tmp_path: Path, own_home: Path
) -> None:
    settings = parse_settings(
        {"accounts": 240, "clients": 3} | {key_of(k): value for k, value in QUICK.items()}
    )
    flower = SamePlace(tmp_path)
    found = Search(settings, Runs(flower, 3, 1.0), 3).run(tmp_path)
    here = fedlap.tune(orgs, trials=3, folder=tmp_path / "here", **QUICK)
    assert [_known(row) for row in found.report["rows"]] == [
        _known(row) for row in here.report["rows"]
    ]
    assert found.report["clients"] == 3
    assert found.report["vectors"] == 12
    # What a run is not told has its default there.
    assert {**settings.to_config(), **flower.values[0]} == settings.to_config()
    failing = Runs(SamePlace(tmp_path, "finished:failed"), 3, 1.0)
    with pytest.raises(RunError, match="of a trial failed"):
        Search(settings, failing, 1).run(folder_at(tmp_path / "other", "folder"))


def test_no_test_score_is_seen(
    orgs: fedlap.Organisations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = [replace_test(part) for part in orgs]
    seen = fedlap.tune(orgs, trials=3, folder=tmp_path / "a", **QUICK)
    unseen = fedlap.tune(_of(blind, orgs), trials=3, folder=tmp_path / "b", **QUICK)
    assert [row["val"] for row in seen.report["rows"]] == [
        row["val"] for row in unseen.report["rows"]
    ]
    assert "test" not in (tmp_path / "a" / "trials.jsonl").read_text()


def replace_test(part: fedlap.Organisations) -> Any:
    """The same part without test nodes."""
    return replace(part, test_mask=part.test_mask & False)


def _of(parts: list[Any], orgs: fedlap.Organisations) -> fedlap.Organisations:
    from fedlap_app.api.organisations import in_memory

    return in_memory(parts, seed=orgs.seed)


def test_the_choice_must_lead_by_more_than_chance(orgs: fedlap.Organisations) -> None:
    search = Search(parse_settings({"clients": 3}), Here(orgs))
    given = Row({}, 0.8, 0.5, 1.0, 1.0, 0, 24)
    error = (0.8 * 0.2 / 24) ** 0.5
    near = replace(given, changes={"hops": 1}, val=0.8 + 0.4 * error)
    far = replace(given, changes={"hops": 0}, val=0.8 + 0.6 * error)
    assert search._choice([given, near]) is given
    assert search._choice([given, near, far]) is far


def test_the_portfolio_of_one_basis_keeps_it() -> None:
    settings = parse_settings({"directed": True})
    one = portfolio(settings, bases=1)
    assert {basis_of(changed(settings, each)) for each in one} == {basis_of(settings), ""}
    several = {basis_of(changed(settings, each)) for each in portfolio(settings, bases=4)}
    assert len(several - {""}) == 4
    assert {changed(settings, each).model for each in one} == {
        "portfolio",
        "sage",
        "gcn",
        "decoupled",
    }


@pytest.mark.parametrize("start", [{}, {"method": "fedavg", "model": "sage"}, {"model": "none"}])
def test_neighbours_change_one_thing_and_no_basis(start: dict[str, Any]) -> None:
    settings = parse_settings({})
    before = changed(settings, start).to_config()
    for each in neighbours(settings, start, 3):
        after = changed(settings, each).to_config()
        assert sum(before[key] != after[key] for key in before) == 1
        assert basis_of(changed(settings, each)) == basis_of(changed(settings, start))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"trials": 0}, "take at least 1"),
        ({"method": "local"}, "shares nothing"),
    ],
)
def test_what_cannot_be_tuned(
    orgs: fedlap.Organisations, tmp_path: Path, given: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        fedlap.tune(orgs, folder=tmp_path, **given)


def test_without_validation_nodes(tmp_path: Path) -> None:
    bare = fedlap.load("banks", clients=2, accounts=240, val_ratio=0.0)
    with pytest.raises(DataError, match="no validation nodes"):
        fedlap.tune(bare, trials=1, folder=tmp_path)
