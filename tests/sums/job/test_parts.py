import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.job.parts import (
    NO_JOB,
    asked,
    count_parts,
    hashes_of,
    join_parts,
    part_bytes,
    part_of,
    read_asked,
)

DATA = bytes(range(250))


@pytest.mark.parametrize("limit", [1, 49, 50, 250, 251])
def test_parts_make_the_whole(limit):
    parts = [part_of(DATA, index, limit) for index in range(count_parts(250, limit))]
    assert max(map(len, parts)) <= limit
    assert join_parts(parts, hashes_of(DATA, limit)) == DATA


def test_missing_doubled_swapped_and_altered_parts_are_refused():
    parts = [bytes(part_of(DATA, index, 100)) for index in range(3)]
    hashes = hashes_of(DATA, 100)
    for bad in (parts[:2], [*parts, parts[0]]):
        with pytest.raises(ProtocolError, match="missing or doubled"):
            join_parts(bad, hashes)
    for bad in ([parts[1], parts[0], parts[2]], [parts[0], bytes(100), parts[2]]):
        with pytest.raises(ProtocolError, match="was altered"):
            join_parts(bad, hashes)


def test_a_part_that_does_not_exist_is_refused():
    for index in (-1, 3):
        with pytest.raises(ProtocolError, match="of 3 parts was asked for"):
            part_of(DATA, index, 100)


def test_the_limit_leaves_room_for_hashes():
    assert part_bytes(32.0) < 32 * 2**20


def test_an_empty_message_takes_no_part():
    assert count_parts(0, 10) == 0
    assert join_parts([], hashes_of(b"", 10)) == b""


def test_what_a_message_is_about_comes_back():
    assert read_asked(asked("sums", "ab12", 7)) == ("sums", "ab12", 7)
    assert read_asked(asked("hello", "", 0)) == ("hello", NO_JOB, 0)


@pytest.mark.parametrize("text", ["", "sums", "sums ab", "sums ../x 3", "sums ab -3", "sums  3"])
def test_what_names_no_proper_job_is_refused(text):
    with pytest.raises(ProtocolError, match="no proper job"):
        read_asked(text)
