"""What a method does not read is refused when typed, dropped from a preset, fine at its default."""

from types import SimpleNamespace

import pytest

import fedlap_app as fedlap
from fedlap_app.errors import ConfigError
from fedlap_app.flower.server import app
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.methods.registry import BUILT_IN
from fedlap_app.relevance import MOMENTS, choose, read_by, refuse_unread
from fedlap_app.settings import KNOBS, Settings, parse_settings
from tests.test_settings import PRESETS, read_preset

BASIS = {"spectral", "operator", "regulariser", "solver", "vectors", "rank", "keep", "block"}
BASIS |= {"start-basis", "keep-basis", "exchange-rows"}
SUMS = {
    "backend", "profile", "encryption-processes", "insecure-no-pads", "resume", "refresh-basis",
    "trust-on-first-use", "message-mb",
}  # fmt: skip
STRUCTURE = {"structure-width", "structure-hidden", "structure-norm", "branch-loss", "fusion"}
LIKENESS = {"similarity-scale", "similarity-threshold", "proxy-blocks"}
WALKS = {"walk-steps", "walk-entries", "read-walks"}
RAW = {"raw-ball", "ideal"}
GENERATED = {"generator-width", "generated-rows", "generator-loss"}
OTHERS = LIKENESS | WALKS | RAW | GENERATED
SERVER = {"strategy", "server-learning-rate", "server-momentum", "proximal-mu"}
LOCAL_STEPS = {"local-epochs", "optimizer", "optimizer-state"}
GRAPH = {"model", "hops", "relay", "linear-head"}
ON_BASIS = {
    "programs", "activation", "column-weights", "diffusion", "smoothing", "unit-norm", "readings",
}  # fmt: skip
ON_ROWS = {"row-smoothing", "row-operator"}
AVERAGING = {
    "strategy", "server-learning-rate", "server-momentum", "proximal-mu", "weight-by",
    "largest-weight", "min-clients", "straggler-timeout", "start-model",
}  # fmt: skip
WHOLE = BASIS | SUMS | {"hide-topology", "layout", "self-loops"}
WITHOUT_BASIS = (WHOLE - {"spectral"}) | STRUCTURE | ON_BASIS | ON_ROWS | OTHERS
EXCHANGING = WITHOUT_BASIS - MOMENTS
IGNORED = {
    "fedlap+": ON_ROWS | OTHERS,
    "fedlap": (BASIS - {"spectral"}) | ON_BASIS | OTHERS
    | {"optimizer-at", "hide-topology", "layout"},
    "fedavg": EXCHANGING,
    "fedsgd": EXCHANGING | SERVER | LOCAL_STEPS | {"optimizer-at"},
    "mlp": EXCHANGING | GRAPH,
    "fedgcn": (WITHOUT_BASIS - SUMS - {"raw-ball", "hide-topology", "layout"}),
    "fedsage+": (EXCHANGING - GENERATED - {"ideal"}) | SERVER
    | {"optimizer-at", "relay"},
    "fedstruct": (WITHOUT_BASIS - SUMS - WALKS - STRUCTURE - {"hide-topology", "layout"})
    | SERVER | LOCAL_STEPS | {"optimizer-at"},
    "fedpub": (EXCHANGING - {"similarity-scale", "proxy-blocks"}) | SERVER | GRAPH
    | {"weight-by", "largest-weight", "optimizer-at", "input-gain", "start-model"},
    "fedgta": (EXCHANGING - {"similarity-threshold"}) | SERVER
    | {"weight-by", "largest-weight", "optimizer-at", "start-model"},
    "fedtad": EXCHANGING | SERVER
    | {"weight-by", "largest-weight", "optimizer-at", "start-model"},
    "local": WITHOUT_BASIS | AVERAGING | {"optimizer-at"},
    "central": WITHOUT_BASIS | {"spectral"} | AVERAGING | {"optimizer-at"},
}  # fmt: skip


def other(key):
    """A value that is not the default; relevance looks at nothing else."""
    default = KNOBS[key].default
    return not default if isinstance(default, bool) else f"{default}x" if default == "" else 0.25


def never(line):
    raise AssertionError(line)


@pytest.mark.parametrize("method", BUILT_IN)
def test_each_method_ignores_what_it_does_not_read(method):
    assert KNOBS.keys() - read_by(method) == IGNORED[method]
    for key in IGNORED[method]:
        with pytest.raises(ConfigError, match=f"{key} = .* has no effect on method '.*', only on"):
            choose({}, {"method": method, key: other(key)}, never)
        with pytest.raises(ConfigError, match=f"{key} = "):
            refuse_unread({"method": method, key: other(key)})
        default = {"method": method, key: KNOBS[key].default}
        assert choose({}, default, never) == refuse_unread(default) == default


