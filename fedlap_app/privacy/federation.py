"""The federation file: who takes part, where the SuperLink is, and what everyone may trust.

Nothing in it is secret. The coordinator writes it, every organisation gets a copy, and a client
takes the pinned fingerprints of the others from it.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs.checks import check_name
from fedlap_app.graphs.lookalikes import alike
from fedlap_app.privacy.addresses import host_and_port

FILE = "federation.toml"


@dataclass(frozen=True)
class FederationMember:
    """One organisation of the federation; the fields are those of its request."""

    name: str
    fingerprint: str
    supernode_key: str
    schema: str


@dataclass(frozen=True)
class Federation:
    """What the federation file says.

    Attributes
    ----------
    name
        Of the federation.
    version, flower
        Versions that all must run.
    servers
        Names and addresses of the SuperLink; organisations use the first.
    port
        Port that organisations use.
    listen
        Address and port at which the SuperLink itself listens, for instance behind a proxy.
    authority
        SHA-256 fingerprint of the authority's certificate.
    authority_expires, certificate_expires
        When the authority and the SuperLink's certificate run out.
    issued
        When this file was written.
    members
        Organisations, sorted by name.
    code
        Hash of the coordinator's installed modules; empty in a file of an older version.
    """

    name: str
    version: str
    flower: str
    servers: tuple[str, ...]
    port: int
    listen: tuple[str, int]
    authority: str
    authority_expires: datetime
    certificate_expires: datetime
    issued: datetime
    members: tuple[FederationMember, ...]
    code: str = ""

    @property
    def address(self) -> str:
        """Where organisations reach the SuperLink."""
        return host_and_port(self.servers[0], self.port)

    @property
    def own_address(self) -> str:
        """Where the SuperLink's own machine reaches it."""
        host, port = self.listen
        return host_and_port({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)

    @property
    def pins(self) -> dict[str, str]:
        """Fingerprint of every member."""
        return {member.name: member.fingerprint for member in self.members}

    def member(self, name: str) -> FederationMember:
        """One member by its name."""
        for member in self.members:
            if member.name == name:
                return member
        raise ConfigError(
            f"{name!r} is not a member of the federation {self.name!r}: send its request to the "
            "coordinator and use the federation file that comes back"
        )

    def to_toml(self) -> str:
        """Content of the file."""
        lines = [
            "# Written by `fedlap keys issue`. Nothing here is secret; everyone has the same copy.",
            f"name = {_text(self.name)}",
            f"issued = {_date(self.issued)}",
            f"version = {_text(self.version)}",
            f"flower = {_text(self.flower)}",
            f"code = {_text(self.code)}",
            "",
            "[server]",
            f"address = {_text(self.address)}",
            f"names = [{', '.join(_text(name) for name in self.servers)}]",
            f"port = {self.port}",
            f"listen = {_text(host_and_port(*self.listen))}",
            f"certificate-expires = {_date(self.certificate_expires)}",
            "",
            "[authority]",
            f"sha256 = {_text(self.authority)}",
            f"expires = {_date(self.authority_expires)}",
        ]
        for member in self.members:
            lines += [
                "",
                "[[members]]",
                f"name = {_text(member.name)}",
                f"fingerprint = {_text(member.fingerprint)}",
                f"supernode-key = {_text(member.supernode_key)}",
                f"schema = {_text(member.schema)}",
            ]
        return "\n".join(lines) + "\n"


def read_federation_file(path: Path) -> Federation:
    """Read a federation file."""
    try:
        facts = tomllib.loads(path.read_text(encoding="utf-8"))
        federation = _federation(facts)
        _check_names(list(federation.pins))
        return federation
    except FileNotFoundError:
        raise ConfigError(
            f"There is no {path.name}: use the one that the coordinator's `fedlap keys issue` wrote"
        ) from None
    except DataError as error:
        raise ConfigError(f"{path.name} is refused: {error}") from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{path.name} cannot be read ({type(error).__name__}): get the file from the "
            "coordinator again"
        ) from None


def _check_names(names: Sequence[str]) -> None:
    """Refuse a member whose name is not usable or looks like that of another one."""
    for name in names:
        check_name(name)
    if pair := alike(names):
        raise ConfigError(
            f"{FILE} is refused: {pair[0]!r} and {pair[1]!r} look alike: get the file from the "
            "coordinator again"
        )


def _federation(facts: Mapping[str, Any]) -> Federation:
    server, authority = facts["server"], facts["authority"]
    if not server["names"]:
        raise ConfigError(
            f"{FILE} names no server: restore the file, or get it from the coordinator again"
        )
    host, _, port = server["listen"].rpartition(":")
    members = [
        FederationMember(
            name=str(each["name"]),
            fingerprint=str(each["fingerprint"]),
            supernode_key=str(each["supernode-key"]),
            schema=str(each["schema"]),
        )
        for each in facts.get("members", [])
    ]
    return Federation(
        name=str(facts["name"]),
        version=str(facts["version"]),
        flower=str(facts["flower"]),
        servers=tuple(str(name) for name in server["names"]),
        port=int(server["port"]),
        listen=(host.strip("[]"), int(port)),
        authority=str(authority["sha256"]),
        authority_expires=authority["expires"].astimezone(UTC),
        certificate_expires=server["certificate-expires"].astimezone(UTC),
        issued=facts["issued"].astimezone(UTC),
        members=tuple(sorted(members, key=lambda member: member.name)),
        code=str(facts.get("code", "")),
    )


def _text(value: str) -> str:
    """A JSON string is also a TOML string, but for DEL, which TOML wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _date(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
