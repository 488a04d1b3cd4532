"""Offline phases without Flower: members and coordinator call each other in one process."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fedlap_app.graphs.graph import Graph, cut
from fedlap_app.store.job_files import JobFiles
from fedlap_app.sums.job.checkpoint import Checkpoints
from fedlap_app.sums.job.coordinator import Choices, Coordinator
from fedlap_app.sums.job.live import forget as forget_live
from fedlap_app.sums.job.member import Member
from fedlap_app.sums.job.party import Party
from fedlap_app.sums.job.secrets import simulated_secrets
from fedlap_app.sums.job.spec import OfflineSpec
from fedlap_app.sums.programs import Krylov

KRYLOV = Krylov(
    operator="sym",
    solver="block-lanczos",
    vectors=12,
    rank=0,
    block=4,
    keep="smallest",
    self_loops=True,
    regulariser=0.0,
)
SPEC = OfflineSpec(
    program=KRYLOV,
    backend="mask",
    layout="full",
    hide_topology=True,
    directed=False,
)


_numbers = itertools.count()


def random_parts(nodes=40, clients=3, edges=90, seed=0, *, directed=False):
    """Organisations of a random weighted graph."""
    rng = np.random.default_rng(seed)
    graph = Graph(
        ids=np.array([f"n{i:03d}" for i in rng.permutation(nodes)]),
        features=np.zeros((nodes, 1), dtype=np.float32),
        labels=np.zeros(nodes, dtype=np.int64),
        edge_index=rng.choice(nodes, size=(2, edges)),
        edge_weight=np.ones(edges),
        classes=("a",),
        feature_names=("f0",),
        directed=directed,
    )
    owner = rng.permutation(np.arange(nodes) % clients)
    mask = np.zeros(nodes, dtype=bool)
    names = [f"org-{i:02d}" for i in range(clients)]
    return cut(graph, owner, names, (mask, mask, mask))


class Phase:
    """One federation, its stores and the server's folder; runs phases one after the other."""

    def __init__(self, root, parts, spec=SPEC, secrets=None, seed=0):
        self.root = root
        self.parts = list(parts)
        self.spec = spec
        self.seed = seed
        self.make_secrets = secrets or (lambda name: simulated_secrets(seed, name))
        self.log = []

    def member(self, part):
        secrets = self.make_secrets(part.name)
        return Member(Party(part, self.spec, secrets, self.root / part.name))

    @property
    def members(self):
        return {part.name: self.member(part) for part in self.parts}

    def coordinator(self, **choices):
        names = [part.name for part in self.parts]
        spec = self.spec
        sealing = {"backend": spec.backend, "profile": spec.profile}
        about = (f"hello{next(_numbers)}", spec.program, spec.hide_topology)
        chosen = Choices(*about, **sealing, **choices)
        return Coordinator(names, chosen, Checkpoints(self.root / "server"))

    def run(self, coordinator=None, *, rounds=10_000, around=None, **choices):
        """Drive to the end, or for some rounds; `around(member, request)` may replace a call."""
        coordinator = coordinator or self.coordinator(**choices)
        members = self.members
        price = {"round_trips": 1, "bytes_up": 2, "bytes_down": 3, "seconds": 4.0}
        while not coordinator.done and rounds:
            rounds -= 1
            for name, request in coordinator.requests.items():
                answer = around or (lambda member, asked: member.answer(asked))
                reply = bytes(answer(members[name], request))
                self.log.append((name, request, reply))
                coordinator.take(name, reply)
            coordinator.advance(dict.fromkeys(members, price))
            coordinator.checkpoint({})
        return coordinator

    def bases(self):
        """Finished basis of every organisation."""
        found = {}
        for name, member in self.members.items():
            results = member.party.results
            found[name] = results.load(results.facts()[0])
        return found

    def gathered(self):
        """Rows of U of all organisations, and the eigenvalues."""
        bases = self.bases()
        U = np.vstack([bases[part.name].U for part in self.parts])
        return U, next(iter(bases.values())).eigenvalues


class KilledError(Exception):
    """Stands for the end of a process."""


class Deadly:
    """Each write of each member kills the process once, just before or just after it.

    Parameters
    ----------
    owner, name
        Class and name of the method that writes; it is replaced.
    moment
        "before" or "after" the write.
    """

    def __init__(self, monkeypatch, owner, name, moment):
        self.died, self._asked = set(), []
        original = getattr(owner, name)

        def deadly(writer, first, *rest):
            # Handles of files differ from run to run; a write is known by its place among all.
            this = (*self._asked, first if owner is JobFiles else "")
            first_time = bool(self._asked) and this not in self.died
            self.died.add(this)
            if first_time and moment == "before":
                raise KilledError
            done = original(writer, first, *rest)
            if first_time:
                raise KilledError
            return done

        monkeypatch.setattr(owner, name, deadly)

    def answer(self, member, request):
        """Start again as often as the process dies."""
        self._asked[:] = member.party.name, request.kind, request.step
        while True:
            try:
                reply = member.answer(request)
            except KilledError:
                forget_live()
            else:
                self._asked.clear()
                return reply


@pytest.fixture(autouse=True)
def no_memory():
    """Nothing is kept from test to test."""
    forget_live()
    yield
    forget_live()


@pytest.fixture
def make_phase(tmp_path):
    """``make_phase(clients=3, nodes=40, **spec)``: a federation in a folder of its own."""
    made = []

    def build(parts=None, *, secrets=None, seed=0, graph=None, **spec):
        made.append(None)
        parts = parts or random_parts(**(graph or {}), directed=spec.get("directed", False))
        of_program = {name: spec.pop(name) for name in [*spec] if name in vars(KRYLOV)}
        spec.setdefault("program", replace(KRYLOV, **of_program))
        return Phase(tmp_path / f"p{len(made)}", parts, replace(SPEC, **spec), secrets, seed)

    return build
