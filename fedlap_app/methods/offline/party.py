"""One organisation as the offline phase sees it: its part of the graph, its secrets, its store."""

import logging
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fedlap_app.errors import ProtocolError
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.offline.bases import Bases
from fedlap_app.methods.offline.job_files import JobFiles
from fedlap_app.methods.offline.newest import Newest
from fedlap_app.methods.offline.secrets import Secrets
from fedlap_app.methods.offline.spec import OfflineSpec
from fedlap_app.privacy.consent import Consent
from fedlap_app.privacy.policy import SIMULATED, Policy
from fedlap_app.privacy.tally import Tally
from fedlap_app.secure.card import issue_card

ANSWERED = "answered"
_PREFIX = "offline-"
_JOBS_KEPT = 3
_PENDING = "card"

log = logging.getLogger("fedlap")


@dataclass(frozen=True)
class Pending:
    """The card that was issued last, for a job that has not begun."""

    hello: str
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
    root
        Folder of the organisation's store.
    policy
        What the organisation allows.
    pinned
        Organisations whose fingerprint it has pinned by itself.
    """

    subgraph: Subgraph
    spec: OfflineSpec
    secrets: Secrets
    root: Path
    policy: Policy = SIMULATED
    pinned: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """Name of the organisation."""
        return self.subgraph.name

    @cached_property
    def data(self) -> str:
        """Fingerprint of the subgraph."""
        return self.subgraph.fingerprint()

    @cached_property
    def digest(self) -> str:
        """Digest of the settings."""
        return self.spec.digest(self.secrets.seed)

    @cached_property
    def bases(self) -> Bases:
        """Finished bases of the store."""
        return Bases(self.root / "basis", durable=self.durable)

    @property
    def durable(self) -> bool:
        """Whether writes must survive a power failure."""
        return not self.secrets.simulated

    @cached_property
    def consent(self) -> Consent:
        """The organisation's policy and what it has exchanged so far."""
        tally = Tally(self.root, durable=self.durable)
        return Consent(self.subgraph, self.policy, self.pinned, tally)

    @property
    def folder(self) -> Path:
        """Where logs and parts of messages go."""
        return self.root / "offline"

    @cached_property
    def common(self) -> JobFiles:
        """Files that belong to no job.

        They stand beside each other in the store: a folder takes longer to make than to fill.
        """
        return JobFiles(self.root, durable=self.durable, prefix=_PREFIX)

    @cached_property
    def post(self) -> JobFiles:
        """Parts of messages that are too large to travel at once."""
        return JobFiles(self.folder / "post", durable=False)

    def job(self, job: str) -> JobFiles:
        """Files of one job."""
        return job_files(self.root, job, durable=self.durable)

    def answers(self, job: str) -> Newest:
        """What was answered in one job."""
        return self.job(job).newest(ANSWERED)

    def jobs(self) -> list[str]:
        """Ids of the jobs that have files, the newest last."""
        files = sorted(self.root.glob(f"{_PREFIX}*-{ANSWERED}-*"), key=_age)
        found = dict.fromkeys(path.name.split("-")[1] for path in reversed(files))
        return [*found][::-1]

    def forget(self, job: str) -> None:
        """Delete the files of a job."""
        self._delete(job)

    def forget_answers(self, job: str) -> None:
        """Let a job start again; what it gave stays for a run that trains with it."""
        self._delete(job, ANSWERED)

    def _delete(self, job: str, what: str = "") -> None:
        for path in self.root.glob(f"{_PREFIX}{job}-{what}*"):
            path.unlink(missing_ok=True)

    def make_room(self) -> None:
        """Delete the oldest jobs but for a few."""
        for job in self.jobs()[:-_JOBS_KEPT]:
            self.forget(job)

    def pending(self) -> Pending | None:
        """The card issued last."""
        if not self.common.has(_PENDING):
            return None
        hello, job_secret, card = map(bytes, self.common.read(_PENDING, 3))
        return Pending(hello.decode(), job_secret, card)

    def issue(self, hello: str) -> Pending:
        """The card for a hello; the same hello gets the same card."""
        last = self.pending()
        if last is not None and last.hello == hello:
            return last
        job_secret = self.secrets.job_secret(self.digest, self.data)
        card = issue_card(self.secrets.identity, self.name, job_secret, self.digest)
        self.common.write(_PENDING, hello.encode(), job_secret, card)
        return Pending(hello, job_secret, card)

    def retire(self, hello: str) -> None:
        """Delete the secret of a job that ended; a card issued since stays."""
        last = self.pending()
        if last is not None and last.hello == hello:
            self.common.drop(_PENDING)

    def note(self, file: str, lines: list[str]) -> Path:
        """Write what only the organisation may read to a log in its store."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.folder / file
        with path.open("a", encoding="utf-8") as handle:
            handle.writelines(f"{line}\n" for line in lines)
        path.chmod(0o600)
        return path


def job_files(root: Path, job: str, *, durable: bool) -> JobFiles:
    """Files of one job in the store at `root`."""
    if not job.isalnum():
        raise ProtocolError(f"{job!r} is no job id; it was altered.")
    return JobFiles(root, durable=durable, prefix=f"{_PREFIX}{job}-")


def _age(path: Path) -> float:
    return path.stat().st_mtime