def test_the_refusal_names_who_has_it():
    with pytest.raises(ConfigError) as refused:
        choose({}, {"method": "fedavg", "structure-width": 8}, never)
    assert str(refused.value) == (
        "structure-width = 8 has no effect on method 'fedavg', only on fedlap+, fedlap, fedstruct: "
        "leave it out, or try method = 'fedlap+'"
    )
    with pytest.raises(ConfigError, match=r"only on fedlap\+ or with spectral = true"):
        choose({}, {"method": "fedavg", "vectors": 8}, never)


def test_a_preset_may_have_it_with_one_line():
    said = []
    preset = {
        "method": "fedlap+",
        "vectors": 50,
        "rank": 20,
        "hidden": "8",
        "optimizer-at": "server",
    }
    found = choose(preset, {"method": "fedlap", "local-epochs": 2}, said.append)
    assert found == {"method": "fedlap", "hidden": "8", "local-epochs": 2}
    assert said == ["Method fedlap ignores of the preset: vectors, rank, optimizer-at"]
    # What is left out cannot contradict what was typed.
    assert parse_settings(found).optimizer_at == "client"
    with pytest.raises(ConfigError, match="rank = 10 has no effect"):
        choose(preset, {"method": "fedlap", "rank": 10}, never)


def test_a_basis_that_is_asked_for_has_its_settings():
    typed = {"method": "fedavg", "spectral": True, "vectors": 8, "backend": "mask"}
    assert choose({}, typed, never) == refuse_unread(typed) == typed
    with pytest.raises(ConfigError, match="spectral = true has no effect on method 'central'"):
        choose({}, {**typed, "method": "central"}, never)


@pytest.mark.parametrize(
    ("typed", "remedy"),
    [
        ({"diffusion": 3.0, "column-weights": "none"}, "column-weights = 'diffusion'"),
        ({"server-momentum": 0.9}, "strategy = 'fedavgm'"),
        ({"proximal-mu": 0.2, "strategy": "fedadam"}, "strategy = 'fedprox'"),
        ({"accounts": 300, "dataset": "cora"}, "dataset = 'banks'"),
        ({"hops": 3, "model": "sage"}, "model = 'decoupled'"),
    ],
)
def test_what_other_settings_make_idle_is_refused_when_typed(typed, remedy):
    with pytest.raises(ConfigError, match=f"has no effect with .*try {remedy}"):
        choose({}, typed, never)
    assert choose(typed, {}, never) == refuse_unread(typed) == typed


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_preset_is_refused_where_typed_cannot_be_told(path):
    values = read_preset(path)
    assert refuse_unread(values) == values == choose(values, {}, never)


def test_wrong_methods_are_refused_as_everywhere():
    with pytest.raises(ConfigError, match="nearest valid choice is 'fedavg'"):
        choose({}, {"method": "fedagv", "vectors": 3}, never)
    assert choose({}, {"method": 3}, never) == {"method": 3}


def test_the_server_refuses_what_differs_from_the_default(tmp_path):
    grid = SimpleNamespace(run=SimpleNamespace(run_id=7))
    usual = Settings().to_config()
    context = SimpleNamespace(run_config=usual | {"method": "fedavg", "rounds": 3})
    assert app._settings(grid, context).rounds == 3
    context = SimpleNamespace(run_config=usual | {"method": "fedavg", "vectors": 3})
    with pytest.raises(ConfigError, match="vectors = 3 has no effect on method 'fedavg'"):
        app._settings(grid, context)
    assert "vectors = 3" in RunFolder.find(7).read_json("error.json")["error"]


def test_keywords_count_as_typed_and_a_preset_does_not():
    orgs = fedlap.load("banks", clients=2, accounts=240)
    with pytest.raises(ConfigError, match="vectors = 8 has no effect on method 'fedavg'"):
        fedlap.train(orgs, "fedavg", vectors=8)
    preset = Settings(vectors=8, rounds=1, hidden="4", self_training=0)
    run = fedlap.train(orgs, "fedavg", preset=preset, vectors=100)
    assert (run.settings.vectors, run.settings.rounds) == (100, 1)


def test_what_something_typed_makes_idle_is_dropped_from_a_preset_with_a_line():
    said = []
    preset = {"training-ring": 12, "rounds": 7}
    assert choose(preset, {"training-backend": "ckks"}, said.append) == {
        "rounds": 7,
        "training-backend": "ckks",
    }
    assert said == ["What was typed leaves no effect to these of the preset: training-ring"]
    with pytest.raises(ConfigError, match="has no effect with training-backend"):
        choose({"rounds": 7}, {**preset, "training-backend": "ckks"}, said.append)
