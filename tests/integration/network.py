"""The network of a test federation: a namespace for each organisation, or the plain loopback."""

import os
import shutil
import subprocess
from collections.abc import Sequence

LOOPBACK = "127.0.0.1"


class Loopback:
    """All processes on one machine: where namespaces cannot be made."""

    server = LOOPBACK

    def prefix(self, name: str) -> list[str]:
        """Words before a command of the organisation: none."""
        return []

    def close(self) -> None:
        """Nothing was made."""


class Namespaces:
    """A bridge for the SuperLink and a network namespace for each organisation."""

    def __init__(self, names: Sequence[str]) -> None:
        number = os.getpid()
        self.server = f"10.{128 + number % 100}.{number // 100 % 256}.1"
        self._bridge = f"fl{number}b"
        self._tags = {name: f"fl{number}n{index}" for index, name in enumerate(names)}
        try:
            _ip("link", "add", self._bridge, "type", "bridge")
            _ip("addr", "add", f"{self.server}/24", "dev", self._bridge)
            _ip("link", "set", self._bridge, "up")
            for index, tag in enumerate(self._tags.values()):
                self._connect(tag, f"{self.server[:-1]}{index + 2}")
        except BaseException:
            self.close()
            raise

    def _connect(self, tag: str, address: str) -> None:
        _ip("netns", "add", tag)
        _ip("link", "add", tag, "type", "veth", "peer", "name", "eth0", "netns", tag)
        _ip("link", "set", tag, "master", self._bridge, "up")
        for words in (
            ("addr", "add", f"{address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
        ):
            _ip("-n", tag, *words)

    def prefix(self, name: str) -> list[str]:
        """Words before a command of the organisation: run it in its namespace."""
        return ["ip", "netns", "exec", self._tags[name]]

    def cut(self, name: str) -> None:
        """Take the organisation's network away."""
        _ip("link", "set", self._tags[name], "down")

    def mend(self, name: str) -> None:
        """Give it back."""
        _ip("link", "set", self._tags[name], "up")

    def close(self) -> None:
        """Remove what was made."""
        for tag in self._tags.values():
            _ip("link", "del", tag, check=False)
            _ip("netns", "del", tag, check=False)
        _ip("link", "del", self._bridge, check=False)


def why_no_namespaces() -> str:
    """Why organisations cannot have namespaces here; empty when they can."""
    if shutil.which("ip") is None:
        return "the command ip (package iproute2) is not installed"
    if os.geteuid() != 0:
        return "network namespaces need root"
    probe = f"fl{os.getpid()}probe"
    made = _ip("netns", "add", probe, check=False)
    _ip("netns", "del", probe, check=False)
    return "" if made else "the kernel refuses network namespaces"


def make_network(names: Sequence[str]) -> "Namespaces | Loopback":
    """Namespaces where they can be made, else the loopback."""
    return Loopback() if why_no_namespaces() else Namespaces(names)


def _ip(*words: str, check: bool = True) -> bool:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False, timeout=30)
    if check and done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.returncode == 0
