"""Members with keys, without the handshake: what the tests of sums start from."""

from functools import cache

import pytest

from fedlap_app.sums.kdf import derive, digest
from fedlap_app.sums.keyring import KeyRing


@cache
def _rings(count, seed=b"a seed for tests"):
    names = tuple(f"client-{i:02d}" for i in range(count))
    job = digest("job", seed)[:16].hex()
    group = derive(seed, "group")
    return tuple(
        KeyRing(
            me=me,
            members=names,
            job=job,
            members_hash="ab" * 16,
            roots={peer: derive(seed, *sorted((me, peer))) for peer in names if peer != me},
            group_key=group,
        )
        for me in names
    )


@pytest.fixture
def rings():
    """Function that gives the key rings of so many members."""
    return _rings
