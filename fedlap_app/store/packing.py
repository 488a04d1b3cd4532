"""Lists of byte strings as one, in files and in messages."""

import struct
from collections.abc import Iterator, Mapping

from fedlap_app.errors import ProtocolError

Data = bytes | memoryview
Part = Data | list[Data] | tuple[Data, ...]
MOST_PARTS = 1 << 16
_LENGTH = struct.Struct("<Q")
_FILLING = bytes(8)


def pieces(*parts: Part) -> Iterator[Data]:
    """Byte strings whose concatenation holds all parts: length, content, filling up to 8 bytes.

    The filling keeps numbers inside a part aligned. A part may itself come in pieces.
    """
    for part in parts:
        content = part if isinstance(part, list | tuple) else (part,)
        size = sum(map(len, content))
        yield _LENGTH.pack(size)
        yield from content
        if size % 8:
            yield bytes(-size % 8)


def pack(*parts: Part) -> bytes:
    """Join parts so that `unpack` gives them back."""
    return b"".join(pieces(*parts))


def unpack(data: Data, count: int | None = None) -> list[memoryview]:
    """Parts of what `pack` joined, without a copy; nothing else is taken for it.

    Parameters
    ----------
    data
        The joined parts.
    count
        How many there must be (default: any number, up to `MOST_PARTS`).
    """
    view = memoryview(data)
    parts: list[memoryview] = []
    most = MOST_PARTS if count is None else count
    at = 0
    while at < len(view):
        if len(parts) > most:  # each costs more than its bytes
            break
        start = at + _LENGTH.size
        size = _LENGTH.unpack_from(view, at)[0] if start <= len(view) else len(view)
        filling = -size % 8
        end = start + size + filling
        if end > len(view):
            raise ProtocolError(
                f"A message of {len(view)} bytes ends inside a part; it was cut or altered."
            )
        if filling and view[start + size : end] != _FILLING[:filling]:
            raise ProtocolError(
                f"A message of {len(view)} bytes is not filled up with zeros; it was altered."
            )
        parts.append(view[start : start + size])
        at = end
    if len(parts) > most or (count is not None and len(parts) != count):
        more = "or more " if len(parts) > most else ""
        raise ProtocolError(
            f"A message has {len(parts)} {more}parts where {most} were expected; "
            "let all parties run one release."
        )
    return parts


def text(part: Data) -> str:
    """A part as text."""
    try:
        return bytes(part).decode()
    except UnicodeDecodeError:
        raise ProtocolError(
            f"A part of {len(part)} bytes is not a text; the message was altered."
        ) from None


def pack_named(named: Mapping[str, Part]) -> bytes:
    """Join byte strings that have a name each."""
    return pack(*(part for name, data in named.items() for part in (name.encode(), data)))


def unpack_named(data: Data) -> dict[str, memoryview]:
    """Read what `pack_named` wrote; a name that comes twice is refused."""
    parts = unpack(data)
    names = [text(part) for part in parts[::2]]
    if len(parts) % 2 or len(set(names)) != len(names):
        raise ProtocolError(
            "A message names a part twice or not at all; it was altered, start again."
        )
    return dict(zip(names, parts[1::2], strict=True))
