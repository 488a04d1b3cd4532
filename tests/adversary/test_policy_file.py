"""A run asks for less protection; the organisation's policy is absent or says nonsense."""

from dataclasses import replace

import pytest

from .scene import RefusedError

VICTIM = "bank-01"
LESS = [
    {"backend": "plain"},
    {"backend": "ckks", "insecure_no_pads": True},
    {"hide_topology": False},
    {"backend": "plain", "trust_on_first_use": True, "insecure_no_pads": False},
]
NONSENSE = [
    'backends = "plain"',
    "backends = []",
    'backends = ["none"]',
    'hide-topology = "no"',
    "unpadded-sums = 1",
    "backend = ['plain']",
    "jobs-a-day = -1",
    "jobs-a-day = 1e9",
    "least-scored-nodes = true",
    "x = " + "[" * 3000 + "]" * 3000,
]


def require_nothing_left(scene):
    assert not any(scene.contributions(name) for name in scene.names)
    assert not list(scene.store(VICTIM).glob("offline-*-answered-*"))


def without_policy(scene, table):
    """What the scene has let training do goes, and another table comes."""
    path = scene.folders[VICTIM] / "org.toml"
    text, _, _ = path.read_text().partition("[policy]")
    path.write_text(text + table)


@pytest.mark.parametrize("changes", LESS)
@pytest.mark.parametrize("table", ["", "[policy]\n", "[consent]\n", "[Policy]\n"])
def test_what_holds_without_a_policy_is_safe(scene, changes, table):
    without_policy(scene, table)
    scene.settings = replace(scene.settings, **changes)
    with pytest.raises(RefusedError, match="does not allow"):
        scene.run("h1")
    require_nothing_left(scene)


@pytest.mark.parametrize("table", ["", "[policy]\nmost-vectors = 1000\n"])
def test_no_run_asks_for_sums_of_features(scene, table):
    """Any run may name the program; the organisations' files say nothing about it."""
    without_policy(scene, table)
    with pytest.raises(RefusedError, match="most-feature-columns = 0 does not allow"):
        scene.run("h1", program="neighbour-sums")
    require_nothing_left(scene)


@pytest.mark.parametrize("line", NONSENSE)
def test_a_policy_that_cannot_be_read_allows_nothing(scene, line):
    scene.add(VICTIM, "policy", line)
    scene.settings = replace(scene.settings, backend="plain")
    with pytest.raises(RefusedError, match="its data cannot be used"):
        scene.run("h1")
    require_nothing_left(scene)


@pytest.mark.parametrize(
    "lines",
    [
        '[Policy]\nbackends = ["ckks"]\n',
        "[polcy]\nmost-vectors = 3\n",
        "[other]\njobs-a-day = 1\n",
        "[peers]\nmost-vectors = 3\n",  # what is added at the end of a file with pins
        "[policy.policy]\nmost-vectors = 3\n",
    ],
)
def test_a_limit_in_another_table_is_not_passed_over(scene, lines):
    path = scene.folders[VICTIM] / "org.toml"
    path.write_text(path.read_text().replace("[peers]\n", "") + lines)
    with pytest.raises(RefusedError, match=r"its data cannot be used|\[peers\] of org\.toml"):
        scene.run("h1")
    require_nothing_left(scene)


def test_a_limit_in_no_table_is_not_passed_over(scene):
    path = scene.folders[VICTIM] / "org.toml"
    path.write_text("most-vectors = 3\n" + path.read_text())
    with pytest.raises(RefusedError, match="its data cannot be used"):
        scene.run("h1")
    require_nothing_left(scene)


def test_an_organisation_file_that_is_cut_allows_nothing(scene):
    path = scene.folders[VICTIM] / "org.toml"
    path.write_text(path.read_text()[:-20])
    with pytest.raises(RefusedError, match=r"its data cannot be used|org\.toml"):
        scene.run("h1")
    require_nothing_left(scene)


def test_a_refusal_names_no_place_on_the_disk(scene):
    (scene.store(VICTIM) / "offline" / "identity").chmod(0o644)
    with pytest.raises(RefusedError, match="offline/identity has mode 0644") as refusal:
        scene.run("h1")
    assert str(scene.root) not in str(refusal.value)


def test_refusals_fill_no_disk(scene, monkeypatch):
    """Every refused job adds a line to the organisation's own log."""
    from fedlap_app.store import files

    monkeypatch.setattr(files, "MOST_LOG_BYTES", 2000)
    scene.settings = replace(scene.settings, backend="plain")
    for number in range(30):
        with pytest.raises(RefusedError, match="does not allow"):
            scene.run(f"h{number}")
    logs = scene.store("bank-00") / "offline" / "consent.log"
    assert 0 < logs.stat().st_size < 3000
    assert logs.stat().st_mode & 0o077 == 0
