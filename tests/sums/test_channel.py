import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.channel import Channel
from fedlap_app.sums.header import Place

JOB = "0a" * 16
PLACE = Place("handshake", 2, 1)


@pytest.fixture
def channel():
    return Channel(b"k" * 32, JOB, "a", "b")


@pytest.mark.parametrize("data", [b"", b"x", b"hello" * 1000])
def test_round_trip(channel, data):
    sealed = channel.seal(data, PLACE)
    assert channel.open(sealed, PLACE) == data
    assert len(data) < 5 or data not in sealed


def test_every_flipped_byte_is_found(channel):
    sealed = channel.seal(b"hello", PLACE)
    for position in range(len(sealed)):
        bad = bytearray(sealed)
        bad[position] ^= 0x80
        with pytest.raises(ProtocolError):
            channel.open(bytes(bad), PLACE)


@pytest.mark.parametrize("cut", [0, 3, 30, -1])
def test_a_cut_message_is_refused(channel, cut):
    with pytest.raises(ProtocolError):
        channel.open(channel.seal(b"hello", PLACE)[:cut], PLACE)


@pytest.mark.parametrize(
    "other", [Place("handshake", 3, 1), Place("handshake", 2, 2), Place("krylov", 2, 1)]
)
def test_a_message_replayed_at_another_place_is_refused(channel, other):
    sealed = channel.seal(b"hello", PLACE)
    with pytest.raises(ProtocolError, match="stale, replayed or misrouted"):
        channel.open(sealed, other)


@pytest.mark.parametrize(
    ("job", "sender", "recipient"),
    [("0b" * 16, "a", "b"), (JOB, "b", "a"), (JOB, "a", "c"), (JOB, "c", "b"), (JOB, "a", "")],
)
def test_another_job_direction_or_peer_is_refused(channel, job, sender, recipient):
    sealed = channel.seal(b"hello", PLACE)
    with pytest.raises(ProtocolError, match="misrouted"):
        Channel(b"k" * 32, job, sender, recipient).open(sealed, PLACE)


def test_another_key_is_refused(channel):
    with pytest.raises(ProtocolError, match="different keys"):
        Channel(b"K" * 32, JOB, "a", "b").open(channel.seal(b"hello", PLACE), PLACE)


def test_filling_hides_the_length(channel):
    short, long = (channel.seal(text, PLACE, pad_to=100) for text in (b"x", b"x" * 100))
    assert len(short) == len(long)
    assert channel.open(short, PLACE) == b"x"
    with pytest.raises(ProtocolError, match="does not fit"):
        channel.seal(b"x" * 101, PLACE, pad_to=100)


def test_sealing_again_after_a_restart_gives_the_same_bytes_only_for_the_same_text(channel):
    again = Channel(b"k" * 32, JOB, "a", "b")
    assert again.seal(b"hello", PLACE) == channel.seal(b"hello", PLACE)
    # Equal places with different texts share no key stream: the XOR is not that of the texts.
    one, two = channel.seal(bytes(64), PLACE), channel.seal(b"\x01" * 64, PLACE)
    assert bytes(x ^ y for x, y in zip(one[-64:], two[-64:], strict=True)) != b"\x01" * 64
