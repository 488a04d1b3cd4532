"""What an organisation holds of one sealed training: its job, the models, where it stands."""

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.flower.asked import Asked
from fedlap_app.flower.course import Course, Standing, Taken, pack_standing, unpack_standing
from fedlap_app.flower.first_model import earlier_model
from fedlap_app.methods.kept import ROUNDS, training_job
from fedlap_app.methods.organisation import Organisation
from fedlap_app.methods.scores import SPLITS
from fedlap_app.methods.step import MODEL, State
from fedlap_app.methods.task import Task
from fedlap_app.privacy.policy import Policy
from fedlap_app.store import names
from fedlap_app.store.job_files import pack_arrays, unpack_arrays
from fedlap_app.store.packing import Data, pack
from fedlap_app.sums.kdf import digest
from fedlap_app.sums.programs import Training
from fedlap_app.sums.training.agreed import Limits, Turn
from fedlap_app.sums.training.job import TrainingJob
from fedlap_app.sums.training.kept_keys import TrainingFiles, job_files
from fedlap_app.sums.training.publication import Counts

_HOME, _BEST, _KEPT, _SAID = names.HOME, names.BEST, names.KEPT, names.SAID
Model = Mapping[str, NDArray[Any]]
_latest: "deque[tuple[object, tuple[Taken, bytes, bytes]]]" = deque(maxlen=1)


class TrainingState:
    """One training job at one organisation; the caller holds the lock of the store.

    Parameters
    ----------
    organisation
        Who trains.
    job
        Id of the job.
    task
        Run, and what it reads.
    """

    def __init__(self, organisation: Organisation, job: str, task: Task) -> None:
        self._organisation = organisation
        self._files = _files_of(organisation, job)
        self._keys = Training.from_settings(organisation.settings).results(
            organisation.store.root, durable=organisation.deployed
        )
        self._found = task.found
        self.course = Course(
            organisation.method, organisation.shape_in(task), _earlier(organisation)
        )
        about = (part for pair in sorted(task.found.items()) for part in pair)
        self.job = TrainingJob(
            self._keys.of_job(job).keys,
            self.course.agreed,
            limits_of(organisation.policy),
            self._files,
            digest("training data", organisation.subgraph.fingerprint(), *about).hex(),
        )
        self._models = {name: self._files.newest(name) for name in (_BEST, _KEPT)}
        # Files of earlier stages are found under the run in which the job began.
        if not self._files.has(_HOME):
            self._files.write(_HOME, b"%d" % task.run)
        self.home = replace(task, run=int(bytes(self._files.read(_HOME, 1)[0])), stage=0)
        self.standing: Standing = Standing()
        self._state: State = {}
        self._read()

    @classmethod
    def last_words(cls, organisation: Organisation, job: str) -> bytes:
        """What a finished job has told at its end; empty: it is not finished."""
        files = _files_of(organisation, job)
        return bytes(files.read(_SAID, 1)[0]) if files.has(_SAID) else b""

    def is_of(self, job: str, task: Task) -> bool:
        """Whether this is the job, and nobody else has written to its files."""
        same = (job, task.found) == (self.job.keys.job, self._found)
        return (
            same
            and self.job.unchanged()
            and all(each.unchanged() for each in self._models.values())
        )

    @property
    def stage(self) -> int:
        """The stage of the sum that was taken in last."""
        return self.job.settled.stage if self.job.settled else 0

    @property
    def model(self) -> Model:
        """The model of now."""
        return self._state[MODEL]

    def kept_model(self) -> Model:
        """The best model of all stages that are over."""
        found = self._models[_KEPT].read(1)
        if not found:
            raise ProtocolError("No stage of training is over; the message came too early.")
        return unpack_arrays(found[0])

    def begin(self, stage: int) -> None:
        """Begin a stage with a fresh model, unless it has begun."""
        settled = self.job.settled
        if settled is not None and settled.stage == stage:
            return
        before = self.standing
        standing = Standing(kept=before.kept, told=before.told) if settled else Standing()
        self.job.begin(stage, pack_standing(standing, self.course.first(stage)))
        self._read()

    def take(self, asked: Asked) -> None:
        """Take in the sum that a message brings, unless it was taken in before."""
        turn, data = asked.before, asked.data
        if turn is None or self.job.is_settled(turn, data) or self._is_past(turn):
            return
        taken, packed, best = self._taken(turn, data)
        # The models first: what follows from a sum is the same whenever it is taken in again.
        if best:
            self._models[_BEST].write(best)
        if taken.kept:
            self._models[_KEPT].write(self._models[_BEST].read(1)[0])
        if taken.row:
            self.note(taken.row)
        self.job.settle(packed)
        self.standing, self._state = taken.standing, taken.state

    def _taken(self, turn: Turn, data: Data) -> tuple[Taken, bytes, bytes]:
        """What follows from a sum; clients in one process work it out once for all.

        The chain of a job stands for all that it can depend on.
        """
        opened = self.job.open(turn, data)
        settled = self.job.settled
        key = (self.job.agreed.digest, turn, settled and settled.chain, self.job.received)
        for known, found in tuple(_latest):
            if known == key:
                return found
        taken = self.course.taken(turn, opened, self.standing, self._state)
        best = pack_arrays(dict(taken.best)) if taken.best is not None else b""
        found = taken, pack_standing(taken.standing, taken.state), best
        _latest.append((key, found))
        return found

    def _is_past(self, turn: Turn) -> bool:
        """Whether the stage after a turn has begun, so that its sum was taken in long ago."""
        settled = self.job.settled
        return settled is not None and settled.stage == turn.stage + 1 and settled.number == 0

    def released(self) -> bytes:
        """What the server may know of the scores of the stage, and of the model."""
        organisation, listed = self._organisation, self.job.listed
        settings, counts = organisation.settings, self.standing.counts
        if counts is None:
            raise ProtocolError("The kept model was not scored yet; the message came too early.")
        if listed is None or organisation.name not in listed.members:
            return pack(b"")
        least = organisation.policy.least_published_nodes
        told = [
            Counts(*found) if settings.publish_scores and found[0] >= least else None
            for found in (counts.get(split, (-1, 0)) for split in SPLITS)
        ]
        share = self.job.tell(told)
        if not settings.publish_model:
            return pack(share)
        # One member sends the model, the others its digest.
        content = pack_arrays(dict(self.kept_model()))
        mine = listed.members[0] == organisation.name
        return pack(share, digest("model", content), content if mine else b"")

    def note(self, row: Mapping[str, Any]) -> None:
        """Write down what the organisation may know, for its own eyes."""
        folder = self._organisation.store.job(training_job(self.home.run))
        folder.append_line(ROUNDS, json.dumps(row))

    def finish(self, said: Data) -> None:
        """Forget the keys and all models but the kept one, which has a file of its own."""
        job = self.job.keys.job
        self._keys.drop(job)
        self._files.drop_all()
        self._files.write(_SAID, said)

    def _read(self) -> None:
        if self.job.settled is not None:
            self.standing, self._state = unpack_standing(self.job.state)


def _earlier(organisation: Organisation) -> Model:
    """The model that the organisation kept of the run that training begins with, if it does."""
    run = organisation.settings.start_run
    return earlier_model(organisation.store.job(training_job(run)).path) if run else {}


def limits_of(policy: Policy) -> Limits:
    """What a policy allows a training job."""
    return Limits(policy.fewest_members, policy.list_changes, policy.least_published_nodes)


def _files_of(organisation: Organisation, job: str) -> TrainingFiles:
    return job_files(organisation.store.root, job, durable=organisation.deployed)
