import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.card import issue_card, new_job_secret, read_card, verify_cards
from fedlap_app.sums.identity import Identity
from fedlap_app.sums.kdf import decode, encode

NAMES = ("bank-a", "bank-b", "bank-c")
SETTINGS = "5e" * 32


@pytest.fixture
def people():
    return {name: Identity.generate() for name in NAMES}


@pytest.fixture
def cards(people):
    return {n: issue_card(people[n], n, new_job_secret(), SETTINGS) for n in NAMES}


@pytest.fixture
def pins(people):
    return {name: identity.fingerprint for name, identity in people.items()}


def verify(cards, pins, **options):
    return verify_cards(list(cards.values()), mine=cards["bank-a"], pins=pins, **options)


def test_everyone_gets_the_same_roster(cards, pins, people):
    roster = verify(cards, pins, expected=NAMES)
    backwards = verify_cards(list(cards.values())[::-1], mine=cards["bank-c"], pins=pins)
    assert roster.names == NAMES
    assert (roster.job, roster.members_hash) == (backwards.job, backwards.members_hash)
    assert roster.leader == min(NAMES, key=lambda name: people[name].fingerprint)
    assert roster.fingerprints == pins


def test_a_new_nonce_makes_a_new_job_with_the_same_members(cards, pins, people):
    before = verify(cards, pins)
    cards["bank-b"] = issue_card(people["bank-b"], "bank-b", new_job_secret(), SETTINGS)
    after = verify(cards, pins)
    assert before.job != after.job
    assert before.members_hash == after.members_hash


def test_every_flipped_byte_of_a_card_is_found(cards):
    good = cards["bank-b"]
    for position in range(len(good)):
        bad = bytearray(good)
        bad[position] ^= 1
        with pytest.raises(ProtocolError):
            read_card(bytes(bad))


def test_a_card_signed_by_someone_else_is_refused(cards, people):
    body, _ = decode(cards["bank-b"])
    forged = encode(body, people["bank-c"].sign(body))
    with pytest.raises(ProtocolError, match="wrong signature"):
        read_card(forged)


def test_an_unpinned_member_is_refused_unless_trusted_on_first_use(cards, pins):
    del pins["bank-c"]
    with pytest.raises(ProtocolError, match=r"bank-c.*not pinned"):
        verify(cards, pins)
    assert "bank-c" in verify(cards, pins, trust_on_first_use=True).fingerprints


def test_another_fingerprint_than_pinned_is_refused_even_with_trust(cards, pins):
    cards["bank-c"] = issue_card(Identity.generate(), "bank-c", new_job_secret(), SETTINGS)
    with pytest.raises(ProtocolError, match="is pinned"):
        verify(cards, pins, trust_on_first_use=True)


def test_my_own_card_must_be_unchanged(cards, pins, people):
    mine = cards["bank-a"]
    cards["bank-a"] = issue_card(people["bank-a"], "bank-a", new_job_secret(), SETTINGS)
    with pytest.raises(ProtocolError, match="own card"):
        verify_cards(list(cards.values()), mine=mine, pins=pins)


def test_other_settings_are_refused_by_name(cards, pins, people):
    cards["bank-b"] = issue_card(people["bank-b"], "bank-b", new_job_secret(), "00" * 32)
    with pytest.raises(ProtocolError, match=r"bank-b.*other settings"):
        verify(cards, pins)


def test_missing_doubled_and_cloned_members_are_refused(cards, pins, people):
    with pytest.raises(ProtocolError, match="were expected"):
        verify(cards, pins, expected=(*NAMES, "bank-d"))
    twice = [*cards.values(), cards["bank-b"]]
    with pytest.raises(ProtocolError, match="same name"):
        verify_cards(twice, mine=cards["bank-a"], pins=pins)
    cards["bank-d"] = issue_card(people["bank-b"], "bank-d", new_job_secret(), SETTINGS)
    with pytest.raises(ProtocolError, match="same identity"):
        verify(cards, pins, trust_on_first_use=True)
