"""The server's check that ciphertexts under different keys are never added."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.accumulator import Accumulator, Line
from fedlap_app.sums.header import Header


class KeyedAccumulator(Accumulator):
    """Running sums of ciphertexts, each under the key of its first contribution."""

    word: ClassVar[str] = "<u8"

    def __init__(self, header: Header, senders: Callable[[str], Sequence[str]]) -> None:
        self._keys: dict[str, bytes] = {}
        self._newest: dict[str, bytes] = {}
        super().__init__(header, senders)

    def _require_key(self, line: Line, key: bytes) -> None:
        """Refuse a contribution under another key than the others to the same sum."""
        recipient = line.sum.recipient
        self._newest[recipient] = key
        known = self._keys.get(recipient, key)
        if key != known:
            raise ProtocolError(
                f"A contribution to {self.step.place} is under the key {key.hex()} where "
                f"{known.hex()} was used; ciphertexts under different keys are never added."
            )

    def _keep_key(self, line: Line) -> None:
        """The newest contribution is in the sum."""
        self._keys[line.sum.recipient] = self._newest[line.sum.recipient]

    def _key_of(self, line: Line) -> bytes:
        return self._keys[line.sum.recipient]
