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
        Vectors that the job exchanges, from its first to its last step.
    products
        Products that each vector of the basis takes, which all count.
    """

    job: str
    partners: Collection[str]
    backend: str
    operator: str
    pads: bool
    hide_topology: bool
    vectors: int
    products: int = 1


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

    def exchanged(self, *, besides: str = "") -> int:
        """Vectors exchanged since the graph last changed, those of one job left out."""
        return self.tally.exchanged(self.graph, besides=besides)

    def auc(self, vectors: int) -> float:
        """AUC of the attacker after so many vectors."""
        return worst_case_auc(vectors, self.subgraph.num_nodes, self.density)

    def note(self, job: str, vectors: int) -> None:
        """Count the vectors of a job, before they leave."""
        self.tally.note(self.graph, job, vectors)

    def require(self, asked: Asked) -> None:
        """Refuse a job that passes a limit."""
        self.require_partners(asked)
        self._require_settings(asked)
        if self.policy.most_vectors is not None or self.policy.largest_auc is not None:
            before = self.exchanged(besides=asked.job)
            self._require_vectors(before, asked)
            self._require_auc(before + asked.vectors)

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
            if allowed is not None and value not in allowed:
                raise ConsentError(
                    f"its limit {what}s = {', '.join(allowed)} does not allow {what} = "
                    f"'{value}': set {what} = '{allowed[0]}'"
                )
        if not asked.pads and not self.policy.unpadded_sums:
            raise ConsentError(
                "its limit unpadded-sums = false does not allow insecure-no-pads: leave it out"
            )

    def _require_vectors(self, before: int, asked: Asked) -> None:
        most = self.policy.most_vectors
        if most is None or before + asked.vectors <= most:
            return
        left = max(most - before, 0) // asked.products
        says = f"{before} were exchanged in other jobs since its graph last changed"
        if asked.products > 1:
            says += f" and this operator exchanges {asked.products} for each"
        raise ConsentError(
            f"its limit most-vectors = {most} does not allow the {asked.vectors} vectors of this "
            f"job, as {says}: {f'set vectors to at most {left}' if left else 'none are left'}"
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
        so_far = self.exchanged()
        says = (
            f"{so_far} vectors exchanged since the graph last changed, AUC {self.auc(so_far):.4f}"
        )
        if self.policy.largest_auc is not None:
            most = largest_vectors_auc(
                self.subgraph.num_nodes, self.density, self.policy.largest_auc
            )
            says += f"; largest-auc = {self.policy.largest_auc:g} allows {most} in all"
        return f"{says} ({ATTACKER})"
