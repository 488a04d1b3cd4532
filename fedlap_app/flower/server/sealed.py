"""Sealed training: the server counts rounds and adds words that it cannot read.

Flower's strategy drives the rounds; what it would make of the mean model, every organisation works
out by itself (`flower/course.py`). A member that is missing voids the attempt: the weights are
summed again over a smaller list, and the round is asked for anew.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from logging import INFO, WARNING

from flwr.app import ArrayRecord, Message
from flwr.common.logger import log
from flwr.serverapp.strategy import FedAvg

from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.flower.asked import MESSAGE_TYPE, PUBLISH, TURN, WEIGH, WHERE, Answer, Asked
from fedlap_app.flower.course import Course
from fedlap_app.flower.grids.member_grid import Member, MemberGrid, Quorum, schema_of
from fedlap_app.flower.server.observer import Observer
from fedlap_app.flower.server.offline import run_offline
from fedlap_app.flower.server.outcome import Outcome, StageScores
from fedlap_app.flower.server.price import OfflineOutcome
from fedlap_app.flower.server.run_folder import RunFolder, offline_file
from fedlap_app.flower.server.strategies import strategy_of
from fedlap_app.flower.server.window import Window
from fedlap_app.flower.task import task_record
from fedlap_app.methods.base import Method, Parameters
from fedlap_app.methods.kept import BASIS
from fedlap_app.methods.scores import SPLITS
from fedlap_app.methods.task import Task
from fedlap_app.store.job_files import unpack_arrays
from fedlap_app.store.packing import unpack
from fedlap_app.sums.kdf import digest
from fedlap_app.sums.programs import FeatureMoments, Training
from fedlap_app.sums.training.adder import Adder
from fedlap_app.sums.training.agreed import KEPT, LAST, WEIGHT_SUM, Turn, weights_place
from fedlap_app.sums.training.publication import counts_place, counts_shape, published

_DAY = 86_400.0  # seconds


def train_sealed(
    grid: MemberGrid,
    members: Sequence[Member],
    method: Method,
    folder: RunFolder,
    observer: Observer,
    found: Mapping[str, OfflineOutcome],
) -> Outcome:
    """Train together without seeing a model, an update or a score.

    The parameters are those of `train_together`.
    """
    settings = method.settings
    course = Course(method, schema_of(members))
    _ = course.agreed  # a model that does not fit into memory is refused here
    if len(members) < 3:
        log(
            WARNING,
            "%d organisations train: what each learns by itself shows in the sum; a deployment "
            "refuses fewer than three unless every policy allows it (two-members)",
            len(members),
        )
    if settings.min_clients:
        grid.quorum = Quorum(settings.min_clients, settings.straggler_timeout)
    # Two simulations of the same settings in the same stores would share one job.
    with grid.turn((f"training {settings.digest()[:16]}",), _DAY):
        return _trained(grid, members, method, course, folder, observer, found)


def _trained(
    grid: MemberGrid,
    members: Sequence[Member],
    method: Method,
    course: Course,
    folder: RunFolder,
    observer: Observer,
    found: Mapping[str, OfflineOutcome],
) -> Outcome:
    settings = method.settings
    handshake = run_offline(grid, members, settings, Training.name)
    folder.write_json(offline_file(Training.name), handshake.to_json())
    task = Task(grid.run.run_id, 0, {program: each.job for program, each in found.items()})
    names = tuple(member.name for member in members)
    rounds = SealedRounds(grid, members, method, course, task, handshake, folder, observer)
    rounds.window = Window.of(settings, names, task.run) if handshake.simulated else None
    stage = rounds.go_on() if handshake.reused else 0
    while stage <= settings.self_training:
        rounds.stage(stage)
        stage += 1
    return rounds.outcome(course.agreed.stages)


@dataclass
class SealedRounds:
    """The sums of one training job.

    Attributes
    ----------
    grid, members, method, course, task
        Who trains, and what.
    handshake
        Where the keys come from.
    folder, observer
        Who is told of rounds.
    window
        Of a simulation: what the organisations have written into their stores on this machine.
    listed, attempt
        The member list in force and its number.
    """

    grid: MemberGrid
    members: Sequence[Member]
    method: Method
    course: Course
    task: Task
    handshake: OfflineOutcome
    folder: RunFolder
    observer: Observer
    window: Window | None = None
    listed: tuple[str, ...] = ()
    attempt: int = 0
    _before: Turn | None = None
    _sum: bytes = b""
    _weights: bytes = b""
    _next: int = 1
    _apart: bool = False
    _releases: int = 0
    _published: dict[int, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    _model: Parameters | None = None
    _rounds: Counter[int] = field(default_factory=Counter)
    _started: float = field(default_factory=time.perf_counter)
    _strategy: FedAvg = field(init=False)

    def __post_init__(self) -> None:
        self.listed = tuple(sorted(member.name for member in self.members))
        self._strategy = strategy_of(self.method)

    def stage(self, stage: int) -> None:
        """All sums of a stage, from where it stands."""
        rounds = self.method.settings.rounds
        if not self._weights:
            self._weigh(stage)
        while self._next <= rounds + KEPT:
            number = self._next
            if not self._turn(stage, number):
                self._next = rounds + KEPT  # patience is over: only the kept model is scored
                continue
            self._next = number + 1
            if number <= rounds:
                self._rounds[stage] += 1
            self._note(stage, number)
        self._publish(stage)
        self._note(stage, self._next)
        self._next, self._weights = 1, b""

    def go_on(self) -> int:
        """Take up a job that an earlier run has left; gives the stage that it is in."""
        rounds = self.method.settings.rounds
        answers = self._ask(WHERE, Turn(0, 0, 0, self.listed), self.listed, whole=True)
        if self.window is not None:
            self.window.began_in(next(iter(answers.values())).number("home", self.task.run))
        lists = [
            (answer.number("attempt", 0), answer.members)
            for answer in answers.values()
            if "attempt" in answer.facts
        ]
        if lists:
            self.attempt, self.listed = max(lists)
        if not self.listed or not set(self.listed) <= answers.keys():
            raise ProtocolError(
                f"a member lists {len(self.listed)} others in the training that goes on, who are "
                "not those of this run: start a new run with resume = false"
            )
        places = {
            name: (answer.number("stage", 0), answer.number("number", -1))
            for name, answer in answers.items()
        }
        for at, place in places.values():
            self.course.agreed.require_planned(Turn(at, max(place, 1), 0, ()))
        first = min(places[name] for name in self.listed)
        last = max(places[name] for name in self.listed)
        stage, number = last
        self._releases = stage * rounds + max(0, min(number, rounds))
        log(INFO, "Going on with training job %s, stage %d, round %d", self.handshake.job, *last)
        if number < 0 or (number == 0 and first != last):
            return stage
        self._apart = first != last
        self._weigh(stage)
        if number > 0:
            # Whoever is behind needs the last sum; all still have what they gave to it.
            self._collect(Turn(stage, number, self.attempt, self.listed))
        self._apart = False
        self._next = number + 1
        if number > rounds:
            self._next = max(self._next, rounds + LAST)
        return stage

    def outcome(self, stages: int) -> Outcome:
        """What is known of the run: what was published, or all that a simulation has on disk."""
        basis, read = (self.task.found.get(name, "") for name in (BASIS, FeatureMoments.name))
        if self.window is not None:
            seen = self.window.stages()
            if len(seen) == stages:
                model = self.window.model()
                return Outcome(seen, model, basis, read, releases=self._releases)
        told = [
            StageScores(None, None, self._rounds[stage], {}, self._published.get(stage, {}))
            for stage in range(stages)
        ]
        return Outcome(told, self._model, basis, read, releases=self._releases)

    def _weigh(self, stage: int) -> None:
        """Sum the weights of the member list."""
        while not self._weights:
            turn = Turn(stage, 0, self.attempt, self.listed)
            place = weights_place(stage, self.attempt)
            adder = Adder(
                self.handshake.job,
                self.handshake.members,
                place,
                self.listed,
                WEIGHT_SUM,
                self.course.agreed.backend,
            )
            if self._add(WEIGH, turn, adder) is not None:
                self._weights = adder.result()

    def _turn(self, stage: int, number: int) -> bool:
        """One sum of a round; False: the members say that the stage trains no more."""
        while True:
            if not self._weights:
                self._weigh(stage)
            turn = Turn(stage, number, self.attempt, self.listed)
            over = self._collect(turn)
            if over is not None:
                return not over

    def _collect(self, turn: Turn) -> bool | None:
        """Add the contributions to a turn; whether the stage is over; None: somebody is missing."""
        shape = self.course.agreed.shape_of(turn)
        adder = Adder(
            self.handshake.job,
            self.handshake.members,
            turn.place,
            turn.members,
            shape,
            self.course.agreed.backend,
        )
        # One that ends without somebody counts as well: its parts have left.
        self._releases += turn.number <= self.method.settings.rounds
        answers = self._add(TURN, turn, adder)
        if answers is None:
            return None
        over = {bool(answer.facts.get("over")) for answer in answers.values()}
        if over == {True}:
            return True
        self._before, self._sum = turn, adder.result()
        return False

    def _add(self, kind: str, turn: Turn, adder: Adder) -> Mapping[str, Answer] | None:
        """Ask all on the list and add what they seal; None: the list has become smaller."""
        answers = self._ask(kind, turn, turn.members, adder)
        if missing := [name for name in turn.members if name not in answers]:
            self.listed = tuple(name for name in turn.members if name in answers)
            self.attempt += 1
            self._weights = b""
            log(WARNING, "Left out of the sums from now on: %s", ", ".join(missing))
            return None
        if not self._apart:
            _require_one_state({name: answer.mark for name, answer in answers.items()})
        return answers

    def _ask(
        self,
        kind: str,
        turn: Turn,
        names: Sequence[str],
        adder: Adder | None = None,
        *,
        whole: bool = False,
    ) -> dict[str, Answer]:
        """Answers of some members; contributions are added as they arrive, and not kept."""
        weights = self._weights if kind == TURN else b""
        content = Asked(
            self.task, kind, self.handshake.job, turn, self._before, self._sum, weights
        ).record()
        if kind == TURN:
            self._configure(turn, content["config"])
        messages = [
            Message(content=content, dst_node_id=member.node_id, message_type=MESSAGE_TYPE)
            for member in self.members
            if member.name in names
        ]
        answers = {}
        timeout = self.method.settings.step_timeout
        for name, reply in self.grid.stream(messages, timeout=timeout, all_needed=whole):
            answer = Answer.read(reply)
            if adder is not None and answer.body:
                adder.add(name, answer.body)
            answers[name] = Answer(b"" if adder else answer.body, answer.mark, answer.facts)
        # Who was left out still gets the sums, as far as it can be reached.
        others = [
            Message(content=content, dst_node_id=member.node_id, message_type=MESSAGE_TYPE)
            for member in self.members
            if member.name not in names
        ]
        if others:
            self.grid.push_messages(others)
        return answers

    def _configure(self, turn: Turn, config: object) -> None:
        """Let Flower's strategy say what belongs to the round; it never sees a model."""
        asked = self._strategy.configure_train(
            turn.number, ArrayRecord({}), task_record(self.task), self.grid
        )
        for message in asked:
            given = message.content.config_records["config"]
            for key, value in given.items():
                config.setdefault(key, value)  # type: ignore[attr-defined]
            return

    def _publish(self, stage: int) -> None:
        """What the members tell at the end of a stage, if they all tell the same."""
        turn = Turn(stage, self.method.settings.rounds + KEPT, self.attempt, self.listed)
        answers = self._ask(PUBLISH, turn, self.listed)
        count = 3 if self.method.settings.publish_model else 1
        parts = {name: unpack(answer.body, count) for name, answer in answers.items()}
        if missing := [name for name in self.listed if name not in parts]:
            log(WARNING, "No scores are published: %s did not answer", ", ".join(missing))
        else:
            self._published[stage] = self._counts(stage, parts)
        if self.method.settings.publish_model:
            if self.listed[0] in missing:
                raise RunError(
                    f"{self.listed[0]!r} was to send the model and did not answer: start the run "
                    "again when it is back"
                )
            content = bytes(parts[self.listed[0]][2])
            for name, some in parts.items():
                if bytes(some[1]) != digest("model", content):
                    raise ProtocolError(f"{name!r} holds another model than was published.")
            self._model = unpack_arrays(content)

    def _counts(
        self, stage: int, parts: Mapping[str, Sequence[memoryview]]
    ) -> Mapping[str, tuple[int, int]]:
        """The counts that all members together tell."""
        place, shape = counts_place(stage, self.attempt), counts_shape(len(SPLITS))
        adder = Adder(self.handshake.job, self.handshake.members, place, self.listed, shape)
        for name, some in parts.items():
            adder.add(name, some[0])
        return published(adder.result(), SPLITS, len(self.listed))

    def _note(self, stage: int, number: int) -> None:
        """Tell of a round that was exchanged."""
        settings = self.method.settings
        seconds = time.perf_counter() - self._started
        count = (settings.self_training + 1) * settings.rounds
        rows = [{"stage": stage, "round": number}] if number <= settings.rounds else []
        if self.window is not None:
            rows = self.window.rows()
        for row in rows:
            self.folder.add_round({**row, "seconds": seconds})
            done = int(row["stage"]) * settings.rounds + int(row["round"])
            totals = {key: value for key, value in row.items() if key not in ("stage", "round")}
            self.observer.round_done(done, count, totals)


def _require_one_state(marks: Mapping[str, bytes]) -> None:
    """Name whoever holds another state than most do."""
    counts = Counter(marks.values())
    if len(counts) < 2:
        return
    common = counts.most_common(1)[0][0]
    others = sorted(name for name, mark in marks.items() if mark != common)
    raise RunError(
        f"{', '.join(others)} worked out another model than the others, or was told something "
        "else: let all organisations run one release, then start a new run with resume = false"
    )
