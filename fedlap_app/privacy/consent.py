"""Whether an organisation's own policy allows what a run asks of it.

Only the organisation's client asks, before its first product and before every further one, so
that no server can overrule it. What it answers names the limit and how far it would be passed;
what follows from the organisation's edges stays in its store.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from fedlap_app.errors import ConsentError
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.privacy.density import own_density
from fedlap_app.privacy.leakage import largest_vectors_auc, worst_case_auc
from fedlap_app.privacy.policy import Policy
from fedlap_app.privacy.tally import Tally, graph_mark

ATTACKER = (
    "the paper's worst-case attacker, who knows the exchanged vectors at this organisation's "
    "nodes, their images and all degrees, on the edges among these nodes; node count and edge "
    "density are those that the organisation alone knows, its own"
)

VECTORS, FEATURES, MOMENTS = "vectors", "feature columns", "feature moments"
WALKS = "walk columns"
"""What is counted, each by itself."""
COUNTED_BY_JOB = (MOMENTS,)
"""What counts once a job, and not by its columns."""


@dataclass(frozen=True)
class Asked:
    """What a job asks of an organisation.

    Attributes
    ----------
    job
        Id of the job.
    partners
        The other organisations.
    backend, operator
        Names.
    pads, hide_topology
        Whether ciphertexts carry pads and everyone sends to everyone.
    vectors
        Columns that the job exchanges, from its first to its last step.
    products
        Columns that each vector of the basis, or each feature, takes; they all count.
    kind
        What the columns are.
    """

    job: str
    partners: Collection[str]
    backend: str
    operator: str
    pads: bool
    hide_topology: bool
    vectors: int
    products: int = 1
    kind: str = VECTORS


@dataclass(frozen=True, eq=False)
class Consent:
    """An organisation's policy and what it has exchanged so far.

    Attributes
    ----------
    subgraph
        What the organisation holds.
    policy
        What it allows.
    pinned
        Organisations whose fingerprint its own file pins.
    tally
        Vectors exchanged.
    """

    subgraph: Subgraph
    policy: Policy
    pinned: frozenset[str]
    tally: Tally

    @cached_property
    def graph(self) -> str:
        """Fingerprint that the count belongs to."""
        return graph_mark(self.subgraph)

    @cached_property
    def density(self) -> float:
        """Edge density as the organisation alone knows it."""
        return own_density(self.subgraph)

    def exchanged(self, kind: str = VECTORS, *, besides: str = "") -> int:
        """Columns exchanged since the graph last changed, those of one job left out."""
        return self.tally.exchanged(self.counter(kind), besides=besides)

    def all_exchanged(self, *, besides: str = "") -> int:
        """Columns of all kinds: each is an equation about the edges."""
        return sum(self.exchanged(kind, besides=besides) for kind in (VECTORS, FEATURES, WALKS))

    def counter(self, kind: str) -> str:
        """Name of a count of the graph; that of vectors is the graph's own.

        Moments of columns are counted whatever the graph is: a new node shows in their difference.
        """
        return count_mark("" if kind in COUNTED_BY_JOB else self.graph, kind)

    def auc(self, vectors: int) -> float:
        """AUC of the attacker after so many vectors."""
        return worst_case_auc(vectors, self.subgraph.num_nodes, self.density)

    def note(self, job: str, vectors: int, kind: str = VECTORS) -> None:
        """Count the columns of a job, before they leave."""
        self.tally.note(self.counter(kind), job, vectors)

    def require(self, asked: Asked) -> None:
        """Refuse a job that passes a limit."""
        self.require_partners(asked)
        self._require_settings(asked)
        most = self._most(asked.kind)
        if most is not None:
            self._require_columns(most, self.exchanged(asked.kind, besides=asked.job), asked)
        if self.policy.largest_auc is not None and asked.kind not in COUNTED_BY_JOB:
            self._require_auc(self.all_exchanged(besides=asked.job) + asked.vectors)

    def _most(self, kind: str) -> int | None:
        """Columns of a kind that may be exchanged."""
        limits = {
            VECTORS: self.policy.most_vectors,
            FEATURES: self.policy.most_feature_columns,
            MOMENTS: self.policy.most_feature_moments,
            WALKS: self.policy.most_walk_columns,
        }
        return limits[kind]

    def require_partners(self, asked: Asked) -> None:
        """Refuse a job with too few pinned organisations, or one that shows who borders whom."""
        least = self.policy.least_pinned_partners
        found = len(self.pinned.intersection(asked.partners))
        if least is not None and found < least:
            raise ConsentError(
                f"its limit least-pinned-partners = {least} is not met: it has pinned {found} of "
                f"the {len(asked.partners)} other organisations of this run; it can pin more in "
                "its org.toml"
            )
        if self.policy.hide_topology and not asked.hide_topology:
            raise ConsentError(
                "its limit hide-topology = true does not allow this run, which shows the server "
                "who shares edges with whom: set hide-topology = true, and no method with "
                "learned rows"
            )

    def _require_settings(self, asked: Asked) -> None:
        for what, value, allowed in (
            ("backend", asked.backend, self.policy.backends),
            ("operator", asked.operator, self.policy.operators),
        ):
            if allowed is not None and value and value not in allowed:
                raise ConsentError(
                    f"its limit {what}s = {', '.join(allowed)} does not allow {what} = "
                    f"'{value}': set {what} = '{allowed[0]}'"
                )
        if not asked.pads and not self.policy.unpadded_sums:
            raise ConsentError(
                "its limit unpadded-sums = false does not allow insecure-no-pads: leave it out"
            )

    def _require_columns(self, most: int, before: int, asked: Asked) -> None:
        if before + asked.vectors <= most:
            return
        key = f"most-{asked.kind.replace(' ', '-')}"
        left = max(most - before, 0) // asked.products
        says = f"{before} were exchanged in other jobs since its graph last changed"
        if asked.products > 1:
            what = "this operator exchanges" if asked.kind == VECTORS else "this run takes"
            says += f" and {what} {asked.products} for each"
        if asked.kind in COUNTED_BY_JOB:
            raise ConsentError(
                f"its limit {key} = {most} does not allow another computation of {asked.kind}, as "
                f"{before} were made: the organisation can raise it in its org.toml, or set "
                "standardise = 'alone'"
            )
        remedy = f"set vectors to at most {left}" if left else "none are left"
        if asked.kind in (FEATURES, WALKS):
            remedy = f"the organisation can raise {key} in its org.toml"
        raise ConsentError(
            f"its limit {key} = {most} does not allow the {asked.vectors} {asked.kind} of this "
            f"job, as {says}: {remedy}"
        )

    def _require_auc(self, vectors: int) -> None:
        bound = self.policy.largest_auc
        if bound is not None and self.auc(vectors) > bound:
            raise ConsentError(
                f"its limit largest-auc = {bound:g} does not allow the vectors of this job; its "
                "own file consent.log says how many it allows: ask for fewer"
            )

    def allowed(self) -> str:
        """What the limits leave, for the organisation's own eyes."""
        so_far = self.all_exchanged()
        counts = {kind: self.exchanged(kind) for kind in (VECTORS, FEATURES, MOMENTS, WALKS)}
        counted = " and ".join(f"{n} {kind}" for kind, n in counts.items() if n or kind == VECTORS)
        says = f"{counted} exchanged since the graph last changed, AUC {self.auc(so_far):.4f}"
        if self.policy.largest_auc is not None:
            most = largest_vectors_auc(
                self.subgraph.num_nodes, self.density, self.policy.largest_auc
            )
            says += f"; largest-auc = {self.policy.largest_auc:g} allows {most} in all"
        return f"{says} ({ATTACKER})"


def count_mark(graph: str, kind: str) -> str:
    """Name of a count of a graph; that of vectors is the graph's fingerprint."""
    return graph if kind == VECTORS else f"{graph} {kind}".strip()
