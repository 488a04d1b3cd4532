import numpy as np
import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.choice import make_accumulator, make_backend
from fedlap_app.sums.header import Place
from fedlap_app.sums.transcript import Transcript


def test_order_content_and_job_count():
    start = Transcript.start("job")
    digests = {
        start.extend(b"a").extend(b"b").digest,
        start.extend(b"b").extend(b"a").digest,
        start.extend(b"ab").digest,
        start.extend(b"a").digest,
        start.digest,
        Transcript.start("other").digest,
    }
    assert len(digests) == 6
    assert start.extend(b"a") == Transcript(start.digest).extend(b"a")


def small_sum(members, contexts, step):
    """One small sum of zeros, each member sealing under its own context."""
    header = members[0].small_header(Place("krylov", step), length=5)
    accumulator = make_accumulator(header, members[0].senders)
    for member, context in zip(members, contexts, strict=True):
        accumulator.add(member.seal(np.zeros(5), header, context=context))
    return accumulator.result(""), header


def test_a_server_that_tells_members_different_things_is_found_at_the_next_sum(rings):
    members = [make_backend("mask", ring) for ring in rings(3)]
    start = Transcript.start(members[0].keys.job)
    first, _ = small_sum(members, [start.digest] * 3, 0)
    told = [start.extend(first)] * 3
    data, header = small_sum(members, [t.digest for t in told], 1)
    assert not members[2].open(data, header, context=told[2].digest).numbers.any()
    told[1] = start.extend(first[:-1] + b"\0")
    data, header = small_sum(members, [t.digest for t in told], 2)
    for member, transcript in zip(members, told, strict=True):
        with pytest.raises(ProtocolError, match="told different things"):
            member.open(data, header, context=transcript.digest)
