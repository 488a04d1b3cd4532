"""The program `feature-moments`: what the columns of all organisations look like together.

Eight small sums and no block products: who holds a column, counts, means and distances from them
(`graphs.moments`). There is no leader: whoever has opened the last sums has the
encoding by which all read their features. A result stays until the members or the own data change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from fedlap_app.errors import ConsentError, ProtocolError
from fedlap_app.graphs.encoding import Encoding
from fedlap_app.graphs.kinds import CATEGORY
from fedlap_app.graphs.learned import learn_alone
from fedlap_app.graphs.moments import LEAST, Moments, Shape
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.privacy.consent import MOMENTS
from fedlap_app.spectral.solvers import Contribution, Round
from fedlap_app.store.packing import Data
from fedlap_app.sums.job.price import Stated
from fedlap_app.sums.job.results import Facts, Results
from fedlap_app.sums.program import Array, Extent, Footprint, Half, Program, Site, State

_NUMBER = 8
_SAYS = (
    "holders of columns and hashed categories",
    "counts of values",
    "sums of distances of logarithms",
    "sums of values",
    "sums of distances from the mean",
    "sums of distances, cut",
    "sums of sizes of distances, cut",
    "sums of powers of distances",
)


@dataclass(frozen=True, eq=False)
class LearnedEncoding:
    """How an organisation reads its features, and the job that gave it."""

    encoding: Encoding
    facts: Facts


class Encodings(Results[LearnedEncoding]):
    """The encodings of one store."""

    kind = "encoding of features"

    def of_job(self, job: str) -> LearnedEncoding | None:
        """What a job gave, whatever the data are now."""
        found = [facts for facts in self.facts() if facts.job == job]
        return self.load(found[0]) if found else None

    def _pack(self, result: LearnedEncoding) -> tuple[Facts, list[Data]]:
        return result.facts, [result.encoding.to_bytes()]

    def _unpack(self, facts: Facts, parts: list[memoryview]) -> LearnedEncoding:
        return LearnedEncoding(Encoding.from_bytes(parts[0]), facts)


class MomentsHalf(Half):
    """One member's half: the sums so far, from which everything else follows."""

    def __init__(self, program: "FeatureMoments", site: Site) -> None:
        least = min(LEAST, site.members) if site.secrets.simulated else LEAST
        if site.members < least:
            raise ConsentError(
                f"sums of feature columns over {site.members} organisations would show each what "
                f"the other holds; they need {LEAST}: set standardise = 'alone'"
            )
        self.site = site
        self.moments = Moments(
            site.subgraph,
            site.agreement.keys.group_secret("categories"),
            members=site.members,
            least=least,
            classes=program.classes,
        )

    @property
    def done(self) -> bool:
        """Whether all sums are there."""
        return self.moments.done

    @property
    def exchanged(self) -> int:
        """No column of a block product."""
        return 0

    @property
    def small_kind(self) -> str:
        """What the sums of this round are."""
        return _SAYS[len(self.moments.sums)]

    def contribute(self) -> Contribution:
        """The numbers of this round."""
        return Contribution(None, self.moments.contribute())

    def absorb(self, received: Array | None, small: Array) -> None:
        """Take in the sums of the round."""
        if self.done:
            raise ProtocolError("The feature moments are finished; the message came too late.")
        self.moments.absorb(small)

    def settle(self) -> State:
        """All sums so far."""
        self.moments.sums = [each.copy() for each in self.moments.sums]
        return {f"{number}": each for number, each in enumerate(self.moments.sums)}

    def restore(self, state: State, stored: Data) -> None:
        """Take in the same sums again."""
        for number in range(len(state)):
            self.moments.absorb(state[f"{number}"].astype("f8"))

    def result(self, facts: Facts, parts: Sequence[Data], price: Stated | None) -> LearnedEncoding:
        """The encoding, with the organisation's own where too few hold a column."""
        if not self.done:
            raise ProtocolError("The feature moments are not finished; the message came too early.")
        own = learn_alone(self.site.subgraph)
        return LearnedEncoding(self.moments.encoding().filled_by(own), facts)


@dataclass(frozen=True)
class FeatureMoments(Program):
    """Settings of the sums.

    Attributes
    ----------
    classes
        Whether training nodes are counted by class.
    """

    classes: bool = False

    name: ClassVar[str] = "feature-moments"
    kept_as: ClassVar[str] = "feature-moments"
    edges: ClassVar[bool] = False
    counted: ClassVar[str] = MOMENTS
    lasting: ClassVar[bool] = True

    @classmethod
    def from_settings(cls, settings: Any) -> "FeatureMoments":  # noqa: ANN401 - a room above
        """What the settings of a run say."""
        return cls(classes=settings.class_weights == "balanced")

    def agreed(self) -> dict[str, Any]:
        """All settings."""
        return {"program": self.name, **asdict(self)}

    @property
    def width(self) -> int:
        """There is no block product; layouts are made for one column."""
        return 1

    def schedule(self, extent: Extent) -> Iterator[Round]:
        """A small sum in every round."""
        shape = Shape(
            extent.features - extent.categories,
            extent.categories,
            extent.classes if self.classes else 0,
        )
        for length in shape.lengths:
            yield Round(0, length)

    def columns(self, extent: Extent) -> int:
        """One computation, which is what is counted."""
        return 1

    def describe(self, extent: Extent) -> str:
        """Columns and rounds."""
        return f"means, deviations and categories of {extent.features} feature columns"

    def footprint(self, rows: int, extent: Extent) -> Footprint:
        """Sums of all rounds, blocks of columns as they are summed."""
        held = _NUMBER * sum(this.small for this in self.schedule(extent))
        return Footprint(held=held + 4 * 64 * _NUMBER * rows, left=held, state=held)

    def reveals(self, parts: Sequence[Subgraph]) -> dict[str, Any]:
        """What all organisations learn of columns."""
        numbers, categories = _kinds_of(parts)
        says = [
            f"All organisations learn, of each of the {numbers} columns of numbers that {LEAST} of "
            "them hold (in a simulation of two, both), over the nodes of all: how many hold it, "
            "counts of values and of others than 0, log2 |x| in the mean and its mean distance "
            "from that, mean and mean distance of the values with and without outliers, and four "
            "moments of the distances and of their asinh.",
            "Sums over three organisations hide each of them from the others, not from two that "
            "work together. The server learns the number of columns.",
            "A second computation after one node has changed shows that node's values in the "
            "difference: a result is kept and used again, and most-feature-moments limits how "
            "many are made.",
        ]
        if categories:
            says.append(
                f"Of {categories} columns of categories all learn how many organisations, and "
                "which mean share of their nodes, have one in each of 16,384 hashed slots. Who "
                "guesses a text learns this of it; the server cannot, as the hash has a key."
            )
        if self.classes:
            says.append("All learn how many training nodes each class has, over all of them.")
        return {"says": says, "numbers": numbers, "categories": categories}

    def results(self, root: Path, *, durable: bool) -> Encodings:
        """Finished encodings of a store."""
        return Encodings(root / self.kept_as, durable=durable)

    def half(self, site: Site) -> MomentsHalf:
        """A member's half."""
        return MomentsHalf(self, site)


def _kinds_of(parts: Sequence[Subgraph]) -> tuple[int, int]:
    categories = parts[0].kinds.count(CATEGORY)
    return parts[0].num_features - categories, categories
