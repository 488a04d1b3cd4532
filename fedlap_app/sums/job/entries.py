"""What each step of the offline phase enters into the ledger of the job."""

from collections.abc import Iterator, Sequence

from fedlap_app.privacy.ledger import (
    MEMBERS,
    NOBODY,
    RECEIVED,
    RECIPIENT,
    SELF,
    SENT,
    SERVER,
    Entry,
)
from fedlap_app.sums.ckks.profiles import is_padded
from fedlap_app.sums.job.handshake import Handshake
from fedlap_app.sums.job.iteration import Iteration, Sent

CARDS = "cards"
SOLUTION = "leader's solution"
_TOGETHER = "recipient and server together"


def of_cards(handshake: Handshake, shown: int) -> Iterator[Entry]:
    """Cards, and what the reply to them carries for each peer."""
    peers = len(handshake.peers)
    yield Entry(SENT, CARDS, (SERVER, MEMBERS), messages=1, values=1)
    yield Entry(RECEIVED, CARDS, (SERVER, MEMBERS), messages=1, values=peers)
    if shown:
        yield Entry(SENT, "names of partners", (SERVER, MEMBERS), messages=1, values=shown)
    yield from _sealed_for_pairs(handshake, SENT, RECIPIENT, handshake.shared)


def of_pairs(handshake: Handshake) -> Iterator[Entry]:
    """What the peers have sealed for this member."""
    yield from _sealed_for_pairs(handshake, RECEIVED, SELF, handshake.foreign)


def _sealed_for_pairs(handshake: Handshake, way: str, reader: str, slots: int) -> Iterator[Entry]:
    """What travels between all pairs in the handshake, under the keys of the pairs."""
    peers = len(handshake.peers)
    ids = tuple(map(handshake.keys.pair_key_id, handshake.peers))
    content = {"parts of the group key": peers, "edge check": peers, "slots of shared nodes": slots}
    if handshake.public_key:
        content["public keys of block sums"] = peers
    for kind, values in content.items():
        yield Entry(way, kind, (reader,), (), ids, peers, values)


def of_hashes(handshake: Handshake, peers: Sequence[str]) -> Iterator[Entry]:
    """Hashes of single edges, for peers whose lists differ."""
    ids = tuple(map(handshake.keys.pair_key_id, peers))
    values = handshake.edges_with(peers)
    yield Entry(SENT, "hashes of edges", (RECIPIENT,), (), ids, len(peers), values)


def of_sums(iteration: Iteration, opened: Sent) -> Iterator[Entry]:
    """The sums that a request brought, before they are taken in."""
    program, kind = iteration.spec.program, iteration.half.small_kind
    keys, plain = iteration.agreement.keys, not iteration.spec.facts.sealed
    also = (SERVER,) if plain else ()
    ids = () if plain else (keys.key_id,)
    yield Entry(RECEIVED, kind, (MEMBERS, *also), (), ids, 1, opened.small)
    values = iteration.received_values(opened.width)
    if values:
        me, backend = iteration.me, iteration.backend
        each = (backend.block_key(name, me) for name in backend.senders(me))
        own = () if plain else tuple(dict.fromkeys(each))
        yield Entry(RECEIVED, program.block_sums, (SELF, *also), (), own, 1, values)


def of_contribution(iteration: Iteration) -> Iterator[Entry]:
    """What a reply contributes to the small sum and to block sums."""
    sent, keys, spec = iteration.sent, iteration.agreement.keys, iteration.spec
    kind, blocks = iteration.half.small_kind, spec.program.blocks
    values, count = iteration.sent_values(sent.width), len(iteration.recipients)
    if not spec.facts.sealed:
        yield Entry(SENT, kind, (SERVER,), (MEMBERS, SERVER), (), 1, sent.small)
        if values:
            yield Entry(SENT, blocks, (SERVER,), (RECIPIENT, SERVER), (), count, values)
        return
    alone = (MEMBERS,) if len(keys.members) == 2 else (NOBODY,)
    yield Entry(SENT, kind, alone, (MEMBERS,), (keys.key_id,), 1, sent.small)
    if not values:
        return
    if iteration.lone_sender:
        alone = (RECIPIENT,)
    elif not is_padded(spec.profile):
        alone = (_TOGETHER,)
    each = (iteration.backend.block_key(iteration.me, name) for name in iteration.recipients)
    ids = tuple(dict.fromkeys(each))
    yield Entry(SENT, blocks, alone, (RECIPIENT,), ids, count, values)


def of_lead(iteration: Iteration) -> Iterator[Entry]:
    """The solution that the leader sends."""
    if iteration.me == iteration.agreement.leader:
        yield _solution(iteration, SENT)


def of_solution(iteration: Iteration) -> Iterator[Entry]:
    """The same, received by all."""
    yield _solution(iteration, RECEIVED)


def _solution(iteration: Iteration, way: str) -> Entry:
    key = iteration.agreement.keys.key_id
    return Entry(way, SOLUTION, (MEMBERS,), (), (key,), 1, iteration.half.solution_numbers)
