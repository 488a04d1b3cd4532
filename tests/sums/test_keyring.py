import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.card import issue_card, new_job_secret, verify_cards
from fedlap_app.sums.header import Place
from fedlap_app.sums.identity import Identity
from fedlap_app.sums.keyring import KeyRing, group_contribution

NAMES = ("a", "b", "c", "d")
PLACE = Place("handshake")


def handshake(names=NAMES, settings="00" * 32):
    people = {name: Identity.generate() for name in names}
    secrets = {name: new_job_secret() for name in names}
    cards = {n: issue_card(people[n], n, secrets[n], settings) for n in names}
    pins = {name: identity.fingerprint for name, identity in people.items()}
    rosters = {n: verify_cards(list(cards.values()), mine=cards[n], pins=pins) for n in names}
    rings = {n: KeyRing.agree(people[n], n, secrets[n], rosters[n]) for n in names}
    return rings, secrets


def with_group_key(rings, secrets):
    """Send every contribution through the pair channels."""
    done = {}
    for me, ring in rings.items():
        parts = {me: group_contribution(secrets[me], ring.job)}
        for peer in ring.roots:
            sent = rings[peer].outbox(me).seal(group_contribution(secrets[peer], ring.job), PLACE)
            parts[peer] = ring.inbox(peer).open(sent, PLACE)
        done[me] = ring.with_group_key(parts)
    return done


def test_both_ends_of_a_pair_agree_and_no_two_pairs_do():
    rings, _ = handshake()
    roots = {}
    for me in NAMES:
        for peer in rings[me].roots:
            assert rings[me].roots[peer] == rings[peer].roots[me]
            roots[frozenset((me, peer))] = rings[me].roots[peer]
    assert len(set(roots.values())) == 6


def test_all_members_make_one_group_key():
    rings = with_group_key(*handshake())
    assert len({ring.group_key for ring in rings.values()}) == 1
    assert len({ring.key_id for ring in rings.values()}) == 1
    assert bytes.fromhex(rings["a"].key_id) not in rings["a"].group_key


def test_a_new_job_of_the_same_people_has_new_keys():
    first, second = with_group_key(*handshake()), with_group_key(*handshake())
    assert first["a"].roots["b"] != second["a"].roots["b"]
    assert first["a"].key_id != second["a"].key_id


def test_an_old_card_replayed_to_one_member_gives_no_common_key():
    people = {name: Identity.generate() for name in NAMES}
    secrets = {name: new_job_secret() for name in NAMES}
    cards = {n: issue_card(people[n], n, secrets[n], "00" * 32) for n in NAMES}
    stale = cards | {"a": issue_card(people["a"], "a", new_job_secret(), "00" * 32)}
    pins = {name: identity.fingerprint for name, identity in people.items()}
    seen = {"a": cards, "b": stale}
    ring = {
        n: KeyRing.agree(
            people[n],
            n,
            secrets[n],
            verify_cards(list(seen[n].values()), mine=cards[n], pins=pins),
        )
        for n in seen
    }
    assert ring["a"].job != ring["b"].job
    assert ring["a"].roots["b"] != ring["b"].roots["a"]
    with pytest.raises(ProtocolError, match="misrouted"):
        ring["b"].inbox("a").open(ring["a"].outbox("b").seal(b"hello", PLACE), PLACE)


def test_everything_in_the_transcript_changes_the_key_of_a_pair():
    people = {name: Identity.generate() for name in NAMES}
    secrets = {name: new_job_secret() for name in NAMES}

    def root(names, settings):
        cards = {n: issue_card(people[n], n, secrets[n], settings) for n in names}
        roster = verify_cards(
            list(cards.values()), mine=cards["a"], pins={}, trust_on_first_use=True
        )
        return KeyRing.agree(people["a"], "a", secrets["a"], roster).roots["b"]

    roots = [root(NAMES, "00" * 32), root(NAMES[:3], "00" * 32), root(NAMES, "01" * 32)]
    assert len(set(roots)) == 3
    assert root(NAMES, "00" * 32) == roots[0]


@pytest.mark.parametrize("change", ["missing", "short", "foreign"])
def test_a_group_key_needs_a_part_of_everyone(change):
    rings, secrets = handshake()
    parts = {name: group_contribution(secrets[name], "") for name in NAMES}
    if change == "missing":
        del parts["d"]
    elif change == "short":
        parts["d"] = parts["d"][:16]
    else:
        parts["e"] = bytes(32)
    with pytest.raises(ProtocolError, match="32 bytes from each"):
        rings["a"].with_group_key(parts)


def test_without_a_group_key_nothing_is_derived_from_it():
    rings, _ = handshake()
    with pytest.raises(ProtocolError, match="no group key"):
        rings["a"].group_secret("anything")


def test_no_key_is_shared_with_a_stranger():
    rings, _ = handshake()
    with pytest.raises(ProtocolError, match="shares no key with 'z'"):
        rings["a"].pair_secret("z", "anything")


def test_stored_keys_come_back():
    ring = with_group_key(*handshake())["b"]
    assert KeyRing.load(ring.dump()) == ring
    with pytest.raises(ProtocolError, match="unknown form"):
        KeyRing.load(b"")


def test_keys_do_not_print():
    ring = with_group_key(*handshake())["b"]
    assert repr(ring.group_key) not in repr(ring)
    assert "roots" not in repr(ring)


def test_a_broadcast_opens_for_every_member_and_names_its_sender():
    rings = with_group_key(*handshake())
    sealed = rings["a"].broadcast("a").seal(b"to all", PLACE)
    assert all(ring.broadcast("a").open(sealed, PLACE) == b"to all" for ring in rings.values())
    with pytest.raises(ProtocolError, match="misrouted"):
        rings["b"].broadcast("c").open(sealed, PLACE)
