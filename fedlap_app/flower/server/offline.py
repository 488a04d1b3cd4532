"""The offline phase over any grid: sends the coordinator's requests and adds up the replies."""

import secrets
import time
import warnings
from collections.abc import Callable, Sequence
from logging import INFO, WARNING

from flwr.common.logger import log

from fedlap_app.flower.grids.member_grid import Member, MemberGrid, extent_of
from fedlap_app.flower.grids.post import Post
from fedlap_app.flower.server.price import OfflineOutcome, Price
from fedlap_app.settings import Settings
from fedlap_app.store import places
from fedlap_app.sums.backend import InsecureWarning
from fedlap_app.sums.choice import make_backend
from fedlap_app.sums.job.checkpoint import Checkpoints
from fedlap_app.sums.job.coordinator import HANDSHAKE, Choices, Coordinator
from fedlap_app.sums.job.messages import CARDS, HELLO
from fedlap_app.sums.job.spec import OfflineSpec
from fedlap_app.sums.keyring import KeyRing
from fedlap_app.sums.program import Program
from fedlap_app.sums.programs import Krylov, RowNames, Training

Progress = Callable[[int, int], None]


class LogProgress:
    """Writes log lines with the rate and the time left, at most about one a second."""

    def __init__(self) -> None:
        self._started = self._said = time.perf_counter()

    def __call__(self, number: int, rounds: int) -> None:
        """Take note of a finished step; it is one round trip unless a message was too large."""
        now = time.perf_counter()
        if number == 0 or (now - self._said < 1.0 and number < rounds):
            return
        self._said = now
        rate = (now - self._started) / number
        left = rate * max(rounds - number, 0)
        log(
            INFO,
            "[STEP %s/%s] %.2f s a step, %.0f s left",
            number,
            rounds,
            rate,
            left,
            extra={"facts": {"phase": "offline", "step": number, "steps": rounds}},
        )


def run_offline(
    grid: MemberGrid,
    members: Sequence[Member],
    settings: Settings,
    program: str | Program = Krylov.name,
    *,
    progress: Progress | None = None,
) -> OfflineOutcome:
    """Run a program of sealed sums to its end; every member then holds its result.

    Parameters
    ----------
    grid, members
        The grid and who takes part.
    settings
        Settings of the run.
    program
        What the sums are for: a name, or the program itself with what the settings say of it.
    progress
        Is told of every step and how many are expected (default: log lines).
    """
    spec = settings.spec_of(program)
    coordinator = _coordinator(members, settings, spec)
    post = Post(grid, members, settings, spec.program.name)
    price = Price.start(grid.traffic, coordinator.names)
    rounds = spec.rounds(extent_of(members))
    progress = progress or LogProgress()
    with grid.turn(coordinator.names, settings.step_timeout):
        while not coordinator.done:
            kind, step = coordinator.request.kind, coordinator.request.step
            _exchange(coordinator, post, price)
            coordinator.advance(price.per_member())
            if kind == HELLO:
                _after_hello(coordinator, price)
            if kind == CARDS or (coordinator.resumed and kind == HELLO):
                _warn(coordinator, settings, spec)
            coordinator.checkpoint(price.to_json())
            progress(0 if kind in HANDSHAKE else step - 1, rounds)
    how = "reused" if coordinator.reused else "finished"
    log(INFO, "Sealed sums, %s: %s", spec.program.name, how)
    price.update()
    return OfflineOutcome(
        job=coordinator.request.job,
        reused=coordinator.reused,
        resumed=coordinator.resumed,
        price=price,
        told=coordinator.told,
        members=coordinator.roster.members_hash,
        simulated=coordinator.simulated,
        slots={name: n // max(spec.program.width, 1) for name, n in coordinator.lengths.items()},
    )


def name_rows(
    grid: MemberGrid, members: Sequence[Member], settings: Settings
) -> tuple[str, dict[str, bytes]]:
    """Names of every member's rows, and the job that gave them."""
    outcome = run_offline(grid, members, settings, RowNames.name)
    return outcome.job, dict(outcome.told)


def _coordinator(members: Sequence[Member], settings: Settings, spec: OfflineSpec) -> Coordinator:
    name = spec.program.name
    choices = Choices(
        hello=secrets.token_hex(16),
        program=spec.program,
        hide_topology=spec.hide_topology,
        backend=spec.backend,
        profile=spec.profile,
        resume=settings.resume,
        # An unfinished training is gone on with, as an unfinished basis is.
        refresh=not settings.resume
        if name == Training.name
        else settings.refresh_basis and not spec.program.lasting,
    )
    names = [member.name for member in members]
    return Coordinator(names, choices, Checkpoints(places.home() / "checkpoints"))


def _exchange(coordinator: Coordinator, post: Post, price: Price) -> None:
    """One request to every member; contributions are added while others compute."""
    in_handshake = coordinator.request.kind in HANDSHAKE
    for name, reply, facts in post.exchange(coordinator.requests):
        started = time.perf_counter()
        coordinator.take(name, reply)
        price.note(facts, time.perf_counter() - started)
    price.trips(post.trips, in_handshake=in_handshake)


def _after_hello(coordinator: Coordinator, price: Price) -> None:
    """Say where the phase starts."""
    if coordinator.simulated:
        log(INFO, "Simulation: keys and start vectors follow from the seed and protect nothing")
    if coordinator.resumed:
        price.resume(coordinator.facts)
        log(INFO, "Going on with job %s, step %s", *_place(coordinator))


def _place(coordinator: Coordinator) -> tuple[str, int]:
    return coordinator.request.job, coordinator.request.step


def _warn(coordinator: Coordinator, settings: Settings, spec: OfflineSpec) -> None:
    """Say once what the settings give away of sums; the ring that is asked holds no key."""
    if not spec.program.sums:
        return
    roster = coordinator.roster
    ring = KeyRing(roster.names[0], roster.names, roster.job, roster.members_hash, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureWarning)
        backend = make_backend(
            settings.backend,
            ring,
            profile=spec.profile,
            senders=coordinator.senders,
        )
    if backend.weakness:
        log(WARNING, "%s", backend.weakness)
    if not settings.hide_topology:
        log(WARNING, "The server and all organisations see who shares edges with whom.")
