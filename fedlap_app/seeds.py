"""Seeds that differ by purpose: the same parts give the same seed on every machine."""

import hashlib


def seed_of(*parts: str | int) -> int:
    """Hash strings and integers to a seed of 63 bits.

    Parameters
    ----------
    *parts : str | int
        What the seed is for, for example ``seed_of(run_seed, "dropout", client, round)``. Order,
        types and the limits between parts count.

    Returns
    -------
    int
        A number in ``[0, 2**63)``, taken by numpy and torch alike.
    """
    digest = hashlib.sha256()
    for part in parts:
        text = f"i{part:d}" if isinstance(part, int) else f"s{part}"
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return int.from_bytes(digest.digest()[:8], "big") >> 1
