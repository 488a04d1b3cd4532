"""One job before the organisation's consent, and the ledger that says what became of it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedlap_app.errors import ConsentError
from fedlap_app.privacy.consent import FEATURES, WALKS, Asked
from fedlap_app.privacy.ledger import Ledger
from fedlap_app.privacy.policy import SIMULATED
from fedlap_app.store import names
from fedlap_app.sums.ckks.profiles import is_padded
from fedlap_app.sums.job.party import Party, log


class Permission:
    """What the organisation allows one job.

    Parameters
    ----------
    party
        The organisation.
    job
        Id of the job.
    """

    def __init__(self, party: Party, job: str) -> None:
        self._party = party
        self._job = job

    def require(self, members: Sequence[str], vectors: int = 0) -> None:
        """Refuse the job, or the rest of it, if it passes a limit.

        Parameters
        ----------
        members
            Who takes part.
        vectors
            Columns up to the next product; those that the settings plan count in any case.
        """
        if self._party.policy == SIMULATED:
            return
        spec, consent = self._party.spec, self._party.consent
        program = spec.program
        asked = Asked(
            job=self._job,
            partners=[name for name in members if name != self._party.name],
            backend=spec.backend,
            operator=program.allowed_operator,
            pads=is_padded(spec.profile),
            hide_topology=spec.hide_topology and not program.shows_holders,
            vectors=max(vectors, program.columns(self._party.extent)),
            products=program.products,
            kind=program.counted,
        )
        try:
            consent.require(asked) if program.sums else consent.require_partners(asked)
        except ConsentError as error:
            time = datetime.now(UTC).isoformat(timespec="seconds")
            line = f"{time} job {self._job} refused: {error}; {consent.allowed()}"
            log.warning("Refused; see %s", self._party.note(names.REFUSED, [line]))
            raise

    def say_what_is_weaker(self) -> None:
        """A line in the organisation's own log for whatever protects less than the defaults."""
        spec, secrets = self._party.spec, self._party.secrets
        shown = not spec.hide_topology or spec.program.shows_holders
        weaker = {
            f"the server reads every number (backend = '{spec.backend}')": not spec.facts.sealed,
            "ciphertexts carry no pads (insecure-no-pads)": not is_padded(spec.profile),
            "the server learns who shares edges with whom": shown,
            "organisations that nobody pinned are accepted (trust-on-first-use)": secrets.trust,
            "sums of its features leave (most-feature-columns)": spec.program.counted == FEATURES,
            "rows of walks over its edges leave (most-walk-columns)": spec.program.counted == WALKS,
        }
        for what, applies in weaker.items():
            if applies and not secrets.simulated:
                log.warning("%s: its policy allows that in this job %s", self._party.name, what)

    def count(self, vectors: int) -> None:
        """Take down the columns of the job up to the next product, before it leaves."""
        self._party.consent.note(self._job, vectors, self._party.spec.program.counted)

    def new_ledger(self, members: Sequence[str]) -> Ledger:
        """The ledger of a job that begins."""
        return Ledger(self._folder, self._facts(members), durable=self._party.durable)

    def open_ledger(self) -> Ledger:
        """The ledger of a job that goes on in a new process."""
        return Ledger.open(self._folder, self._facts, durable=self._party.durable)

    @property
    def _folder(self) -> Path:
        return ledger_folder(self._party.root, self._job)

    def _facts(self, members: Sequence[str] = ()) -> dict[str, Any]:
        party = self._party
        return {
            "organisation": party.name,
            "phase": "offline",
            "job": self._job,
            "members": list(members),
            "backend": party.spec.backend,
            "operator": party.spec.program.allowed_operator,
            "program": party.spec.program.name,
            "counted": party.spec.program.counted,
            "graph": party.consent.graph,
            "nodes": party.subgraph.num_nodes,
            "density": party.consent.density,
        }


def ledger_folder(root: Path, job: str) -> Path:
    """Folder of a job's ledger in the store at `root`; it outlives the files of the job."""
    return root / names.JOBS / names.PHASE(job=job)
