import resource
import signal
from contextlib import contextmanager

import pytest

from fedlap_app.store import files
from fedlap_app.store.files import append_lines


@contextmanager
def narrow():
    """No file grows beyond a hundred bytes, as on a disk that is nearly full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_line_that_fits_is_written(tmp_path):
    log = tmp_path / "log"
    with narrow():
        append_lines(log, "a" * 79)
        append_lines(log, "b" * 19)
    assert log.read_text() == "a" * 79 + "\n" + "b" * 19 + "\n"


@pytest.mark.parametrize("length", [20, 21, 200])
def test_a_line_is_written_whole_or_not_at_all(tmp_path, length):
    log = tmp_path / "log"
    with narrow():
        append_lines(log, "a" * 79)
        with pytest.raises(OSError, match="No space left"):
            append_lines(log, "b" * length)
        kept = log.read_text()
        append_lines(log, "c")
    assert kept == "a" * 79 + "\n"
    assert log.read_text().splitlines() == ["a" * 79, "c"]


def test_a_log_that_is_too_large_begins_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_LOG_BYTES", 3)
    log = tmp_path / "log"
    for line in ("one", "two", "three"):
        append_lines(log, line)
    assert log.read_text() == "three\n"
    assert files.is_private(log)
