"""One organisation as the offline phase sees it: its part of the graph, its secrets, its store."""

import logging
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ConfigError, ProtocolError
from fedlap_app.graphs.kinds import CATEGORY
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.privacy.consent import Consent
from fedlap_app.privacy.policy import SIMULATED, Policy
from fedlap_app.privacy.tally import Tally
from fedlap_app.store import names
from fedlap_app.store.files import append_lines, writing
from fedlap_app.store.job_files import JobFiles
from fedlap_app.store.newest import Newest
from fedlap_app.sums.card import issue_card, read_card
from fedlap_app.sums.job.begun import Begun
from fedlap_app.sums.job.results import Facts, Results
from fedlap_app.sums.job.secrets import Secrets
from fedlap_app.sums.job.spec import OfflineSpec
from fedlap_app.sums.kdf import digest
from fedlap_app.sums.program import Extent

ANSWERED = names.ANSWERED
_JOBS_KEPT = 3
_PENDING = names.CARD
_PARTS = 5

log = logging.getLogger("fedlap")


@dataclass(frozen=True)
class Pending:
    """The card that was issued last.

    Attributes
    ----------
    hello
        What it answered.
    job
        The only job that it may begin; empty until then.
    serial
        Its number.
    job_secret, card
        What it stands for, and the card.
    """

    hello: str
    job: str
    serial: int
    job_secret: bytes
    card: bytes


