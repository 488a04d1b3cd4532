"""Signed public cards: how members introduce themselves to each other through the server.

A card carries an organisation's name, its two long-term public keys, and for this job a nonce, an
ephemeral X25519 key and hashes of the settings: of those that decide the sums, and of all. The
server passes cards on and may alter, swap or withhold them: the signature finds the first, pinned
fingerprints the second, and everyone compares the list of names with its own for the third. A card
of an earlier job is of no use to the server, since it has the private half of no ephemeral key.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fedlap_app.errors import DataError, ProtocolError
from fedlap_app.graphs.checks import check_name
from fedlap_app.graphs.lookalikes import alike
from fedlap_app.sums.identity import AgreementKey, Identity, fingerprint, is_signed
from fedlap_app.sums.kdf import decode, derive, digest, encode

_DOMAIN = "fedlap card 2"
_HASH_BYTES = 16


def new_job_secret() -> bytes:
    """Draw the secret that a member keeps for one job and never uses for another."""
    return os.urandom(32)


def ephemeral_key(job_secret: bytes) -> bytes:
    """Raw X25519 private key of a member for one job."""
    return derive(job_secret, "ephemeral key")


@dataclass(frozen=True)
class Card:
    """What a member shows of itself for one job."""

    name: str
    signing: bytes
    agreement: bytes
    ephemeral: bytes
    nonce: bytes
    settings: str
    run: str = ""

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the long-term keys."""
        return fingerprint(self.signing, self.agreement)

    @cached_property
    def packed(self) -> bytes:
        """Bytes that are signed."""
        return encode(
            _DOMAIN,
            self.name,
            self.signing,
            self.agreement,
            self.ephemeral,
            self.nonce,
            self.settings,
            self.run,
        )


def issue_card(
    identity: Identity, name: str, job_secret: bytes, settings: str, run: str = ""
) -> bytes:
    """Make and sign the card of a member.

    Parameters
    ----------
    identity : Identity
        Long-term keys.
    name : str
        Name of the organisation.
    job_secret : bytes
        From `new_job_secret`; in simulation derived from the seed.
    settings : str
        Hash of the settings that decide the sums, in hexadecimal.
    run : str
        Hash of all settings of the run (default: none).
    """
    card = Card(
        name=name,
        signing=identity.signing_public,
        agreement=identity.agreement_public,
        ephemeral=AgreementKey(ephemeral_key(job_secret)).public,
        nonce=derive(job_secret, "job nonce", length=16),
        settings=settings,
        run=run,
    )
    body = card.packed
    return encode(body, identity.sign(body))


def read_card(data: bytes) -> Card:
    """Read a card and check its signature."""
    card, body, signature = _parse(data)
    if not is_signed(card.signing, signature, body):
        raise ProtocolError(
            f"The card of {card.name!r} has a wrong signature; it was altered on its way, "
            "start again."
        )
    return card


def _parse(data: bytes) -> tuple[Card, bytes, bytes]:
    """A card, its bytes and their signature, which is not checked."""
    parts = list(decode(data))
    fields = list(decode(parts[0])) if len(parts) == 2 else []
    if len(fields) != 8 or fields[0] != _DOMAIN.encode():
        raise ProtocolError(
            f"A card of {len(data)} bytes has an unknown form; let every member run one version."
        )
    try:
        name, settings, run = (fields[at].decode() for at in (1, 6, 7))
    except UnicodeDecodeError as error:
        raise ProtocolError("The name on a card is not UTF-8; ask for a new card.") from error
    signing, agreement, ephemeral, nonce = fields[2:6]
    card = Card(name, signing, agreement, ephemeral, nonce, settings, run)
    return card, parts[0], parts[1]


