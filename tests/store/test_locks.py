import subprocess
import sys
import time

from fedlap_app.store.locks import Lock

HOLD = """
import sys, time
from fedlap_app.store.locks import Lock
from pathlib import Path
lock = Lock(Path(sys.argv[1]))
lock.take()
print("held", flush=True)
time.sleep(60)
"""


def test_another_process_is_waited_for(tmp_path):
    path = tmp_path / "room" / "lock"
    command = [sys.executable, "-c", HOLD, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        told = []
        started = time.monotonic()
        assert not Lock(path).take(0.1, waiting=lambda: told.append("waits"))
        assert told == ["waits"]
        assert time.monotonic() - started >= 0.1
        other.kill()
    assert Lock(path).take(5.0)  # whoever dies holds nothing


def test_it_is_free_after_its_release(tmp_path):
    first, second = Lock(tmp_path / "lock"), Lock(tmp_path / "lock")
    assert first.take()
    assert not second.take(0.0)
    first.release()
    assert second.take(0.0)
