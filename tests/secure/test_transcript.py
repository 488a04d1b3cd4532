from fedlap_app.secure.transcript import Transcript


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
