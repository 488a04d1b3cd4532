import numpy as np
import pytest

from fedlap_app.settings import parse_settings
from fedlap_app.studies.offline_bars import bars_of_paper
from fedlap_app.studies.paper_default import TensealSums, paper_row
from fedlap_app.studies.planning.plan import find_subgraphs


def test_sums_through_default_ciphertexts():
    sums = TensealSums(2)
    vectors = [np.random.default_rng(i).normal(size=5000) for i in range(3)]
    np.testing.assert_allclose(sums.total(vectors, 0, 1), sum(vectors), atol=1e-6)
    # Two ciphertexts each, of which a full one takes 81 bytes a number.
    assert sums.spent.ciphertexts == 6
    assert sums.spent.up / (6 * 4096) == pytest.approx(81, rel=0.05)


def test_the_whole_run_is_extrapolated_by_its_ciphertexts():
    settings, parts = find_subgraphs(
        parse_settings(
            {"dataset": "banks", "accounts": 240, "clients": 3, "vectors": 20, "operator": "sym"}
        )
    )
    row = paper_row(settings, parts)
    assert row["extrapolated"]
    # One sum a round: l + 2 in iteration l, three before and at the end besides the totals.
    rounds = 1 + sum(step + 1 for step in range(1, 21)) + 1
    sent = 3 * rounds + 6 * 20
    assert row["bytes_up_per_client"] * 3 / sent == pytest.approx(81 * 4096, rel=0.05)
    ours = {"solver": "block-lanczos", "backend": "ckks", "bytes_up_per_client": 1e4}
    bars = bars_of_paper([{**ours, "cpu_seconds": row["cpu_seconds"] / 50}, row])
    assert [bar["met"] for bar in bars] == [True, False]
