"""A training job that is ready for its first round."""

from functools import partial

import pytest

from tests.sums.training.federation import Federation


@pytest.fixture
def federation(tmp_path):
    """Function that makes a federation of so many members."""
    return partial(Federation, tmp_path / "first")
