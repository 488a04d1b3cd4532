import numpy as np
import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.federation import load_federation
from fedlap_app.graphs.graph import join
from fedlap_app.settings import parse_settings
from fedlap_app.studies.attack_bench import Choice, run_attacks
from fedlap_app.studies.attacks.scores import curve_of
from fedlap_app.studies.attacks.server import Exchange, attack_server, contents_of, times_of
from fedlap_app.studies.server_runs import attack_server_views, rewired


def of(**changes):
    usual = {"accounts": 240, "clients": 3, "vectors": 8, "block": 4}
    return parse_settings({**usual, **{k.replace("_", "-"): v for k, v in changes.items()}})


def test_every_attack_names_its_attacker_and_has_intervals():
    report = run_attacks(of(), Choice(("worst", "client", "coalition")))
    names = [(found["name"], found["target"]) for found in report["attacks"]]
    assert names[0] == ("worst", "whole graph")
    assert [name for name, _ in names] == ["worst", "worst", "client", "coalition"]
    for found in report["attacks"]:
        assert found["attacker"]
        for part in (found, found.get("both_rows"), found.get("baseline")):
            if part is not None:
                low, high = part["auc_interval"]
                assert low <= part["auc"] <= high
                assert low < high
                assert part["attacker"]
    whole = report["attacks"][0]
    p, alpha = whole["density"], whole["theory"]["alpha"]
    assert alpha == pytest.approx(whole["rank"] / (240 * p * (1 - p)), rel=1e-9)
    assert whole["both_rows"]["auc"] > whole["auc"]
    assert max(whole["curve"]["recall"]) == 1.0


def test_the_same_seed_gives_the_same_attack():
    choice = Choice(("client",))
    assert run_attacks(of(), choice) == run_attacks(of(), choice)


def test_the_choice_of_parties():
    choice = Choice(("worst", "coalition"), target="bank-01", attacker="bank-02", coalition=2)
    report = run_attacks(of(), choice)
    assert report["attacks"][1]["target"] == "bank-01"
    assert report["attacks"][2]["members"] == ["bank-02", "bank-00"]


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        (Choice(("guess",)), "choose from worst, client, coalition, server"),
        (Choice(()), "choose from worst"),
        (Choice(("coalition",), coalition=3), "from 1 to 2"),
        (Choice(("worst",), target="bank-77"), "bank-77"),
        (Choice(("client",), attacker="bank-77"), "choose from bank-00"),
        (Choice(("server",), runs=5), "try --runs 40"),
    ],
)
def test_bad_choices_are_refused(choice, sentence):
    with pytest.raises(ConfigError, match=sentence):
        run_attacks(of(), choice)


def test_the_server_guesses_unless_the_back_end_is_plain():
    sealed = attack_server_views(of(backend="mask"), runs=40)
    assert sealed["contents"]["at_chance"]
    low, high = sealed["contents"]["auc_interval"]
    assert low <= 0.5 <= high
    plain = attack_server_views(of(backend="plain"), runs=10)
    assert plain["contents"]["auc"] > 0.9
    assert not plain["contents"]["at_chance"]


def test_a_classifier_finds_what_sizes_tell():
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2 == 1
    views = [
        [Exchange(1, "query", b"", rng.bytes(200 + 8 * int(label)), rng.random())]
        for label in labels
    ]
    for read, knows in ((contents_of, True), (times_of, False)):
        features = [read(view) for view in views]
        scores = attack_server(features[:20], labels[:20], features[20:], labels[20:])
        assert (curve_of(scores).auc > 0.9) == knows


def test_rewiring_changes_edges_and_nothing_else():
    parts = load_federation(of().data_spec)
    other = rewired(parts, np.random.default_rng(0))
    for one, two in zip(parts, other, strict=True):
        assert one.name == two.name
        np.testing.assert_array_equal(one.ids, two.ids)
    before, after = join(parts), join(other)
    assert before.edge_index.shape == after.edge_index.shape
    assert abs(before.out_adjacency() - after.out_adjacency()).nnz > 0
