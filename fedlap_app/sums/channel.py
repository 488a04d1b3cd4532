"""Sealed messages between members that pass through the server.

A channel runs in one direction and has its own key, so a message cannot be reflected. Each message
belongs to one place (phase, step, attempt), which is authenticated with it: the receiver says what
it expects, and a message from any other place, sender or job is refused as stale or misrouted
before it is opened. The cipher is AES-256-SIV (RFC 5297): a process may die after sealing and seal
the same place again, and SIV stays safe there, while a repeated nonce would break GCM or
ChaCha20-Poly1305; equal text at an equal place gives equal bytes.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.header import Place
from fedlap_app.sums.kdf import decode, derive, encode

_DOMAIN = b"fedlap sealed 1"
_SIZE_BYTES = 8


class Channel:
    """One direction of a channel; `recipient` is empty when every member can open.

    Parameters
    ----------
    secret : bytes
        Key that only those who may read hold; what is made of it here is made for nothing else.
    job, sender, recipient : str
        What the channel belongs to; part of every message.
    """

    def __init__(self, secret: bytes, job: str, sender: str, recipient: str) -> None:
        self.job = job
        self.sender = sender
        self.recipient = recipient
        self._cipher = AESSIV(derive(secret, "channel", job, sender, recipient, length=64))

    def seal(self, data: bytes, place: Place, *, pad_to: int = 0) -> bytes:
        """Seal a message for one place.

        Parameters
        ----------
        data : bytes
            The message.
        place : Place
            Where in the protocol it belongs.
        pad_to : int
            Length that the message is filled up to, to hide its own (default: 0, no filling).
        """
        if pad_to and len(data) > pad_to:
            raise ProtocolError(
                f"A message of {len(data)} bytes does not fit the {pad_to} bytes agreed for "
                f"{place}; raise the agreed size."
            )
        label = self._label(place)
        text = len(data).to_bytes(_SIZE_BYTES, "little") + data.ljust(pad_to, b"\0")
        return encode(label, self._cipher.encrypt(text, [label]))

    def open(self, sealed: bytes, place: Place) -> bytes:
        """Open a message that must belong to this place; anything else is refused."""
        with self._as_refusal(place):
            label, body = decode(sealed)
        if label != self._label(place):
            raise ProtocolError(
                f"A message for {self._read(label)} came where {self._read(self._label(place))} "
                "was expected; it is stale, replayed or misrouted."
            )
        with self._as_refusal(place):
            text = self._cipher.decrypt(body, [label])
        end = _SIZE_BYTES + int.from_bytes(text[:_SIZE_BYTES], "little")
        if end > len(text) or any(text[end:]):
            raise ProtocolError(
                f"A message from {self.sender!r} for {place} is not filled up with zeros; its "
                "sender runs another release, or means harm."
            )
        return text[_SIZE_BYTES:end]

    def _label(self, place: Place) -> bytes:
        """Everything about a message but its text."""
        where = (place.phase, place.step, place.attempt)
        return encode(_DOMAIN, self.job, self.sender, self.recipient, *where)

    @staticmethod
    def _read(label: bytes) -> str:
        """Readable form of a label."""
        parts = list(decode(label))
        if len(parts) != 7:
            return "an unknown place"
        job, sender, recipient, phase = (part.decode(errors="replace") for part in parts[1:5])
        step, attempt = (int.from_bytes(part, "little", signed=True) for part in parts[5:])
        return f"{Place(phase, step, attempt)} from {sender!r} to {recipient or 'all'!r}, job {job}"

    @contextmanager
    def _as_refusal(self, place: Place) -> Iterator[None]:
        """Turn what a broken message makes the cipher raise into one of our own errors."""
        try:
            yield
        except (InvalidTag, ValueError) as error:
            raise ProtocolError(
                f"A message from {self.sender!r} to {self.recipient or 'all'!r} for {place} was "
                "altered, or its sender and I hold different keys."
            ) from error
