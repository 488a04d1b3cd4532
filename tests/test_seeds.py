"""Seeds from parts."""

import hashlib

from fedlap_app.seeds import seed_of


def test_the_seed_is_the_leading_63_bits_of_the_hash():
    text = (2).to_bytes(8, "big") + b"i7" + (4).to_bytes(8, "big") + b"sabc"
    expected = int(hashlib.sha256(text).hexdigest()[:16], 16) // 2
    assert seed_of(7, "abc") == expected < 2**63


def test_parts_do_not_run_into_each_other():
    seeds = {
        seed_of("ab", "c"), seed_of("a", "bc"), seed_of("abc"), seed_of("c", "ab"), seed_of(1, 2),
        seed_of(12), seed_of("12"), seed_of("1", 2), seed_of(), seed_of(""), seed_of(-12),
    }  # fmt: skip
    assert len(seeds) == 11
