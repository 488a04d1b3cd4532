"""The server's sums: memory of one contribution, whatever the number of organisations."""

import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.studies.load_bench import Load, bench_load, table_of

LOAD = Load(nodes=60_000, columns=2, parameters=20_000)


def test_memory_stays_and_bytes_grow_with_the_organisations():
    few, many = bench_load(LOAD, [6, 60])
    # All block sums together have a number for every node and column; a contribution lacks one.
    whole = 8 * LOAD.nodes * LOAD.columns / 1e6
    for row in (few, many):
        share = (row["organisations"] - 1) / row["organisations"]
        expected = row["organisations"] * share * whole
        assert row["step_megabytes"] == pytest.approx(expected, rel=0.1)
    assert many["step_peak"] < 1.5 * few["step_peak"]
    assert many["round_peak"] < 1.5 * few["round_peak"]
    assert "6" in table_of(LOAD, [few, many])


def test_two_organisations_are_no_load():
    with pytest.raises(ConfigError, match="give 3 or more"):
        bench_load(LOAD, [2])
