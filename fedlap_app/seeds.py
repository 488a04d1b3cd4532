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


def round_seed(seed: int, stage: int, name: str, number: int) -> int:
    """Seed of a client's round; rounds count anew in every stage of self-training."""
    return seed_of(stage_seed(seed, stage), "train", name, number)


def stage_seed(seed: int, stage: int) -> int:
    """Seed of the model that a stage of self-training starts from."""
    return seed_of(seed, "stage", stage) if stage else seed
