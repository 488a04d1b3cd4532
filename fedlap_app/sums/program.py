"""What one job of sealed sums is for: its rounds, its state, what it leaves and what it gives away.

A program is its settings, the same at all members and at the server, and it makes a member's half.
The job at the member, the coordinator, consent, ledger, plan and audit ask it and know no program
by name; `programs` resolves names. After the handshake the members go through its rounds::

    half = program.half(site)
    while not half.done:
        mine = half.contribute()            # asked twice, it answers the same
        received, small = ...               # block sum for this member, small sum for all
        half.absorb(received, small)

Then either a leader solves a small problem whose solution all receive, or the last sums are the
end. All members are in the same round with the same widths, because what they decide depends on
settings and small sums only.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.privacy.consent import VECTORS
from fedlap_app.privacy.ledger import Entry
from fedlap_app.spectral.solvers import Contribution, Round
from fedlap_app.store.packing import Data
from fedlap_app.sums.job.price import Stated
from fedlap_app.sums.job.results import Facts, Results

if TYPE_CHECKING:
    from fedlap_app.store.job_files import JobFiles
    from fedlap_app.sums.job.agreement import Agreement
    from fedlap_app.sums.job.secrets import Secrets
    from fedlap_app.sums.job.spec import OfflineSpec

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
State = dict[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Extent:
    """Sizes of the data that a schedule depends on; 0: not known.

    Attributes
    ----------
    nodes
        Of the whole graph.
    features
        Feature columns that every node has.
    categories, classes
        Those of them that hold categories; classes.
    """

    nodes: int = 0
    features: int = 0
    categories: int = 0
    classes: int = 0


@dataclass(frozen=True)
class Footprint:
    """What a half takes of its member, messages and matrices of the graph left out.

    Attributes
    ----------
    multiplications
        Of dense matrices, in all rounds.
    held, left, state
        Bytes of its arrays while it runs, of its result, and of the state of a step.
    """

    multiplications: int = 0
    held: int = 0
    left: int = 0
    state: int = 0


@dataclass(frozen=True, eq=False)
class Site:
    """What a member's half works with.

    Attributes
    ----------
    job
        Id of the job.
    spec
        What the members agreed on before the handshake.
    agreement
        What they agreed on in it.
    subgraph
        What the organisation holds.
    values
        (n, columns) numbers in place of the features of its nodes (None: the features).
    files
        Files of the job.
    secrets
        The organisation's.
    root
        Folder of its store.
    """

    job: str
    spec: "OfflineSpec"
    agreement: "Agreement"
    subgraph: Subgraph
    values: Array | None
    files: "JobFiles"
    secrets: "Secrets"
    root: Path

    @property
    def members(self) -> int:
        """How many take part."""
        return len(self.agreement.keys.members)


class Half(ABC):
    """One member's half of a program between two rounds."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether no sum is needed any more."""

    @property
    @abstractmethod
    def exchanged(self) -> int:
        """Columns that the sums so far have brought, as all members count them."""

    @property
    @abstractmethod
    def small_kind(self) -> str:
        """What the small numbers of this round are, for the ledger."""

    @abstractmethod
    def contribute(self) -> Contribution:
        """What the member adds to the round; changes nothing."""

    @abstractmethod
    def absorb(self, received: Array | None, small: Array) -> None:
        """Take in the sums of the round."""

    @abstractmethod
    def settle(self) -> State:
        """The state as new arrays, to be stored; the half goes on from the same ones.

        So a process that goes on and one that was started anew work on arrays of one memory
        layout, and BLAS rounds alike.
        """

    @abstractmethod
    def restore(self, state: State, stored: Data) -> None:
        """Go on from a stored state, empty before the first sums, and what was stored with it."""

    def stored(self) -> list[Data]:
        """What a record has to hold besides the state; the rest is in files written before it."""
        return []

    def solve(self) -> list[Data]:
        """The leader's solution; what `result` gets at all members."""
        raise ProtocolError("The job asks for a solution that its program has not.")

    @property
    def solution_numbers(self) -> int:
        """Numbers in that solution."""
        return 0

    @abstractmethod
    def result(self, facts: Facts, parts: Sequence[Data], price: Stated | None) -> object:
        """What is left in the store.

        Parameters
        ----------
        facts
            What it belongs to.
        parts
            The leader's solution, if the program has one.
        price
            What the job has cost, if a solution carried it.
        """


