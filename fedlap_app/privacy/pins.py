"""Whom a client trusts: the table `peers` of org.toml and the federation file together."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs.checks import check_name
from fedlap_app.privacy.federation import read_federation_file


def merge_pins(peers: Mapping[str, str], federation: Mapping[str, str]) -> dict[str, str]:
    """Pins of both sources; where they contradict each other neither is believed."""
    for name, pin in federation.items():
        if peers.get(name, pin) != pin:
            raise ConfigError(
                f"org.toml pins the fingerprint {peers[name]} for {name} and the federation file "
                f"{pin}: ask {name} for its fingerprint and correct the one that is wrong"
            )
    return {**federation, **peers}


def federation_pins(path: Path, name: str, fingerprint: str) -> dict[str, str]:
    """Pins of a federation file for one of its members.

    Parameters
    ----------
    path : the federation file.
    name : the organisation that reads it.
    fingerprint : of the identity in the organisation's store.
    """
    federation = read_federation_file(path)
    own = federation.member(name)
    if own.fingerprint != fingerprint:
        raise ConfigError(
            f"the federation file pins the fingerprint {own.fingerprint} for {name} but the "
            f"identity in its store is {fingerprint}: restore the store, or send a new request to "
            "the coordinator"
        )
    return federation.pins


def org_pins(path: Path) -> dict[str, str]:
    """Fingerprints of other organisations, from the table `peers` of org.toml."""
    try:
        peers = tomllib.loads(path.read_text(encoding="utf-8-sig")).get("peers", {})
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"org.toml cannot be read ({type(error).__name__}): correct it") from None
    if not isinstance(peers, dict) or not all(isinstance(mark, str) for mark in peers.values()):
        raise ConfigError(
            "the table [peers] of org.toml must give a fingerprint for each name: "
            'write bank-b = "abcd-..." as `fedlap keys` shows it there'
        )
    try:
        for name in peers:
            check_name(name)
    except DataError as error:
        raise ConfigError(f"the table [peers] of org.toml is refused: {error}") from None
    return peers
