"""What the server sees of the training that is planned, and whether a policy allows it."""

from collections.abc import Iterator

from fedlap_app.deploy.findings import Finding, bad, good, soon
from fedlap_app.methods.registry import method_class
from fedlap_app.privacy.federation import Federation
from fedlap_app.privacy.policy import Policy
from fedlap_app.settings import Settings


def training_findings(settings: Settings, count: int) -> Iterator[Finding]:
    """What the server sees of training."""
    if not method_class(settings.method).exchanges:
        return
    if not settings.sealed:
        yield soon(
            "training",
            "training-backend = 'plain' shows the server every update and score, which the policy "
            "of every organisation must allow (training-backends): take mask or ckks",
        )
    elif count < 3:
        yield soon(
            "training",
            f"sealed, but of {count} members each learns the other's update: the policy of every "
            "one must allow it (two-members), or let others join",
        )
    else:
        yield good("training", f"sealed ({settings.training_backend}): sums of {count} members")


def policy_findings(
    settings: Settings, federation: Federation, policy: Policy
) -> Iterator[Finding]:
    """Whether the organisation's own policy lets it take part in the training."""
    if not method_class(settings.method).exchanges:
        return
    count, allowed = len(federation.members), policy.training_backends
    if allowed is not None and settings.training_backend not in allowed:
        yield bad(
            "policy",
            f"[policy] does not allow training-backend = '{settings.training_backend}' "
            f"(training-backends = {', '.join(allowed)}): ask for another, or allow it",
        )
    elif settings.sealed and count < policy.fewest_members:
        yield bad(
            "policy",
            f"the federation has {count} members and [policy] asks for {policy.fewest_members} in "
            "every sum of training (least-members, two-members): let others join, or allow fewer",
        )
