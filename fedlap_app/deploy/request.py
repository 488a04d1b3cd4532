"""A request to join a federation: what an organisation shows of itself, and nothing secret.

The FedLap identity signs it, so that whoever compares the fingerprint with the organisation (on
the telephone, say) knows that the SuperNode key beside it is the organisation's too.
"""

import json
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import flwr

from fedlap_app.deploy.supernode_key import check_public_line, key_fingerprint
from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs.checks import check_name
from fedlap_app.sums.identity import Identity, fingerprint, is_signed
from fedlap_app.sums.kdf import digest
from fedlap_app.version import VERSION

FILE = "request.json"
_FORM = "fedlap request 1"
_SCHEMA = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Request:
    """What the coordinator gets from an organisation.

    Attributes
    ----------
    name
        The organisation, as in its org.toml.
    supernode_key
        Public key of its SuperNode, in OpenSSH's form.
    signing, agreement
        Public halves of its FedLap identity, in hexadecimal.
    version, flower
        Versions of the app and of Flower there.
    schema
        Hash of the names of classes and features, which all organisations share.
    proof
        Signature of all of it by the identity, in hexadecimal.
    """

    name: str
    supernode_key: str
    signing: str
    agreement: str
    version: str
    flower: str
    schema: str
    proof: str = ""

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the FedLap identity, which others pin."""
        return fingerprint(bytes.fromhex(self.signing), bytes.fromhex(self.agreement))

    @property
    def key_fingerprint(self) -> str:
        """Fingerprint of the SuperNode key."""
        return key_fingerprint(self.supernode_key)

    @property
    def signed(self) -> bytes:
        """What the proof is a signature of."""
        facts = asdict(self) | {"proof": ""}
        return digest(_FORM, json.dumps(facts, sort_keys=True))

    def to_json(self) -> str:
        """Content of the file."""
        facts = {"form": _FORM, **asdict(self), "fingerprint": self.fingerprint}
        return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"


def sign_request(identity: Identity, name: str, supernode_key: str, schema: str) -> Request:
    """The request of an organisation, signed by its identity."""
    facts = {
        "name": name,
        "supernode_key": supernode_key,
        "signing": identity.signing_public.hex(),
        "agreement": identity.agreement_public.hex(),
        "version": VERSION,
        "flower": flwr.__version__,
        "schema": schema,
    }
    bare = Request(**facts)
    return Request(**facts, proof=identity.sign(bare.signed).hex())


def read_request(path: Path) -> Request:
    """Read a request and check it: its form, its key, its fingerprint and its signature."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if facts.pop("form") != _FORM:
            raise ValueError
        shown = facts.pop("fingerprint")
        request = Request(**facts)
        if not all(isinstance(value, str) for value in facts.values()):
            raise ValueError
        check_name(request.name)
        good = is_signed(
            bytes.fromhex(request.signing), bytes.fromhex(request.proof), request.signed
        )
        good = good and shown == request.fingerprint
    except FileNotFoundError:
        raise ConfigError(
            f"There is no {path}: give the {FILE} that `fedlap keys request` wrote"
        ) from None
    except DataError as error:
        raise ConfigError(f"{path} is refused: {error}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ConfigError(
            f"{path} is no request of this version: ask the organisation to run `fedlap keys "
            f"request` of FedLap {VERSION}"
        ) from None
    if not good:
        raise ConfigError(
            f"{path} was altered after {request.name!r} signed it: ask for the file again"
        )
    if not _SCHEMA.fullmatch(request.schema):
        raise ConfigError(f"{path} has no hash for a schema: ask {request.name} for a new request")
    # Without the comment, which could be anything and would hide that two keys are the same.
    return replace(request, supernode_key=check_public_line(request.supernode_key, request.name))
