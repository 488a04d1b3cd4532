"""What others can learn of edges, as a verdict and as curves over the vectors exchanged."""

from collections.abc import Sequence
from dataclasses import dataclass

from fedlap_app.privacy.leakage import (
    alpha_of,
    largest_sum,
    largest_vectors,
    worst_case_auc,
)
from fedlap_app.reports.charts import Axis, Chart, lines, upright
from fedlap_app.reports.elements import FAIR, GOOD, POOR, Figure

DEGREES = (2, 4, 8, 16)
USUAL_DEGREE = 4
_POINTS = (1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 130, 200, 300, 450, 700, 1000)
_LITTLE, _MUCH = 0.6, 0.75
ATTACKER = "the paper's worst-case attacker (all others together, who know every other entry)"
QUESTION = "What can others learn of edges?"


@dataclass(frozen=True)
class Target:
    """Whose edges are looked for: its nodes, their density, and where these numbers are from."""

    name: str
    nodes: int
    density: float
    source: str

    @classmethod
    def assumed(cls, name: str, slots: int, degree: float) -> "Target":
        """An organisation of which only its public size is known."""
        source = f"{slots} slots, the size that is public; {degree:g} neighbours a node assumed"
        return cls(name, slots, min(degree / max(slots - 1, 1), 0.5), source)

    @property
    def bound(self) -> int:
        """The most vectors at which precision and recall of the attacker stay within 1."""
        return largest_vectors(self.nodes, self.density)

    def auc(self, vectors: int) -> float:
        """How well the attacker tells edges from other pairs."""
        return worst_case_auc(vectors, self.nodes, self.density)


def exposure_figure(target: Target | None, vectors: int) -> Figure:
    """The figure of the first screen."""
    if not vectors:
        says = "no sums over edges were exchanged; models and scores were"
        return Figure(QUESTION, "0 vectors", says, GOOD)
    if target is None:
        return Figure(
            QUESTION,
            f"{vectors} vectors",
            "exchanged by an earlier run, whose report judges them: `fedlap audit` does so, too",
        )
    auc = target.auc(vectors)
    tone = GOOD if auc <= _LITTLE else FAIR if auc <= _MUCH else POOR
    where = "above" if vectors > target.bound else "within"
    says = (
        f"{vectors} vectors are {where} the {target.bound} within which the worst-case attacker "
        f"guesses ({target.source})"
    )
    return Figure(QUESTION, f"AUC {auc:.3f}", says, tone)


def verdict(target: Target, vectors: int) -> str:
    """What the audit comes to, in one sentence."""
    bound = target.bound
    where = "above" if vectors > bound else "within"
    return (
        f"{vectors} vectors are {where} the {bound} at which precision and recall of "
        f"{ATTACKER} begin to add up to more than 1 at {target.name} ({target.source})"
    )


def advice(target: Target, vectors: int) -> str:
    """What to do about it."""
    if vectors <= target.bound:
        return "An organisation keeps it there by `most-vectors` in the table [policy] of org.toml."
    return (
        f"`--vectors {target.bound}` stays within; what fewer vectors cost in accuracy: "
        "`fedlap bench frontier`. An organisation sets its own limit by `most-vectors` in the "
        "table [policy] of org.toml."
    )


def exposure_charts(targets: Sequence[Target], vectors: int) -> list[Chart]:
    """AUC, and the sum of precision and recall, over the vectors exchanged."""
    rows = [
        {
            "vectors": count,
            "auc": target.auc(count),
            "sum": largest_sum(_alpha(target, count), target.density),
            "target": target.name,
        }
        for target in targets
        for count in sorted({*_POINTS, max(vectors, 1)})
        if count <= target.nodes
    ]
    across = Axis("vectors", "vectors exchanged", logarithmic=True)
    mark = upright(vectors, f"this run: {vectors}") if vectors else []
    says = "; ".join(
        f"{target.name}: {target.auc(vectors):.3f} after {vectors}" for target in targets
    )
    return [
        lines(
            "How well the worst-case attacker tells edges from other pairs (AUC)",
            f"One half is guessing, one is certainty. {says}.",
            rows, across, Axis("auc", "AUC", ".2f", (0.5, 1.0)), "target", marks=mark,
        ),
        lines(
            "Precision plus recall of the same attacker, at its best threshold",
            "Up to 1 it does no better than calling all pairs connected, or none.",
            rows, across, Axis("sum", "precision + recall", ".2f"), "target", marks=mark,
        ),
    ]  # fmt: skip


def _alpha(target: Target, vectors: int) -> float:
    return alpha_of(min(vectors, target.nodes), target.nodes, target.density)
