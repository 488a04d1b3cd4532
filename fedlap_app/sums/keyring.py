"""The secrets that one member holds for one job: a key with each other member and the group key.

Both come out of the handshake and neither ever reaches the server. The key of a pair is HKDF over
three X25519 agreements (ephemeral with ephemeral, and each static key with the other's ephemeral
one), salted with a transcript of job id, member-list hash, settings hash and both cards: members
that do not agree on all of it get different keys, and nothing opens. The group key is derived from
a contribution of every member, drawn anew for every handshake and sent in the pair channels, so
that no single one chooses it. It enters the keys of all pads: a member that begins again, from
whatever state of its store, draws other pads.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.card import Card, Roster, ephemeral_key
from fedlap_app.sums.channel import Channel
from fedlap_app.sums.identity import AgreementKey, Identity
from fedlap_app.sums.kdf import decode, derive, digest, encode, hkdf


def pair_root(
    static: AgreementKey, ephemeral: AgreementKey, roster: Roster, mine: Card, peer: Card
) -> bytes:
    """Key that this member and one peer share for the job of the roster."""
    mine_static = static.agree(peer.ephemeral)
    peer_static = ephemeral.agree(peer.agreement)
    first, second = sorted((mine, peer), key=lambda card: card.name)
    crossed = (mine_static, peer_static) if first is mine else (peer_static, mine_static)
    transcript = digest(
        "pair", roster.job, roster.members_hash, roster.settings, first.packed, second.packed
    )
    shared = ephemeral.agree(peer.ephemeral) + crossed[0] + crossed[1]
    return hkdf(shared, transcript, encode("fedlap/1", "pair root"))


def group_contribution(job_secret: bytes, job: str) -> bytes:
    """Part of the group key that a simulated member gives; others draw theirs."""
    return derive(job_secret, "group contribution", job)


def sum_seed(job_secret: bytes) -> bytes:
    """What the key of a member's block sums is made of."""
    return derive(job_secret, "sum key")


@dataclass(frozen=True)
class KeyRing:
    """Keys of the member `me` for one job; `group_key` is empty until all have contributed.

    `sum_seed` is what the own key for sums is made of, `public_keys` what all members have given
    for theirs; both are empty for back ends that need none.
    """

    me: str
    members: tuple[str, ...]
    job: str
    members_hash: str
    roots: Mapping[str, bytes] = field(repr=False)
    group_key: bytes = field(default=b"", repr=False)
    sum_seed: bytes = field(default=b"", repr=False)
    public_keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @classmethod
    def agree(cls, identity: Identity, name: str, job_secret: bytes, roster: Roster) -> "KeyRing":
        """Agree on a key with every other member of the roster."""
        mine = roster.card(name)
        static = AgreementKey(identity.agreement_key)
        ephemeral = AgreementKey(ephemeral_key(job_secret))
        roots = {
            card.name: pair_root(static, ephemeral, roster, mine, card)
            for card in roster.cards
            if card.name != name
        }
        return cls(name, roster.names, roster.job, roster.members_hash, roots)

    def with_group_key(self, contributions: Mapping[str, bytes]) -> "KeyRing":
        """Give the key ring with the group key made from the contributions of all members."""
        if set(contributions) != set(self.members) or any(
            len(part) != 32 for part in contributions.values()
        ):
            raise ProtocolError(
                f"The group key needs 32 bytes from each of {', '.join(self.members)}, "
                f"but parts came from {', '.join(sorted(contributions))}; repeat the handshake."
            )
        parts = [part for name in self.members for part in (name, contributions[name])]
        key = derive(encode(*parts), "group key", self.job, self.members_hash)
        return replace(self, group_key=key)

    def with_sum_keys(self, seed: bytes, public_keys: Mapping[str, bytes]) -> "KeyRing":
        """Give the key ring with the keys of block sums, if all members have one."""
        if not any(public_keys.values()):
            return self
        return replace(self, sum_seed=seed, public_keys=public_keys)

    @cached_property
    def key_id(self) -> str:
        """Public name of the group key: says nothing about it."""
        return self.group_secret("key id")[:8].hex()

    @cached_property
    def sum_key_ids(self) -> dict[str, str]:
        """Public names of the keys of the members' block sums; the group's where there are none."""
        return {
            name: digest("sum key id", key)[:8].hex() if key else self.key_id
            for name, key in {**dict.fromkeys(self.members, b""), **self.public_keys}.items()
        }

    def pair_key_id(self, peer: str) -> str:
        """Public name of the key that is shared with a peer."""
        return self.pair_secret(peer, "key id")[:8].hex()

    def pair_secret(self, peer: str, purpose: str) -> bytes:
        """Key for one purpose that only this member and the peer can derive."""
        return derive(self._root(peer), purpose, self.job)

    def pad_secret(self, peer: str, purpose: str) -> bytes:
        """Key of pads shared with a peer, or by the group ("")."""
        drawn = self.group_secret(purpose)
        return derive(self._root(peer), purpose, self.job, drawn) if peer else drawn

    def _root(self, peer: str) -> bytes:
        if peer not in self.roots:
            raise ProtocolError(
                f"{self.me!r} shares no key with {peer!r}; the members of this job are "
                f"{', '.join(self.members)}."
            )
        return self.roots[peer]

    def group_secret(self, purpose: str) -> bytes:
        """Key for one purpose that every member can derive, and nobody else."""
        if not self.group_key:
            raise ProtocolError("There is no group key yet; finish the handshake first.")
        return derive(self.group_key, purpose, self.job)

    def outbox(self, peer: str) -> Channel:
        """Channel from this member to a peer."""
        return Channel(self._root(peer), self.job, self.me, peer)

    def inbox(self, peer: str) -> Channel:
        """Channel from a peer to this member."""
        return Channel(self._root(peer), self.job, peer, self.me)

    def broadcast(self, sender: str) -> Channel:
        """Channel from one member to all: one text for everyone under the group key."""
        return Channel(self.group_secret("broadcast"), self.job, sender, "")

    def dump(self) -> bytes:
        """All keys in the clear, for the member's own protected store only."""
        pairs = [part for peer in self.roots for part in (peer, self.roots[peer])]
        public = [part for pair in self.public_keys.items() for part in pair]
        return encode(
            "fedlap keyring 2",
            self.me,
            self.job,
            self.members_hash,
            self.group_key,
            encode(*self.members),
            encode(*pairs),
            self.sum_seed,
            encode(*public),
        )

    @classmethod
    def load(cls, data: bytes) -> "KeyRing":
        """Read what `dump` wrote."""
        parts = list(decode(data))
        if len(parts) != 9 or parts[0] != b"fedlap keyring 2":
            raise ProtocolError("The stored keys have an unknown form; start a new job.")
        me, job, members_hash = (part.decode() for part in parts[1:4])
        members = tuple(name.decode() for name in decode(parts[5]))
        roots, public = (_read_named(part) for part in (parts[6], parts[8]))
        return cls(me, members, job, members_hash, roots, parts[4], parts[7], public)


def _read_named(data: bytes) -> dict[str, bytes]:
    pairs = list(decode(data))
    return {name.decode(): key for name, key in zip(pairs[::2], pairs[1::2], strict=True)}