@dataclass(frozen=True)
class Roster:
    """The verified members of one job, sorted by name."""

    cards: tuple[Card, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all members, sorted."""
        return tuple(card.name for card in self.cards)

    @property
    def settings(self) -> str:
        """Hash of the settings that all members share."""
        return self.cards[0].settings

    @cached_property
    def members_hash(self) -> str:
        """Hash of all names and fingerprints."""
        pairs = [part for card in self.cards for part in (card.name, card.fingerprint)]
        return digest("members", *pairs)[:_HASH_BYTES].hex()

    @cached_property
    def job(self) -> str:
        """Id of the job: a hash of all cards, so of settings, members and everyone's nonce."""
        return digest("job", *(card.packed for card in self.cards))[:_HASH_BYTES].hex()

    @property
    def leader(self) -> str:
        """Member with the lowest fingerprint: it decides where one has to."""
        return min(self.cards, key=lambda card: card.fingerprint).name

    @property
    def fingerprints(self) -> dict[str, str]:
        """Fingerprint of each member, to be remembered after trust on first use."""
        return {card.name: card.fingerprint for card in self.cards}

    def card(self, name: str) -> Card:
        """Card of one member."""
        return self.cards[self.names.index(name)]


def verify_cards(
    cards: Sequence[bytes],
    *,
    mine: bytes,
    expected: Sequence[str] | None = None,
    pins: Mapping[str, str],
    trust_on_first_use: bool = False,
) -> Roster:
    """Check the cards that the server handed out and give the members of the job.

    Parameters
    ----------
    cards : sequence of bytes
        Cards of all members, in any order.
    mine : bytes
        The card that this member issued: it must be among them, unchanged.
    expected : sequence of str, optional
        Names that must take part, no more and no less (default: whoever is there).
    pins : mapping of str to str
        Fingerprints known from before, by name.
    trust_on_first_use : bool
        Accept members without a pin (default: False); remember `Roster.fingerprints` then.
    """
    if mine not in cards:
        raise ProtocolError("My own card is not among those handed out; start a new job.")
    # Who made a card need not check its own signature.
    own = _parse(mine)[0]
    others = (read_card(data) for data in cards if data != mine)
    copies = (own for data in cards if data == mine)
    roster = Roster(tuple(sorted((*copies, *others), key=lambda card: card.name)))
    names = roster.names
    for what, seen in (("name", names), ("identity", tuple(roster.fingerprints.values()))):
        if len(set(seen)) != len(names):
            raise ProtocolError(f"Two members have the same {what}; each needs its own.")
    _check_names(names)
    if expected is not None and names != tuple(sorted(expected)):
        raise ProtocolError(
            f"The members are {', '.join(names)}, but {', '.join(sorted(expected))} were expected; "
            "start again when all take part."
        )
    for card in roster.cards:
        _check_member(card, own, pins, trust_on_first_use)
    return roster


def _check_names(names: Sequence[str]) -> None:
    """Refuse names that cannot name a folder, and two that people take for one."""
    try:
        for name in names:
            check_name(name)
    except DataError as error:
        raise ProtocolError(f"A card is refused: {error}") from None
    if pair := alike(names):
        raise ProtocolError(
            f"The members {pair[0]!r} and {pair[1]!r} look alike; one of them takes another name."
        )


def _check_member(card: Card, own: Card, pins: Mapping[str, str], trust: bool) -> None:
    """Refuse a member with other settings, another fingerprint than pinned, or none pinned."""
    if (card.settings, card.run) != (own.settings, own.run):
        raise ProtocolError(
            f"{card.name!r} runs other settings than {own.name!r}; give every member the same."
        )
    if card.name == own.name:
        return
    pin = pins.get(card.name)
    if pin is None and not trust:
        raise ProtocolError(
            f"The fingerprint {card.fingerprint} of {card.name!r} is not pinned; compare it with "
            "its owner and pin it in [peers] of org.toml; trust on first use needs [policy] there "
            "to allow it."
        )
    if pin is not None and pin != card.fingerprint:
        raise ProtocolError(
            f"{card.name!r} shows the fingerprint {card.fingerprint}, but {pin} is pinned; "
            "somebody may sit in between, ask its owner."
        )
