"""Start vectors that nobody else can know: Gaussian, from a client's secret and the job's id."""

import hashlib
import hmac
import math

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ConfigError

LEAST_SECRET = 16


def start_block(secret: bytes, job: str, rows: int, width: int, nodes: int) -> NDArray[np.float64]:
    """One client's rows of the start block; the columns' norms over all clients are about one.

    Parameters
    ----------
    secret
        The organisation's secret, at least 16 bytes; never a public seed, because everyone who
        knows the start block knows the first basis vectors.
    job
        Id of the job; another job gets another block.
    rows, width
        Shape of the block.
    nodes
        Number of nodes of the whole graph, or an estimate.
    """
    if len(secret) < LEAST_SECRET:
        raise ConfigError(
            f"The secret has {len(secret)} bytes; at least {LEAST_SECRET} are needed: "
            "make a new one from a secure random source."
        )
    key = int.from_bytes(_hkdf(secret, f"fedlap start block {job}".encode()), "little")
    generator = np.random.Generator(np.random.Philox(key=key))
    return generator.standard_normal((rows, width)) / math.sqrt(max(nodes, 1))


def _hkdf(secret: bytes, info: bytes) -> bytes:
    """16 bytes of HKDF-SHA256 (RFC 5869) without salt."""
    extracted = hmac.new(bytes(32), secret, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()[:16]
