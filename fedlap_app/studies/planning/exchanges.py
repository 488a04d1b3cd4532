"""The exchanges of an offline phase, one after the other, as sizes."""

from collections.abc import Iterator
from dataclasses import dataclass

from fedlap_app.studies.planning import sizes
from fedlap_app.studies.planning.shape import Part, Shape
from fedlap_app.sums.job import messages
from fedlap_app.sums.job.handshake import pack_senders
from fedlap_app.sums.job.price import PRICE_BYTES
from fedlap_app.sums.job.secrets import simulated_secrets
from fedlap_app.sums.job.spec import OfflineSpec
from fedlap_app.sums.layout import Frame
from fedlap_app.sums.program import Footprint


@dataclass(frozen=True)
class Exchange:
    """One request to every member and its reply.

    Attributes
    ----------
    kind
        Kind of the request.
    common, own
        Bytes for all members, and for each one.
    reply
        Bytes of each member's reply.
    """

    kind: str
    common: int
    own: dict[str, int]
    reply: dict[str, int]


class Phase:
    """An offline phase as sizes.

    Parameters
    ----------
    spec
        Settings of the phase.
    shape
        Sizes of the federation.
    seed
        Of a simulation, where the leader follows from it; in a deployment anyone may lead.
    """

    def __init__(self, spec: OfflineSpec, shape: Shape, seed: int = 0) -> None:
        self.spec = spec
        self.shape = shape
        self.frames: dict[str, Frame] = {part.name: part.frame(spec) for part in shape.parts}
        self.senders = shape.senders(spec)
        self.leader = min(
            shape.names, key=lambda name: simulated_secrets(seed, name).identity.fingerprint
        )
        self.program = spec.program
        self.rounds = tuple(spec.program.schedule(shape.extent))

    def footprint(self, part: Part) -> Footprint:
        """What the program takes of a member besides."""
        return self.program.footprint(part.nodes, self.shape.extent)

    def recipients(self, sender: str) -> list[str]:
        """Whose block sums a member contributes to."""
        return [name for name in self.shape.names if sender in self.senders[name]]

    def exchanges(self) -> Iterator[Exchange]:
        """All exchanges, the handshake first."""
        yield from self._handshake()
        everyone = self.shape.names
        for number, done in enumerate(self.rounds):
            common = sizes.summed(self.spec, {"": done.small}, contributors=len(self.shape.parts))
            own = {name: self._block_sum(name, done.width) for name in everyone}
            if number + 1 < len(self.rounds):
                reply = {name: self._contribution(name, number + 1) for name in everyone}
            else:
                reply = self._after_last()
            yield Exchange(messages.SUMS, common, own, reply)
        if self.program.solution:
            yield self._share()

    def _after_last(self) -> dict[str, int]:
        """Replies to the last sums."""
        everyone = self.shape.names
        if not self.program.solution:
            return dict.fromkeys(everyone, sizes.packed([len(messages.DONE)]))
        reply = dict.fromkeys(everyone, sizes.packed([len(messages.WAITING)]))
        reply[self.leader] = sizes.packed((len(messages.SOLUTION), self._solution))
        return reply

    def _share(self) -> Exchange:
        """The leader's solution and the price, for all."""
        everyone = self.shape.names
        end = sizes.packed([len(messages.DONE)])
        return Exchange(
            messages.SHARE,
            self._solution,
            dict.fromkeys(everyone, PRICE_BYTES),
            dict.fromkeys(everyone, end),
        )

    def _handshake(self) -> Iterator[Exchange]:
        everyone = self.shape.names
        nothing = dict.fromkeys(everyone, 0)
        card = {name: sizes.card(name) for name in everyone}
        hello = {name: sizes.packed((card[name], 0, 0, 1)) for name in everyone}
        yield Exchange(messages.HELLO, sizes.HEX, nothing, hello)
        boxes = {
            sender: {
                peer: sizes.pair_message(self.spec, sender, peer, self.frames[sender].slots)
                for peer in everyone
                if peer != sender
            }
            for sender in everyone
        }
        shown = self.senders if not self.spec.hide_topology else dict.fromkeys(everyone, ())
        yield Exchange(
            messages.CARDS,
            sizes.packed((sizes.HEX, *card.values())),
            nothing,
            {
                name: sizes.packed(
                    (sizes.packed(len(p.encode()) for p in shown[name]), sizes.named(boxes[name]))
                )
                for name in everyone
            },
        )
        senders = None if self.spec.hide_topology else self.senders
        for_me = {
            name: {peer: boxes[peer][name] for peer in everyone if peer != name}
            for name in everyone
        }
        yield Exchange(
            messages.PAIRS,
            len(pack_senders(senders)),
            {name: sizes.named(for_me[name]) for name in everyone},
            {part.name: self._first(part) for part in self.shape.parts},
        )

    def _first(self, part: Part) -> int:
        """Bytes of a member's reply to the messages of the others."""
        if self.rounds:
            return self._contribution(part.name, 0)
        told = self.program.closing_bytes(part.nodes + part.external)
        return sizes.packed((len(messages.ROWS), told))

    @property
    def _solution(self) -> int:
        parts = self.program.solution_bytes(self.shape.extent)
        return sizes.solution(self.program.solution, self.leader, parts)

    def _contribution(self, sender: str, number: int) -> int:
        """Bytes of a member's reply with its contributions to a round."""
        this = self.rounds[number]
        lengths = {"": this.small}
        for name in self.recipients(sender) if this.width else []:
            lengths[name] = self.frames[name].length(this.width)
        sealed = sizes.summed(self.spec, lengths, sender=sender)
        return sizes.packed((len(messages.CONTRIBUTION), sealed))

    def _block_sum(self, recipient: str, width: int) -> int:
        if not width or not self.senders[recipient]:
            return 0
        length = self.frames[recipient].length(width)
        contributors = len(self.senders[recipient])
        return sizes.summed(self.spec, {recipient: length}, contributors=contributors)
