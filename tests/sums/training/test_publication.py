import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.training.publication import published, released


def test_whole_counts_of_large_splits_are_released():
    counts = {"train": (49.0, 40.0), "val": (50.0, 41.0000001), "test": (900.0, 700.0)}
    data = released(counts, 50)
    assert published({"a": data, "b": data}) == {"val": (50, 41), "test": (900, 700)}


def test_nothing_is_published_on_which_not_all_agree():
    one, other = released({"test": (90.0, 70.0)}, 50), released({"test": (90.0, 71.0)}, 50)
    with pytest.raises(ProtocolError, match="'a' and 'c' release different scores"):
        published({"a": one, "b": one, "c": other})


@pytest.mark.parametrize("data", [b"", b"[1]", b'{"test": 3}', b'{"test": [1, 2]}', b"\xff"])
def test_what_is_no_score_is_refused(data):
    with pytest.raises(ProtocolError):
        published({"a": data, "b": data})
