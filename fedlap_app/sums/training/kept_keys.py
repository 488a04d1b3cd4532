"""Keys of training jobs in an organisation's store, as long as the job is not finished."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fedlap_app.errors import ProtocolError
from fedlap_app.store import names
from fedlap_app.store.job_files import JobFiles
from fedlap_app.store.packing import Data
from fedlap_app.sums.job.results import Facts, Results
from fedlap_app.sums.keyring import KeyRing

FORMAT = 1
"""What pads, sums and records of a job are like; whoever changes any of them counts it on."""


@dataclass(frozen=True)
class TrainingFacts(Facts):
    """What the keys of a training job belong to, and the format that the job began with.

    Attributes
    ----------
    format
        0: it began before formats were counted.
    """

    format: int = 0


@dataclass(frozen=True, eq=False)
class JobKeys:
    """The keys of one job and what it belongs to."""

    facts: Facts
    keys: KeyRing


class KeptKeys(Results[JobKeys]):
    """Keys of unfinished jobs: for the same settings, data and members those of the newest."""

    kind: ClassVar[str] = "training keys"
    most: ClassVar[int] = 16
    form: ClassVar[type[TrainingFacts]] = TrainingFacts

    def _pack(self, result: JobKeys) -> tuple[Facts, list[Data]]:
        return result.facts, [result.keys.dump()]

    def _unpack(self, facts: Facts, parts: list[memoryview]) -> JobKeys:
        return JobKeys(facts, KeyRing.load(bytes(parts[0])))

    def of_job(self, job: str) -> JobKeys:
        """Keys of a job."""
        for facts in self.facts():
            if facts.job == job:
                _require_format(facts)
                return self.load(facts)
        raise ProtocolError(
            f"there are no keys of training job {job[:40]!r} in the store: it is finished, or "
            "another has taken its place; start a new run"
        )

    def drop(self, job: str) -> None:
        """Delete the keys of a finished job."""
        self._files.drop(*(self._key(facts) for facts in self.facts() if facts.job == job))


def _require_format(facts: Facts) -> None:
    """Refuse a job that another release began, whose sums would not open."""
    begun = facts.format if isinstance(facts, TrainingFacts) else 0
    if begun != FORMAT:
        raise ProtocolError(
            f"training job {facts.job[:40]!r} is not finished and was begun by another release "
            f"(format {begun}, where this one goes on with {FORMAT}): start the run again with "
            "resume = false, which trains from the beginning"
        )


class TrainingFiles(JobFiles):
    """Files of one training job; they stand beside each other in the store."""

    def drop_all(self) -> None:
        """Delete whatever an earlier attempt at the job has left."""
        for path in self.path.glob(f"{self.prefix}*"):
            path.unlink(missing_ok=True)


def job_files(root: Path, job: str, *, durable: bool) -> TrainingFiles:
    """Files of one training job in the store at `root`."""
    if not job.isalnum():
        raise ProtocolError(f"{job[:40]!r} is no job id; it was altered.")
    return TrainingFiles(root, durable=durable, prefix=names.SEALED_FILE(job=job, what=""))


def jobs_with_files(root: Path) -> set[str]:
    """Training jobs that have files, finished ones too."""
    found = (names.SEALED_FILE.read(path.name) for path in root.glob("*"))
    return {fields["job"] for fields in found if fields}
