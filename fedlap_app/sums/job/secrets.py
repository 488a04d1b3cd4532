"""The secrets of one organisation: drawn and kept in its store, or simulated from a seed."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fedlap_app.errors import ConfigError
from fedlap_app.store import names
from fedlap_app.store.files import write_private
from fedlap_app.sums.card import Roster, new_job_secret
from fedlap_app.sums.identity import Identity
from fedlap_app.sums.kdf import derive, digest
from fedlap_app.sums.keyring import group_contribution

_SECRET_BYTES = 32


@dataclass(frozen=True)
class Secrets:
    """What an organisation holds before a job, and whom it knows.

    Attributes
    ----------
    identity
        Long-term keys.
    organisation
        The secret behind the start vectors.
    seed
        Of a simulation; None: real secrets.
    pins
        Fingerprints of other organisations, by name.
    trust
        Whether others are accepted without a pin.
    remembered
        File of fingerprints accepted at first use (none in a simulation).
    """

    identity: Identity
    organisation: bytes = field(repr=False)
    seed: int | None
    pins: Mapping[str, str]
    trust: bool
    remembered: Path | None = None

    @property
    def simulated(self) -> bool:
        """Whether whoever knows the seed knows everything."""
        return self.seed is not None

    @property
    def known(self) -> Mapping[str, str]:
        """The pins, and fingerprints accepted at first use as the file has them now."""
        if not self.trust or self.remembered is None:
            return self.pins
        return {**_read_json(self.remembered), **self.pins}

    def job_secret(self, *facts: str | int) -> bytes:
        """A new secret for one job; in a simulation it follows from the facts."""
        if self.seed is None:
            return new_job_secret()
        return derive(self.organisation, "simulated job", *facts)

    def contribution(self, job_secret: bytes, job: str) -> bytes:
        """Part of a job's group key, new in every handshake; in a simulation it follows."""
        if self.seed is None:
            return os.urandom(_SECRET_BYTES)
        return group_contribution(job_secret, job)

    def start_label(self, job: str) -> str:
        """What the start vectors depend on besides the secret.

        In a simulation on nothing else, so that back ends and solvers can be compared.
        """
        return "simulation 0" if self.simulated else job

    def remember(self, roster: Roster) -> tuple[str, ...]:
        """Note fingerprints that were trusted for the first time; gives their owners."""
        known = self.known
        new = {
            name: mark
            for name, mark in roster.fingerprints.items()
            if name not in known and mark != self.identity.fingerprint
        }
        if self.remembered is None or not new:
            return ()
        content = json.dumps({**_read_json(self.remembered), **new}, indent=2, sort_keys=True)
        write_private(self.remembered, content.encode())
        return tuple(f"{name} {mark}" for name, mark in sorted(new.items()))


def simulated_secrets(seed: int, name: str) -> Secrets:
    """Secrets that follow from the seed of the run and the name, for simulations only."""
    root = digest("simulation", seed)
    return Secrets(
        identity=Identity.from_seed(root, name),
        organisation=derive(root, "organisation secret", name),
        seed=seed,
        pins={},
        trust=True,
    )


def stored_secrets(folder: Path, pins: Mapping[str, str], *, trust: bool) -> Secrets:
    """Secrets from the files of a folder, made there on first use with access for the owner only.

    Parameters
    ----------
    folder
        Where `identity` and `secret` are.
    pins
        Fingerprints of the other organisations.
    trust
        Accept an unknown organisation once and remember its fingerprint.
    """
    identity, secret, peers = (folder / n for n in (names.IDENTITY, names.SECRET, names.PEERS))
    if not identity.exists():
        Identity.generate().save(identity)
    if not secret.exists():
        write_private(secret, os.urandom(_SECRET_BYTES))
    known = secret.read_bytes()
    if len(known) != _SECRET_BYTES:
        raise ConfigError(
            f"{secret} has {len(known)} bytes where {_SECRET_BYTES} were expected: it is damaged, "
            "delete it and start a new job"
        )
    return Secrets(
        identity=Identity.load(identity),
        organisation=known,
        seed=None,
        pins=dict(pins),
        trust=trust,
        remembered=peers,
    )


def _read_json(path: Path) -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise ConfigError(f"{path} cannot be read: correct it or delete it") from None
    return found
