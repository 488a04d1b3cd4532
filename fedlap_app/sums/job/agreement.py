"""What a member knows after the handshake and needs until the end of the job."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedlap_app.store.packing import Data, pack, unpack
from fedlap_app.sums.keyring import KeyRing
from fedlap_app.sums.layout import Frame, Layout

Ints = NDArray[np.int64]
Senders = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Target:
    """Where this member's products for one other member go.

    Attributes
    ----------
    frame
        Shape of the other's layout.
    positions
        External nodes that the other owns.
    slots
        Their slots.
    """

    frame: Frame
    positions: Ints
    slots: Ints


@dataclass(frozen=True, eq=False)
class Agreement:
    """Keys, layouts and roles of one job.

    Attributes
    ----------
    keys
        Keys of the member.
    leader
        Who solves the small eigenproblem.
    senders
        Who sends to whom; None: everyone to everyone.
    layout
        The member's own layout.
    targets
        Where its products go, for every other member.
    """

    keys: KeyRing
    leader: str
    senders: Senders | None
    layout: Layout
    targets: Mapping[str, Target]

    def senders_of(self, recipient: str) -> tuple[str, ...]:
        """Who contributes to the block sums of a member."""
        if self.senders is not None:
            return self.senders[recipient]
        return tuple(name for name in self.keys.members if name != recipient)

    @cached_property
    def packed(self) -> bytes:
        """As bytes, for the member's own store only."""
        facts = {
            "leader": self.leader,
            "senders": None if self.senders is None else dict(self.senders),
            "frame": [self.layout.frame.slots, self.layout.frame.multiple],
            "frames": {
                name: [target.frame.slots, target.frame.multiple]
                for name, target in self.targets.items()
            },
        }
        arrays = [self.layout.slot_of]
        for target in self.targets.values():
            arrays += [target.positions, target.slots]
        contents = (array.astype("<i4").tobytes() for array in arrays)
        return pack(self.keys.dump(), json.dumps(facts).encode(), *contents)

    @classmethod
    def unpack(cls, data: Data) -> "Agreement":
        """Read what `packed` gives."""
        keys, table, *contents = unpack(data)
        facts = json.loads(bytes(table))
        arrays = [np.frombuffer(part, "<i4").astype(np.int64) for part in contents]
        targets = {
            name: Target(Frame(*frame), arrays[1 + 2 * i], arrays[2 + 2 * i])
            for i, (name, frame) in enumerate(facts["frames"].items())
        }
        senders = facts["senders"]
        return cls(
            keys=KeyRing.load(bytes(keys)),
            leader=facts["leader"],
            senders=senders and {name: tuple(some) for name, some in senders.items()},
            layout=Layout(Frame(*facts["frame"]), arrays[0]),
            targets=targets,
        )