class Program(ABC):
    """One kind of job with its settings; a frozen dataclass of them.

    Attributes
    ----------
    name
        In headers, messages and on the command line.
    sums
        Whether sums follow the handshake.
    edges
        Whether it is about edges between organisations, which the handshake compares then.
    solution
        Phase of the leader's solution after the last sums; empty: there is none.
    counted
        As what its columns count for consent, one of the kinds of `privacy.consent`.
    blocks, block_sums
        What block products and their sums are called in the ledger.
    shows_holders
        Whether the server learns who shares nodes with whom.
    least_members
        Members without whom it makes no sense.
    kept_as
        What the files of its results in a store begin with; empty: it leaves none.
    lasting
        Whether a result is used again even where a run asks for a new basis.
    """

    name: ClassVar[str]
    sums: ClassVar[bool] = True
    edges: ClassVar[bool] = True
    solution: ClassVar[str] = ""
    counted: ClassVar[str] = VECTORS
    blocks: ClassVar[str] = "block products"
    block_sums: ClassVar[str] = "block sums"
    shows_holders: ClassVar[bool] = False
    least_members: ClassVar[int] = 2
    kept_as: ClassVar[str] = ""
    lasting: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def from_settings(cls, settings: Any) -> "Program":  # noqa: ANN401 - a room above
        """The program that the settings of a run describe."""

    @abstractmethod
    def agreed(self) -> dict[str, Any]:
        """What members compare, as JSON holds it."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Columns of the usual block product."""

    @property
    def allowed_operator(self) -> str:
        """Operator that an organisation's policy may exclude; empty: it has none."""
        return ""

    @property
    def products(self) -> int:
        """Columns that one unit of the setting of its size takes."""
        return 1

    @property
    def large_sums(self) -> bool:
        """Whether sums may grow beyond what the usual profile holds."""
        return False

    @abstractmethod
    def schedule(self, extent: Extent) -> Iterator[Round]:
        """Every round after the handshake, as if none had to be repeated."""

    def columns(self, extent: Extent) -> int:
        """Columns of all block products, which is what consent is asked for."""
        return sum(this.width for this in self.schedule(extent))

    def rounds(self, extent: Extent) -> int:
        """Round trips after the handshake."""
        return sum(1 for _ in self.schedule(extent)) + bool(self.solution)

    @abstractmethod
    def describe(self, extent: Extent) -> str:
        """One line for a plan."""

    def is_exact(self, extent: Extent) -> bool:
        """Whether the schedule cannot end before its time."""
        return True

    def solution_bytes(self, extent: Extent) -> tuple[int, ...]:
        """Bytes of the parts of the leader's solution."""
        return ()

    def closing_bytes(self, held: int) -> int:
        """Bytes of what a member with so many nodes and copies says at the end of the handshake."""
        return 0

    @abstractmethod
    def footprint(self, rows: int, extent: Extent) -> Footprint:
        """What a member with so many nodes needs."""

    def unheard(self, subgraph: Subgraph) -> Bools | None:
        """Own nodes for which nobody may contribute; None: there are none."""
        return None

    @abstractmethod
    def reveals(self, parts: Sequence[Subgraph]) -> dict[str, Any]:
        """What the program gives away of these parts: `says`, sentences, and numbers by name."""

    def results(self, root: Path, *, durable: bool) -> Results[Any] | None:
        """Where its results lie in an organisation's store; None: it leaves none to be reused."""
        return None

    def prepare(  # noqa: B027 - most programs have nothing to prepare
        self, part: Subgraph, root: Path, spec: str, data: str, *, durable: bool
    ) -> None:
        """Bring what is in the store into the form in which it is looked for; nothing leaves.

        Parameters
        ----------
        part, root
            What the organisation holds, and its store.
        spec, data
            Digest of the settings and fingerprint of the data that are looked for.
        durable
            Whether what is written must survive a power failure.
        """

    def half(self, site: Site) -> Half:
        """A member's half."""
        raise ProtocolError(f"The program {self.name} ends with the handshake.")

    def close(self, site: Site) -> tuple[Data, tuple[Entry, ...]]:
        """Of a program without sums: what it tells the server, and the ledger's entries."""
        raise ProtocolError(f"The program {self.name} goes on after the handshake.")
