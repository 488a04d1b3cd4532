"""The process of one task ends with the SuperExec that started it, whatever it waits for."""

import io
import os
import select
import signal
import socket
import sys

import pytest

from client_app import launch

PATIENCE = 20.0


def launcher(port):
    """Do a task of the SuperNode at a port."""
    sys.stdin = io.StringIO("token\n")
    words = ["--insecure", "--runtime-api-address", f"127.0.0.1:{port}"]
    launch.main([*words, "--kind=flwr-clientapp", "--parent-pid", str(os.getppid())])


def child(work):
    """A process of its own that does the work and ends."""
    if pid := os.fork():
        return pid
    signal.alarm(3 * int(PATIENCE))  # leave nothing behind where the test fails
    try:
        work()
    finally:
        os._exit(0)


def superexec(port, at_interrupt):
    signal.signal(signal.SIGINT, at_interrupt)
    child(lambda: launcher(port))
    signal.pause()


def heard(handle, seconds):
    """Whether something comes, or the other end is closed; of handles of any number."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


@pytest.mark.parametrize("at_interrupt", [signal.default_int_handler, signal.SIG_IGN])
def test_a_launcher_whose_supernode_and_superexec_are_gone_ends(at_interrupt):
    """Interrupts are ignored in whatever a shell starts in the background."""
    alive, held = os.pipe()
    with socket.create_server(("127.0.0.1", 0)) as supernode:
        supernode.settimeout(PATIENCE)
        parent = child(lambda: superexec(supernode.getsockname()[1], at_interrupt))
        os.close(held)
        supernode.accept()[0].close()
    # Nobody listens any more, and the launcher tries again and again.
    assert not heard(alive, 0.4)
    os.kill(parent, signal.SIGKILL)
    try:
        # The other end is closed once nobody holds it; the killed process is not waited for yet.
        assert heard(alive, PATIENCE)
        assert os.read(alive, 1) == b""
    finally:
        os.waitpid(parent, 0)
        os.close(alive)
