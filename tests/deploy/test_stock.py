"""Running processes of Flower that would execute delivered code are found by their options."""

import shutil
import subprocess
import time

import pytest

from fedlap_app.deploy.stock import find_stock_processes

PORT = "39094"


@pytest.fixture
def start(tmp_path):
    """Start a stand-in for a program of Flower, which does nothing but run."""
    started = []

    def run(program, *options):
        if not (tmp_path / program).exists():  # a shell may still be reading it
            (tmp_path / program).write_text("#!/bin/sh\nread -r nothing\n")
            (tmp_path / program).chmod(0o755)
        words = [shutil.which("sh"), str(tmp_path / program), *options]
        started.append(subprocess.Popen(words, stdin=subprocess.PIPE))

    yield run
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()


def supernode(start, data, *more):
    start("flower-supernode", "--node-config", f"data-dir='{data}' store-dir='/s'", *more)


def test_a_supernode_that_runs_the_app_by_itself(start, tmp_path):
    supernode(start, tmp_path, "--port", PORT)
    supernode(start, tmp_path, "--isolation=subprocess")
    supernode(start, tmp_path / "other")
    ends = time.monotonic() + 10.0
    while len(found := find_stock_processes(tmp_path)) < 2 and time.monotonic() < ends:
        time.sleep(0.05)  # a process has another command line until its program has begun
    assert [each.what for each in found] == ["SuperNode", "SuperNode"]
    assert all(each.failed for each in found)
    assert "`python -I -m client_app.superexec`" in found[0].says


def test_flowers_own_superexec_at_the_port_of_the_supernode(start, tmp_path):
    supernode(start, tmp_path, "--isolation", "process", "--port", PORT)
    assert find_stock_processes(tmp_path) == []
    start("flower-superexec", "--insecure", "--runtime-api-address", f"127.0.0.1:{PORT}")
    start("flower-superexec", "--insecure", "--runtime-api-address", "127.0.0.1:38000")
    (finding,) = find_stock_processes(tmp_path)
    assert finding.what == "SuperExec"
    assert finding.failed
    assert find_stock_processes(tmp_path / "other") == []
    assert [each.what for each in find_stock_processes(tmp_path / "other", PORT)] == ["SuperExec"]
