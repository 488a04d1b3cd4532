"""The table [policy] of org.toml, and its older name."""

import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.errors import DataError
from fedlap_app.graphs.federation import DataSpec, load_federation
from fedlap_app.graphs.folder import write_folder
from fedlap_app.privacy.policy import SAFE, SIMULATED, Policy, parse_policy, read_policy


@pytest.fixture(scope="module")
def part():
    return load_federation(DataSpec(dataset="banks", accounts=200, clients=2))[0]


@pytest.fixture
def folder(part, tmp_path):
    write_folder(part, tmp_path / part.name)
    return tmp_path / part.name


def add(folder, text):
    with (folder / "org.toml").open("a") as file:
        file.write(text)


@pytest.mark.parametrize("table", ["policy", "consent"])
def test_all_limits_are_read(folder, table):
    assert read_policy(folder) == SAFE
    assert read_policy(folder, SIMULATED) == SIMULATED
    add(
        folder,
        f"[{table}]\nmost-vectors = 100\nleast-pinned-partners = 2\nlargest-auc = 0.75\n"
        'backends = ["ckks", "mask"]\noperators = ["sym"]\nhide-topology = true\n',
    )
    assert read_policy(folder) == Policy(100, 2, 0.75, ("sym",), ("ckks", "mask"), True)
    assert not read_policy(folder, SIMULATED).unpadded_sums


def test_both_names_of_the_table_go_together_but_not_for_one_key(folder):
    add(folder, "[consent]\nmost-vectors = 3\n[policy]\njobs-a-day = 2\n")
    assert read_policy(folder) == Policy(most_vectors=3, jobs_a_day=2)
    add(folder, "most-vectors = 4\n")
    with pytest.raises(DataError, match=r"most-vectors is in \[policy\] and in \[consent\]"):
        read_policy(folder)


def test_what_a_run_could_weaken_is_closed_by_default():
    assert SAFE.backends == ("ckks", "mask")
    assert SAFE.hide_topology
    assert not any([SAFE.unpadded_sums, SAFE.trust_on_first_use, SAFE.server_steps])


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"most-vector": 1}, "unknown limit 'most-vector': the nearest is 'most-vectors'"),
        ({"backend": "ckks"}, "unknown limit 'backend': the nearest is 'backends'"),
        ({"most-vectors": "many"}, "most-vectors = 'many' is not a whole number from 0"),
        ({"most-vectors": True}, "most-vectors = True is not a whole number"),
        ({"most-vectors": -1}, "most-vectors = -1 is not a whole number"),
        ({"least-pinned-partners": 1.5}, "least-pinned-partners = 1.5 is not a whole number"),
        ({"largest-auc": 0.4}, "largest-auc = 0.4 is not a number from 0.5"),
        ({"largest-auc": float("nan")}, "largest-auc = nan is not a number from 0.5"),
        ({"backends": "ckks"}, "backends = 'ckks' is not a list of names"),
        ({"backends": []}, "is not a list of names"),
        ({"backends": ["ckk"]}, "backends names 'ckk': the nearest valid one is 'ckks'"),
        ({"operators": ["sym", 3]}, "operators names 3: the nearest valid one is"),
        ({"hide-topology": "yes"}, "hide-topology = 'yes' is neither true nor false"),
        ({"least-members": 2}, "not a whole number from 3: write `least-members = 6`, or `two-m"),
        ({"least-members": True}, "least-members = True is not a whole number from 3"),
        ({"least-published-nodes": 49}, "not a whole number from 50"),
        ({"least-members": 3, "two-members": True}, "exclude each other: keep one"),
    ],
)
def test_a_wrong_table_is_refused_in_one_sentence(table, sentence):
    with pytest.raises(DataError) as caught:
        parse_policy(table)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("table", "deployed", "simulated"),
    [
        ({}, 3, 1),
        ({"least-members": 3}, 3, 3),
        ({"least-members": 5}, 5, 5),
        ({"two-members": True}, 2, 1),
        ({"two-members": False}, 3, 3),
        ({"two-members": False, "least-members": 4}, 4, 4),
    ],
)
def test_only_two_members_allows_sums_of_two(table, deployed, simulated):
    assert parse_policy(table).fewest_members == deployed
    assert parse_policy(table, SIMULATED).fewest_members == simulated


def test_check_reads_the_limits(folder):
    add(folder, "[consent]\nmost-vectors = 'x'\n")
    done = CliRunner().invoke(main, ["check", str(folder)])
    assert done.exit_code == 2
    assert "org.toml, [consent]: most-vectors = 'x' is not a whole number" in done.stdout


def test_a_value_in_place_of_the_table_is_refused(folder):
    text = (folder / "org.toml").read_text()
    (folder / "org.toml").write_text("consent = 3\n" + text)
    with pytest.raises(DataError, match="consent is not a table"):
        read_policy(folder)
