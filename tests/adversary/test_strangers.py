"""A server that brings members of its own into a federation whose members pin each other."""

from datetime import UTC, datetime

import pytest

from fedlap_app.privacy.federation import FILE, Federation, FederationMember
from fedlap_app.sums.card import Roster, issue_card, new_job_secret, read_card
from fedlap_app.sums.identity import Identity
from fedlap_app.version import VERSION

from .scene import RefusedError, Scene, cards_request

VICTIM = "bank-01"


def strange_roster(scene, name, identity=None, **changes):
    """Cards of all members and of one that the server made up, with the victim's settings."""
    cards = [scene.card(each, "h1", **changes) for each in scene.names]
    own = read_card(cards[scene.names.index(VICTIM)])
    identity = identity or Identity.generate()
    stranger = issue_card(identity, name, new_job_secret(), own.settings, own.run)
    cards = [card for card in cards if read_card(card).name != name] + [stranger]
    return cards, Roster(tuple(sorted(map(read_card, cards), key=lambda card: card.name))).job


@pytest.mark.parametrize("trusting", [False, True])
@pytest.mark.parametrize("name", ["bank-09", "bank-02"])
def test_a_stranger_gets_no_share_of_the_group_key(scene, name, trusting):
    """Whatever the run configuration says about trust, and whomever the stranger says it is."""
    cards, job = strange_roster(scene, name, trust_on_first_use=trusting)
    with pytest.raises(RefusedError, match=r"is not pinned|is pinned"):
        scene.ask(VICTIM, cards_request(job, "h1", cards), trust_on_first_use=trusting)
    assert not (scene.store(VICTIM) / "offline" / "peers.json").exists()


def test_nobody_is_trusted_at_first_sight_because_a_run_says_so(small, tmp_path):
    scene = Scene(tmp_path, small, pinned=False)
    with pytest.raises(RefusedError, match="is not pinned"):
        scene.run("h1", rounds=2, trust_on_first_use=True)


def test_an_organisation_may_allow_trust_and_then_remembers(small, tmp_path):
    scene = Scene(tmp_path, small, pinned=False)
    for name in scene.names:
        scene.add(name, "policy", "trust-on-first-use = true")
    with pytest.raises(RefusedError, match="is not pinned"):
        scene.run("h1", rounds=2)
    scene.run("h2", rounds=3, trust_on_first_use=True)
    cards, job = strange_roster(scene, "bank-02", trust_on_first_use=True)
    with pytest.raises(RefusedError, match="is pinned"):
        scene.ask(VICTIM, cards_request(job, "h1", cards), trust_on_first_use=True)


def hand_out(scene, marks):
    """Put a federation file of the coordinator's making into the victim's folder."""
    now = datetime.now(UTC)
    members = (FederationMember(name, mark, "", "") for name, mark in sorted(marks.items()))
    federation = Federation(
        "banks", VERSION, "1.41.0", ("localhost",), 9092, ("0.0.0.0", 9092), "", now, now, now,
        tuple(members),
    )  # fmt: skip
    (scene.folders[VICTIM] / FILE).write_text(federation.to_toml())


@pytest.mark.parametrize("name", ["bank-09", "bank-02"])
def test_who_pins_nobody_believes_the_file_of_the_coordinator(small, tmp_path, name):
    """This is what is left: the others of a federation file are whom its writer says they are."""
    scene, identity = Scene(tmp_path, small, pinned=False), Identity.generate()
    hand_out(scene, {**scene.marks, name: identity.fingerprint})
    cards, job = strange_roster(scene, name, identity)
    assert scene.ask(VICTIM, cards_request(job, "h1", cards))


@pytest.mark.parametrize(
    ("name", "reason"),
    [("bank-09", "has pinned 2 of the 3 other"), ("bank-02", "org.toml pins the fingerprint")],
)
def test_own_pins_hold_against_the_file_of_the_coordinator(small, tmp_path, name, reason):
    scene, identity = Scene(tmp_path, small), Identity.generate()
    scene.add(VICTIM, "policy", "least-pinned-partners = 3")
    hand_out(scene, {**scene.marks, name: identity.fingerprint})

    def begin():
        cards, job = strange_roster(scene, name, identity)
        scene.ask(VICTIM, cards_request(job, "h1", cards))

    with pytest.raises(RefusedError, match=reason):
        begin()
