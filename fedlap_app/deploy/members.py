"""Who takes part: the members of before and those of new requests, if they fit together."""

from collections.abc import Sequence
from dataclasses import replace

import flwr

from fedlap_app.deploy.request import Request
from fedlap_app.errors import ConfigError
from fedlap_app.graphs.lookalikes import alike
from fedlap_app.privacy.federation import FederationMember
from fedlap_app.version import VERSION


def join_members(
    before: Sequence[FederationMember],
    requests: Sequence[Request],
    *,
    accept: bool = False,
    remove: Sequence[str] = (),
) -> tuple[FederationMember, ...]:
    """Members of a federation after a change, sorted by name.

    Parameters
    ----------
    before : members so far.
    requests : of those who join, or who have new keys.
    accept : new keys of a member.
    remove : names of members that leave.
    """
    known = {member.name: member for member in before}
    for name in remove:
        if name not in known:
            raise ConfigError(
                f"--remove {name!r}: the members are {', '.join(known) or 'none yet'}: name one"
            )
        del known[name]
    seen: set[str] = set()
    for request in requests:
        if request.name in seen:
            raise ConfigError(f"two requests are from {request.name!r}: give one for each name")
        seen.add(request.name)
        _check_versions(request)
        member = FederationMember(
            request.name, request.fingerprint, request.supernode_key, request.schema
        )
        _check_change(known.get(request.name), member, accept)
        known[request.name] = member
    if not known:
        raise ConfigError("there is no member: give the request.json of each organisation")
    members = tuple(sorted(known.values(), key=lambda member: member.name))
    _check_together(members)
    return members


def _check_versions(request: Request) -> None:
    for what, theirs, ours in (
        ("FedLap", request.version, VERSION),
        ("Flower", request.flower, flwr.__version__),
    ):
        if theirs != ours:
            raise ConfigError(
                f"{request.name} runs {what} {theirs} and the coordinator {ours}: install the "
                "same version at both and make a new request"
            )


def _check_change(old: FederationMember | None, new: FederationMember, allowed: bool) -> None:
    if old is None or allowed or replace(old, schema=new.schema) == new:
        return
    raise ConfigError(
        f"{new.name} is a member with the fingerprint {old.fingerprint} and its request shows "
        f"{new.fingerprint} or another SuperNode key: ask {new.name} whether it made new keys, "
        "then add --replace"
    )


def _check_together(members: Sequence[FederationMember]) -> None:
    first = members[0]
    for number, member in enumerate(members):
        if member.schema != first.schema:
            raise ConfigError(
                f"{member.name} and {first.name} have other classes or features: all "
                "organisations must list the same names in the same order in org.toml"
            )
        for other in members[:number]:
            if alike((other.name, member.name)):
                raise ConfigError(
                    f"{other.name!r} and {member.name!r} look alike: one of them takes another name"
                )
            if other.fingerprint == member.fingerprint:
                what = "FedLap identity"
            elif other.supernode_key == member.supernode_key:
                what = "SuperNode key"
            else:
                continue
            raise ConfigError(
                f"{other.name} and {member.name} have the same {what}: each organisation makes "
                "its own, in its own folders"
            )
