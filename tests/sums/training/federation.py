"""Members of a training job and the server between them, without the handshake."""

from functools import cache

import numpy as np

from fedlap_app.store.job_files import JobFiles
from fedlap_app.sums.kdf import derive, digest
from fedlap_app.sums.keyring import KeyRing
from fedlap_app.sums.training.adder import Adder
from fedlap_app.sums.training.agreed import WEIGHT_SUM, Agreed, Limits, Turn, weights_place
from fedlap_app.sums.training.job import TrainingJob
from fedlap_app.sums.training.shape import SumShape, Tensor

SHAPE = SumShape((Tensor("A", (3, 5)), Tensor("b", (4,), bits=28)), 6)
MEMBERS_HASH = "ab" * 16
STATE = b"a state that all have worked out"


@cache
def rings(count, seed=b"a seed for tests"):
    """Key rings of so many members, with other keys for another seed."""
    names = tuple(f"client-{i:02d}" for i in range(count))
    job = digest("training", seed)[:16].hex()
    return {
        me: KeyRing(
            me=me,
            members=names,
            job=job,
            members_hash=MEMBERS_HASH,
            roots={peer: derive(seed, *sorted((me, peer))) for peer in names if peer != me},
            group_key=derive(seed, "group"),
        )
        for me in names
    }


class Federation:
    """All members of one training job."""

    def __init__(
        self,
        root,
        count,
        *,
        shape=SHAPE,
        limits=None,
        seed=b"a seed for tests",
        weights=None,
        rounds=4,
        stages=2,
        largest_step=1e9,
        min_clients=0,
        backend="mask",
    ):
        self.root = root
        self.limits = limits or Limits(fewest=min(count, 3))
        self.agreed = Agreed(
            "run", shape, stages, rounds, largest_step, min_clients, backend=backend
        )
        self.rings = rings(count, seed)
        self.names = tuple(self.rings)
        numbers = np.arange(1, count + 1, dtype=float) if weights is None else weights
        self.weights = dict(zip(self.names, numbers, strict=True))
        self.jobs = {name: self.job(name) for name in self.names}

    def job(self, name, data="its data"):
        """A member's job as a new process finds it."""
        files = JobFiles(self.root / name, durable=False)
        return TrainingJob(self.rings[name], self.agreed, self.limits, files, data)

    def begin(self, stage=0, state=STATE):
        """Begin a stage at all members, and the first one with the sum of the weights."""
        for job in self.jobs.values():
            job.begin(stage, state)
        self.weigh()
        return self

    def weigh(self, attempt=0, members=None):
        """Put a member list in force."""
        members = members or self.names
        stage = self.jobs[members[0]].settled.stage
        adder = self.adder(weights_place(stage, attempt), members, WEIGHT_SUM)
        for name in members:
            adder.add(name, self.jobs[name].weigh(attempt, members, self.weights[name]))
        for name in members:
            self.jobs[name].take_weights(adder.result())

    def adder(self, place, members, shape):
        """The server's side of one sum."""
        return Adder(
            self.rings[members[0]].job, MEMBERS_HASH, place, members, shape, self.agreed.backend
        )

    def turn(self, number, *, stage=0, attempt=0, members=None):
        """What the server asks for."""
        return Turn(stage, number, attempt, tuple(members or self.names))

    def draw(self, seed=0, size=1.0):
        """A change and scores for every member."""
        rng = np.random.default_rng(seed)
        tensors = self.agreed.shape.tensors
        return {
            name: (
                {t.name: rng.normal(size=t.shape, scale=size).astype(np.float32) for t in tensors},
                rng.integers(0, 100, self.agreed.shape.scores).astype(float),
            )
            for name in self.names
        }

    def seal(self, turn, drawn):
        """Sealed contributions of all on the list."""
        return {name: bytes(self.jobs[name].seal(turn, *drawn[name])) for name in turn.members}

    def add(self, turn, sealed):
        """Their sum."""
        adder = self.adder(turn.place, turn.members, self.agreed.shape_of(turn))
        for name, data in sealed.items():
            adder.add(name, data)
        return adder.result()

    def round(self, turn, drawn=None, state=None):
        """One whole turn at all members; gives what each has opened."""
        data = self.add(turn, self.seal(turn, drawn or self.draw()))
        opened = {}
        for name, job in self.jobs.items():
            opened[name] = job.open(turn, data)
            job.settle(state)
        return opened
