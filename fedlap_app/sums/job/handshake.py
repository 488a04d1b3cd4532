"""A member's part of the handshake: keys, edges and layouts, agreed with every other member."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.store.packing import Data, pack, pack_named, unpack, unpack_named
from fedlap_app.sums.edgecheck import EdgeComparison, EdgeHashes
from fedlap_app.sums.header import Place
from fedlap_app.sums.job.agreement import Agreement, Senders, Target
from fedlap_app.sums.job.borders import Border, borders_of, boundary_of, no_border
from fedlap_app.sums.job.spec import OfflineSpec
from fedlap_app.sums.kdf import derive
from fedlap_app.sums.keyring import KeyRing, sum_seed
from fedlap_app.sums.layout import Layout, make_layout, read_shared, require_room, room_for

PAIR = Place("handshake", 0)
EDGES = Place("handshake", 1)
_OVERHEAD = 512

Messages = Mapping[str, list[memoryview]]


@dataclass(frozen=True, eq=False)
class Handshake:
    """One member in the handshake of one job; what is drawn anew for it is stored with it.

    `contribution` is the member's part of the group key, `public_key` that of its block sums, empty
    when the back end needs none; `digests` keeps what took long to compute, for the next message.
    """

    subgraph: Subgraph
    spec: OfflineSpec
    job_secret: bytes
    keys: KeyRing
    leader: str
    contribution: bytes
    public_key: bytes = b""
    digests: dict[str, bytes] = field(default_factory=dict)

    def pack(self) -> bytes:
        """What a new process needs to go on, for the member's own store only."""
        return pack(
            self.job_secret,
            self.keys.dump(),
            self.leader.encode(),
            self.contribution,
            self.public_key,
            pack_named(self.digests),
        )

    @classmethod
    def unpack(cls, data: Data, subgraph: Subgraph, spec: OfflineSpec) -> "Handshake":
        """Read what `pack` gave."""
        secret, keys, leader, contribution, public, digests = unpack(data, 6)
        return cls(
            subgraph=subgraph,
            spec=spec,
            job_secret=bytes(secret),
            keys=KeyRing.load(bytes(keys)),
            leader=bytes(leader).decode(),
            contribution=bytes(contribution),
            public_key=bytes(public),
            digests={name: bytes(value) for name, value in unpack_named(digests).items()},
        )

    @cached_property
    def _borders(self) -> dict[str, Border]:
        return borders_of(self.subgraph) if self.spec.program.edges else {}

    @cached_property
    def _layout(self) -> Layout:
        """Slots of the own rows by a permutation that nobody else can know."""
        key = int.from_bytes(derive(self.job_secret, "layout", length=16), "little")
        boundary = boundary_of(self.subgraph) if self.spec.layout == "boundary" else None
        if not self.spec.program.edges:
            boundary = np.zeros(self.subgraph.num_nodes, dtype=bool)
        rows = self.subgraph.num_nodes if boundary is None else int(boundary.sum())
        return make_layout(
            self.subgraph.num_nodes,
            np.random.Generator(np.random.Philox(key=key)),
            boundary=boundary,
            columns=self.spec.program.width,
            multiple=self.spec.multiple(rows),
            spare=self.spec.facts.spare,
        )

    @cached_property
    def _unheard(self) -> NDArray[np.bool_] | None:
        return self.spec.program.unheard(self.subgraph)

    @property
    def peers(self) -> tuple[str, ...]:
        """All other members."""
        return tuple(name for name in self.keys.members if name != self.keys.me)

    @cached_property
    def shared(self) -> int:
        """Own nodes whose slots peers are told, each as often as it is told."""
        return sum(border.own.size for border in self._borders.values())

    @cached_property
    def foreign(self) -> int:
        """Foreign nodes whose slots the peers tell."""
        return sum(border.foreign.size for border in self._borders.values())

    def edges_with(self, peers: Sequence[str]) -> int:
        """Edges that are shared with some peers."""
        return sum(self._border(peer).edges.shape[1] for peer in peers)

    def absent(self) -> list[str]:
        """Partners that take no part in the job."""
        return sorted(set(self._borders) - set(self.keys.members))

    def require_partners(self) -> None:
        """Refuse to go on without an organisation that holds an end of an own edge."""
        count = len(self.absent())
        if count:
            raise RunError(
                f"{count} of the organisations that it shares edges with take no part in the run; "
                "a file in its store names them: start again with all, or drop those edges"
            )

    def partners(self) -> tuple[str, ...]:
        """Members with whom there are edges; told to all only when the topology is shown."""
        return tuple(sorted(self._borders))

    def pair_messages(self) -> dict[str, Data]:
        """A sealed message for every peer, all of one length."""
        # The number of slots is public, and no pair shares more nodes than there are slots.
        size = _OVERHEAD + room_for(self._layout.frame.slots) + len(self.public_key)
        sealed: dict[str, Data] = {}
        for peer in self.peers:
            border = self._border(peer)
            content = pack(
                self.contribution,
                self._digest(peer),
                self._layout.share(border.own, self._unheard),
                self.public_key,
            )
            sealed[peer] = self.keys.outbox(peer).seal(content, PAIR, pad_to=size)
        return sealed

    def _border(self, peer: str) -> Border:
        return self._borders.get(peer) or no_border(peer)

    def _hashes(self, peer: str) -> EdgeHashes:
        return self._border(peer).hashes(self.keys.pair_secret(peer, "edges"), self.subgraph)

    def _digest(self, peer: str) -> bytes:
        """Digest of the edges shared with a peer; `digests` keeps it."""
        if peer not in self.digests:
            key = self.keys.pair_secret(peer, "edge list")
            self.digests[peer] = self._border(peer).digest(key, self.subgraph)
        return self.digests[peer]

    def open(self, sealed: Mapping[str, Data]) -> Messages:
        """Messages of all peers, opened."""
        if set(sealed) != set(self.peers):
            raise ProtocolError(
                f"Messages from {len(sealed)} members came where {len(self.peers)} were expected; "
                "start the handshake again."
            )
        opened = {
            peer: unpack(self.keys.inbox(peer).open(bytes(data), PAIR), 4)
            for peer, data in sealed.items()
        }
        for peer, message in opened.items():
            require_room(bytes(message[2]), len(sealed[peer]))
            if len(message[3]) != len(self.public_key):
                raise ProtocolError(
                    f"{peer!r} gives a public key of {len(message[3])} bytes where "
                    f"{len(self.public_key)} were expected; all members must use one profile."
                )
        return opened

    def differing(self, opened: Messages) -> list[str]:
        """Peers whose list of shared edges is not the own one."""
        return [p for p in self.peers if bytes(opened[p][1]) != self._digest(p)]

    def edge_hashes(self, peers: list[str]) -> dict[str, Data]:
        """Hashes of all edges shared with some peers, sealed for them."""
        return {
            peer: self.keys.outbox(peer).seal(self._hashes(peer).hashes(), EDGES) for peer in peers
        }

    def compare(self, sealed: Mapping[str, Data]) -> dict[str, tuple[EdgeComparison, Border]]:
        """Compare the own edges with the hashes of peers."""
        return {
            peer: (
                self._hashes(peer).compare(self.keys.inbox(peer).open(bytes(data), EDGES)),
                self._border(peer),
            )
            for peer, data in sealed.items()
        }

    def agree(self, opened: Messages, senders: Senders | None) -> Agreement:
        """Make the group key and read the layouts; the edges were compared before."""
        parts = {peer: bytes(message[0]) for peer, message in opened.items()}
        parts[self.keys.me] = self.contribution
        self._check_senders(senders)
        targets = {}
        for peer in self.peers:
            positions = self._border(peer).foreign
            frame, slots = read_shared(
                bytes(opened[peer][2]), positions.size, unheard=self._unheard is not None
            )
            told = slots >= 0
            targets[peer] = Target(frame, positions[told], slots[told])
        public = {peer: bytes(message[3]) for peer, message in opened.items()}
        keys = self.keys.with_group_key(parts)
        return Agreement(
            keys=keys.with_sum_keys(
                sum_seed(self.job_secret), {**public, self.keys.me: self.public_key}
            ),
            leader=self.leader,
            senders=senders,
            layout=self._layout,
            targets=targets,
        )

    def _check_senders(self, senders: Senders | None) -> None:
        """Refuse a list of senders that is not what this member knows."""
        if self.spec.hide_topology != (senders is None):
            raise ProtocolError(
                "The server shows who sends to whom against the settings, or hides it; "
                "start the run again."
            )
        if senders is None:
            return
        mine = {peer for peer, some in senders.items() if self.keys.me in some}
        if mine != set(self.partners()) or set(senders.get(self.keys.me, ())) != mine:
            raise ProtocolError(
                f"The list of senders does not fit the edges of {self.keys.me!r}; start again."
            )


def pack_senders(senders: Senders | None) -> bytes:
    """List of senders of each recipient; empty when it is hidden."""
    if senders is None:
        return b""
    return json.dumps({name: list(some) for name, some in sorted(senders.items())}).encode()


def unpack_senders(data: Data) -> Senders | None:
    """Read what `pack_senders` wrote."""
    if not len(data):
        return None
    try:
        found = {name: tuple(some) for name, some in json.loads(bytes(data)).items()}
        if pack_senders(found) != data:
            raise ValueError
        return found
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise ProtocolError("The list of senders cannot be read; start the run again.") from None
