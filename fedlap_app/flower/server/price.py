"""What the offline phase costs, by the server's own counting."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedlap_app.flower.grids.member_grid import Traffic
from fedlap_app.flower.grids.post import Facts

_COUNTERS = (
    "round_trips", "handshake", "client_seconds", "sealing_seconds", "opening_seconds",
    "adding_seconds",
)  # fmt: skip


@dataclass
class Price:
    """Counters of one phase.

    Attributes
    ----------
    round_trips, handshake
        Messages to every client, each with its reply, after and in the handshake.
    client_seconds
        Of all clients together, in handlers.
    sealing_seconds, opening_seconds
        Of all clients together, with sealing and with opening.
    adding_seconds
        Of the server, with adding.
    seconds
        By the server's clock.
    up, down
        Bytes from and to each member.
    """

    round_trips: int = 0
    handshake: int = 0
    client_seconds: float = 0.0
    sealing_seconds: float = 0.0
    opening_seconds: float = 0.0
    adding_seconds: float = 0.0
    seconds: float = 0.0
    up: dict[str, int] = field(default_factory=dict)
    down: dict[str, int] = field(default_factory=dict)
    _traffic: Mapping[str, Traffic] = field(default_factory=dict)
    _base: dict[str, tuple[int, int]] = field(default_factory=dict)
    _earlier: float = 0.0
    _started: float = field(default_factory=time.perf_counter)

    @classmethod
    def start(cls, traffic: Mapping[str, Traffic], names: Sequence[str]) -> "Price":
        """Begin to count; what was sent before does not belong to the phase."""
        base = {name: (traffic[name].up, traffic[name].down) for name in names}
        price = cls(_traffic=traffic, _base=base)
        price.update()
        return price

    def update(self) -> None:
        """Bring bytes and seconds up to date."""
        self.seconds = self._earlier + time.perf_counter() - self._started
        for name, (up, down) in self._base.items():
            self.up[name] = self._traffic[name].up - up
            self.down[name] = self._traffic[name].down - down

    @property
    def secure_seconds(self) -> float:
        """Of all parties together, with sealing, adding and opening."""
        return self.sealing_seconds + self.opening_seconds + self.adding_seconds

    def note(self, facts: Facts, adding: float) -> None:
        """Add what one reply took at the client, and to add it here."""
        self.client_seconds += facts.seconds
        self.sealing_seconds += facts.sealing
        self.opening_seconds += facts.opening
        self.adding_seconds += adding

    def trips(self, count: int, *, in_handshake: bool) -> None:
        """Add round trips."""
        if in_handshake:
            self.handshake += count
        else:
            self.round_trips += count

    def resume(self, facts: Mapping[str, Any]) -> None:
        """Add what an earlier run spent on the job."""
        for name in _COUNTERS:
            setattr(self, name, getattr(self, name) + facts.get(name, 0))
        self._earlier += facts["seconds"]
        self._base = {
            name: (up - facts["up"][name], down - facts["down"][name])
            for name, (up, down) in self._base.items()
        }

    def to_json(self) -> dict[str, Any]:
        """Everything, for the checkpoint and the run folder."""
        self.update()
        names = (*_COUNTERS, "secure_seconds", "seconds", "up", "down")
        return {name: getattr(self, name) for name in names}

    def per_member(self) -> dict[str, dict[str, Any]]:
        """What each member's certificate says, with the round trip that carries it."""
        self.update()
        return {
            name: {
                "round_trips": self.round_trips + 1,
                "bytes_up": self.up[name],
                "bytes_down": self.down[name],
                "seconds": self.seconds,
            }
            for name in self._base
        }


@dataclass(frozen=True)
class OfflineOutcome:
    """How the phase ended; nothing in it was decrypted.

    `told` is what the members said at its end, for programs that end with the handshake, `members`
    the hash of their cards, `simulated` whether all keys follow from the seed, and `slots` how many
    rows the sums for each member have room for: the size of it that is public.
    """

    job: str
    reused: bool
    resumed: bool
    price: Price
    told: Mapping[str, bytes] = field(default_factory=dict)
    members: str = ""
    simulated: bool = False
    slots: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """For the run folder."""
        facts = {"job": self.job, "reused": self.reused, "resumed": self.resumed}
        return {**facts, "slots": dict(self.slots), **self.price.to_json()}
