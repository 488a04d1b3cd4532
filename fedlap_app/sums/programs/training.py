"""The program `training`: the handshake alone, whose keys seal the sums of a training job."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.privacy.ledger import Entry
from fedlap_app.spectral.solvers import Round
from fedlap_app.store import names
from fedlap_app.store.packing import Data
from fedlap_app.sums.program import Extent, Footprint, Program, Site
from fedlap_app.sums.training.kept_keys import (
    FORMAT,
    JobKeys,
    KeptKeys,
    TrainingFacts,
    job_files,
    jobs_with_files,
)


@dataclass(frozen=True)
class Training(Program):
    """Keys for the sums of one training.

    Attributes
    ----------
    run
        Digest of all settings of the run.
    """

    run: str

    name: ClassVar[str] = "training"
    sums: ClassVar[bool] = False
    edges: ClassVar[bool] = False
    least_members: ClassVar[int] = 1

    @classmethod
    def from_settings(cls, settings: Any) -> "Training":  # noqa: ANN401 - a room above
        """All settings of a run count."""
        return cls(settings.digest())

    def agreed(self) -> dict[str, Any]:
        """Digest of the settings."""
        return {"training": self.run}

    @property
    def width(self) -> int:
        """Columns of a block, which nobody sends."""
        return 1

    def schedule(self, extent: Extent) -> Iterator[Round]:
        """Nothing after the handshake: rounds are those of the training."""
        yield from ()

    def describe(self, extent: Extent) -> str:
        """There is nothing to choose."""
        return "keys for training, by the handshake alone"

    def footprint(self, rows: int, extent: Extent) -> Footprint:
        """Nothing but messages."""
        return Footprint()

    def reveals(self, parts: Sequence[Subgraph]) -> dict[str, Any]:
        """Nothing about data."""
        return {"says": ["The handshake tells nothing about the data of any organisation."]}

    def results(self, root: Path, *, durable: bool) -> KeptKeys:
        """Keys of jobs that are not finished, with which a later run goes on."""
        return KeptKeys(root / names.TRAININGS, durable=durable)

    def close(self, site: Site) -> tuple[Data, tuple[Entry, ...]]:
        """Keep the keys; a job that is made again, in a simulation, begins anew."""
        keys, root, durable = site.agreement.keys, site.files.path, site.files.durable
        job_files(root, site.job, durable=durable).drop_all()
        facts = TrainingFacts(
            job=site.job,
            members=keys.members_hash,
            spec=site.spec.digest(site.secrets.seed),
            data=site.subgraph.fingerprint(),
            organisations=keys.members,
            rows=0,
            columns=0,
            numbers=0,
            format=FORMAT,
        )
        kept = self.results(root, durable=durable)
        kept.save(JobKeys(facts, keys))
        # Whoever can begin jobs could fill the disk with what those leave that never end.
        for job in jobs_with_files(root) - {each.job for each in kept.facts()}:
            files = job_files(root, job, durable=durable)
            if not files.has(names.SAID):
                files.drop_all()
        return b"", ()