@dataclass(frozen=True, eq=False)
class Party:
    """What every step of the phase works with.

    Attributes
    ----------
    subgraph
        What the organisation holds.
    spec
        Settings of the phase.
    secrets
        Long-term secrets.
    run
        Digest of all settings of the run.
    root
        Folder of the organisation's store.
    policy
        What the organisation allows.
    pinned
        Organisations whose fingerprint it has pinned by itself.
    values
        (n, columns) numbers that take the place of its features in programs that sum these.
    """

    subgraph: Subgraph
    spec: OfflineSpec
    secrets: Secrets
    root: Path
    policy: Policy = SIMULATED
    run: str = ""
    pinned: frozenset[str] = frozenset()
    values: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.values is not None and self.values.shape[:1] != (self.subgraph.num_nodes,):
            raise ConfigError(
                f"numbers of shape {self.values.shape} were handed in for "
                f"{self.subgraph.num_nodes} nodes: give each node a row"
            )

    @property
    def name(self) -> str:
        """Name of the organisation."""
        return self.subgraph.name

    @cached_property
    def data(self) -> str:
        """Fingerprint of the subgraph, and of the numbers handed in."""
        found = self.subgraph.fingerprint()
        if self.values is None:
            return found
        content = np.ascontiguousarray(self.values, dtype="<f8")
        return digest("values", found, str(content.shape), content.tobytes()).hex()

    @property
    def extent(self) -> Extent:
        """Sizes of the data, as far as the organisation knows them."""
        held = self.subgraph.num_features if self.values is None else self.values.shape[1]
        kinds, classes = self.subgraph.kinds, self.subgraph.num_classes
        return Extent(features=held, categories=kinds.count(CATEGORY), classes=classes)

    @cached_property
    def digest(self) -> str:
        """Digest of the settings."""
        return self.spec.digest(self.secrets.seed)

    @cached_property
    def results(self) -> Results[Any] | None:
        """Results of the program in the store."""
        return self.spec.program.results(self.root, durable=self.durable)

    def prepare(self) -> None:
        """Let the program look for what the store has under another key."""
        program, where = self.spec.program, self.root
        program.prepare(self.subgraph, where, self.digest, self.data, durable=self.durable)

    def finished(self) -> list[Facts]:
        """What its results belong to."""
        return [] if self.results is None else self.results.facts()

    @property
    def durable(self) -> bool:
        """Whether writes must survive a power failure."""
        return not self.secrets.simulated

    @cached_property
    def consent(self) -> Consent:
        """The organisation's policy and what it has exchanged so far."""
        tally = Tally(self.root, durable=self.durable)
        return Consent(self.subgraph, self.policy, self.pinned, tally)

    @cached_property
    def begun(self) -> Begun:
        """Which cards have begun a job."""
        return Begun(self.root, durable=self.durable)

    @property
    def folder(self) -> Path:
        """Where logs and parts of messages go."""
        return self.root / names.OFFLINE

    @cached_property
    def common(self) -> JobFiles:
        """Files that belong to no job.

        They stand beside each other in the store: a folder takes longer to make than to fill.
        """
        return JobFiles(self.root, durable=self.durable, prefix=names.PHASE(job=""))

    @cached_property
    def post(self) -> JobFiles:
        """Parts of messages that are too large to travel at once."""
        return JobFiles(self.folder / names.POST, durable=False)

    def job(self, job: str) -> JobFiles:
        """Files of one job."""
        return job_files(self.root, job, durable=self.durable)

    def answers(self, job: str) -> Newest:
        """What was answered in one job."""
        return self.job(job).newest(ANSWERED)

    def jobs(self) -> list[str]:
        """Ids of the jobs that have files, the newest last."""
        files = sorted(self.root.glob(names.PHASE(job=f"*-{ANSWERED}-*")), key=_age)
        found = dict.fromkeys(path.name.split("-")[1] for path in reversed(files))
        return [*found][::-1]

    def forget(self, job: str) -> None:
        """Delete the files of a job."""
        self._delete(job)

    def forget_answers(self, job: str) -> None:
        """Let a job start again; what it gave stays for a run that trains with it."""
        self._delete(job, ANSWERED)

    def _delete(self, job: str, what: str = "") -> None:
        for path in self.root.glob(names.PHASE_FILE(job=job, what=f"{what}*")):
            path.unlink(missing_ok=True)

    def make_room(self) -> None:
        """Delete the oldest jobs but for a few."""
        for job in self.jobs()[:-_JOBS_KEPT]:
            self.forget(job)

    def pending(self) -> Pending | None:
        """The card issued last."""
        if not self.common.has(_PENDING):
            return None
        parts = list(map(bytes, self.common.read(_PENDING)))
        if len(parts) != _PARTS:  # a card of another release begins nothing here
            return None
        hello, job, serial = (part.decode() for part in parts[:3])
        return Pending(hello, job, int(serial), *parts[3:])

    def issue(self, hello: str) -> Pending:
        """The card for a hello; the same hello gets the same card, unless the settings changed."""
        last = self.pending()
        if last is not None and last.hello == hello and self._fits(last):
            return last
        job_secret = self.secrets.job_secret(self.digest, self.data)
        card = issue_card(self.secrets.identity, self.name, job_secret, self.digest, self.run)
        serial = 0 if self.secrets.simulated else self.begun.next_serial()
        return self._write(Pending(hello, "", serial, job_secret, card))

    def _fits(self, pending: Pending) -> bool:
        """Whether a card was issued for the settings of now."""
        card = read_card(pending.card)
        return (card.settings, card.run) == (self.digest, self.run)

    def shown(self, hello: bytes) -> Pending:
        """The card that was shown at a hello, if nothing has changed since."""
        pending = self.pending()
        if pending is None or pending.hello.encode() != hello:
            raise ProtocolError(
                "The cards belong to another hello than the last one; two runs may work with "
                "one store, or the message is stale: start again."
            )
        if not self._fits(pending):
            raise ProtocolError(
                f"The settings of {self.name!r} changed after it showed its card; somebody may "
                "have altered its run configuration: start the run again."
            )
        return pending

    def bind(self, pending: Pending, job: str) -> None:
        """Let a card begin a job, and no other one; in a simulation it repeats itself."""
        if not self.secrets.simulated:
            self.begun.require_unused(pending.serial)
        if pending.job == job:
            return
        if pending.job:
            raise ProtocolError(
                f"The card of {self.name!r} was shown for job {pending.job} and begins no other: "
                "start the run again."
            )
        if not self.secrets.simulated and self.spec.program.edges:
            self.begun.count(self.policy.jobs_a_day)
        elif not self.secrets.simulated:  # keys for training, for instance
            self.begun.count_for_run(self.policy.runs_a_day)
        self._write(replace(pending, job=job))

    def use(self, job: str) -> None:
        """Note, once the first reply of a job is stored, that its card has done its work."""
        pending = self.pending()
        if pending is not None and pending.job == job and not self.secrets.simulated:
            self.begun.use(pending.serial)

    def _write(self, pending: Pending) -> Pending:
        texts = (pending.hello, pending.job, str(pending.serial))
        parts = (*(text.encode() for text in texts), pending.job_secret, pending.card)
        self.common.write(_PENDING, *parts)
        return pending

    def retire(self, hello: str) -> None:
        """Delete the secret of a job that ended; a card issued since stays."""
        last = self.pending()
        if last is not None and last.hello == hello:
            self.common.drop(_PENDING)

    def note(self, file: str, lines: list[str]) -> Path:
        """Write what only the organisation may read to a log in its store."""
        path = self.folder / file
        with writing(file):
            append_lines(path, *lines)
        return path


def job_files(root: Path, job: str, *, durable: bool) -> JobFiles:
    """Files of one job in the store at `root`."""
    if not job.isalnum():
        raise ProtocolError(f"{job!r} is no job id; it was altered.")
    return JobFiles(root, durable=durable, prefix=names.PHASE_FILE(job=job, what=""))


def _age(path: Path) -> float:
    return path.stat().st_mtime
