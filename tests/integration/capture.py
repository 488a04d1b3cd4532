"""A capture of the loopback traffic, with a raw socket of Linux."""

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Collection

_ALL = 0x0003  # ETH_P_ALL
_OUTGOING = 4  # the loopback shows every packet twice
_ETHERNET = 14


class LoopbackCapture:
    """TCP payloads from or to some ports of the loopback, in the order in which they pass."""

    def __init__(self, ports: Collection[int]) -> None:
        self._ports = frozenset(ports)
        self._payloads: list[bytes] = []
        self._ended = threading.Event()
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
        self._socket.bind(("lo", 0))
        self._socket.settimeout(0.2)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**26)
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> "LoopbackCapture":
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._ended.set()
        self._thread.join()
        self._socket.close()

    @property
    def content(self) -> bytes:
        """All payloads so far."""
        return b"".join(self._payloads)

    def _read(self) -> None:
        while not self._ended.is_set():
            with contextlib.suppress(TimeoutError):
                packet, address = self._socket.recvfrom(2**17)
                if address[2] != _OUTGOING:
                    self._take(packet[_ETHERNET:])

    def _take(self, packet: bytes) -> None:
        """Keep the payload of a TCP segment over IPv4."""
        if len(packet) < 40 or packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
            return
        segment = packet[4 * (packet[0] & 15) : struct.unpack("!H", packet[2:4])[0] or None]
        if self._ports & set(struct.unpack("!HH", segment[:4])):
            self._payloads.append(segment[4 * (segment[12] >> 4) :])


def why_no_capture() -> str:
    """Why traffic cannot be captured here; empty when it can."""
    if not hasattr(socket, "AF_PACKET"):
        return "raw packet sockets need Linux"
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL)).close()
    except OSError as error:
        return f"traffic can be captured by root only ({os.strerror(error.errno or 0)})"
    return ""
