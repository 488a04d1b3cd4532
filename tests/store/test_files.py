import resource
import signal

import pytest

from fedlap_app.store import files
from fedlap_app.store.files import append_lines


@pytest.fixture
def narrow():
    """No file grows beyond a hundred bytes, as on a disk that is nearly full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("length", [19, 20, 21, 200])
def test_a_line_is_written_whole_or_not_at_all(tmp_path, narrow, length):
    log = tmp_path / "log"
    append_lines(log, "a" * 79)
    if length < 20:
        append_lines(log, "b" * length)
        assert log.read_text() == "a" * 79 + "\n" + "b" * length + "\n"
        return
    with pytest.raises(OSError, match="No space left"):
        append_lines(log, "b" * length)
    assert log.read_text() == "a" * 79 + "\n"
    append_lines(log, "c")
    assert log.read_text().splitlines() == ["a" * 79, "c"]


def test_a_log_that_is_too_large_begins_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_LOG_BYTES", 3)
    log = tmp_path / "log"
    for line in ("one", "two", "three"):
        append_lines(log, line)
    assert log.read_text() == "three\n"
    assert files.is_private(log)
