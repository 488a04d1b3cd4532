"""Where the rows of a block product stand in the vector that is summed.

The target of the sums gives each of its rows a slot by a private random permutation, a new one for
every job, and tells each partner, in their channel, only the slots of the nodes they share. All
senders use the same slots, so that the server can add. The number of slots is rounded up, so that
the server does not see the number of rows, and the free slots lie anywhere. The columns of a block
stand side by side: slot s holds the positions s b to s b + b - 1.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.kdf import decode, encode

Floats = NDArray[np.float64]
Rows = NDArray[np.void]
MOST_MULTIPLE = 4096
_SLOT = np.dtype("<u4")
_NO_SLOT = 2**32 - 1


@dataclass(frozen=True)
class Frame:
    """Public shape of a layout: the number of slots, and what lengths are rounded up to."""

    slots: int
    multiple: int

    def length(self, columns: int) -> int:
        """Length of the vector for a block of this many columns."""
        return _round_up(self.slots * columns, self.multiple)

    def place(self, rows: Rows, slots: NDArray[np.int64], vector: Floats) -> None:
        """Put rows of a block (see `as_rows`) into their slots of a vector of zeros."""
        self._rows_of(vector, rows.dtype)[slots] = rows

    def take(self, vector: Floats, slots: NDArray[np.int64], columns: int) -> Floats:
        """Read rows (rows, columns) back from their slots."""
        row = np.dtype((np.void, vector.itemsize * columns))
        return self._rows_of(vector, row).take(slots).view(np.float64).reshape(-1, columns)

    def _rows_of(self, vector: Floats, row: np.dtype[Any]) -> Rows:
        return vector[: self.slots * row.itemsize // vector.itemsize].view(row)


def as_rows(block: Floats) -> Rows:
    """The rows of a block as single items, which are moved several times faster than numbers."""
    row = np.dtype((np.void, block.itemsize * block.shape[1]))
    return np.ascontiguousarray(block).view(row).reshape(-1)


@dataclass(frozen=True, eq=False)
class Layout:
    """A target's own layout: `slot_of` gives the slot of each of its rows, -1 for none."""

    frame: Frame
    slot_of: NDArray[np.int64]

    def share(self, rows: NDArray[np.int64], unheard: NDArray[np.bool_] | None = None) -> bytes:
        """Slots of the rows shared with one partner, in the order given, for their channel.

        Of rows that are `unheard` the partner is told that nobody may contribute to them.
        """
        slots = self.slot_of[rows]
        if (slots < 0).any():
            raise ProtocolError(
                f"{int((slots < 0).sum())} of {rows.size} shared rows have no slot; "
                "the boundary of the layout must include every shared node."
            )
        if unheard is not None:
            slots = np.where(unheard[rows], _NO_SLOT, slots)
        shape = (self.frame.slots, self.frame.multiple)
        return encode(*shape, slots.astype(_SLOT).tobytes())

    def read(self, vector: NDArray[np.float64], columns: int) -> NDArray[np.float64]:
        """Block (all rows, columns) of an opened sum; rows without a slot are 0."""
        if self._rows.size == self.slot_of.size:
            return self.frame.take(vector, self.slot_of, columns)
        block = np.zeros((self.slot_of.size, columns))
        block[self._rows] = self.frame.take(vector, self.slot_of[self._rows], columns)
        return block

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """Rows that have a slot."""
        return np.flatnonzero(self.slot_of >= 0)


def make_layout(
    rows: int,
    rng: np.random.Generator,
    *,
    boundary: NDArray[np.bool_] | None = None,
    columns: int = 1,
    multiple: int = 2048,
    spare: int = 0,
) -> Layout:
    """Draw a layout.

    Parameters
    ----------
    rows : int
        Rows of the target.
    rng : numpy.random.Generator
        Private to the target and new for the job.
    boundary : array of bool, optional
        Rows that get a slot (default: all).
    columns : int
        Columns of the usual block, for which the rounding is tight (default: 1).
    multiple : int
        What the length of a vector is rounded up to (default: 2048).
    spare : int
        Numbers that are left out of the last multiple, for check slots (default: 0).
    """
    chosen = np.arange(rows) if boundary is None else np.flatnonzero(boundary)
    whole = _round_up(max(1, chosen.size) * columns + spare, multiple)
    slots = max(1, (whole - spare) // columns)
    slot_of = np.full(rows, -1, dtype=np.int64)
    slot_of[chosen] = rng.permutation(slots)[: chosen.size]
    return Layout(Frame(slots, 1 if spare else multiple), slot_of)


def room_for(slots: int) -> int:
    """Bytes of a message that could tell so many slots: no pair shares more nodes."""
    return _SLOT.itemsize * slots


def require_room(data: bytes, room: int) -> None:
    """Refuse a layout of more slots than the message that it came in has bytes for.

    That message is filled up for as many nodes as there are slots: who claims many sends many.
    """
    slots = int.from_bytes(next(decode(data), b""), "little")
    if room_for(slots) > room:
        raise ProtocolError(
            f"A partner's layout claims {slots} slots in a message of {room} bytes, which has "
            f"room for {room // _SLOT.itemsize}; it was altered, or its sender means harm."
        )


def read_shared(
    data: bytes, rows: int, *, unheard: bool = False
) -> tuple[Frame, NDArray[np.int64]]:
    """Read what a target's `Layout.share` sent: its frame and the slots of `rows` shared nodes.

    Rows to which nobody may contribute have the slot -1, if there may be such rows (`unheard`).
    """
    parts = list(decode(data))
    if len(parts) != 3 or len(parts[0]) != 8 or len(parts[1]) != 8 or len(parts[2]) != 4 * rows:
        raise ProtocolError(
            f"A partner's layout of {len(data)} bytes does not hold the slots of {rows} shared "
            "nodes; compare the edges between both organisations."
        )
    frame = Frame(int.from_bytes(parts[0], "little"), int.from_bytes(parts[1], "little"))
    slots = np.frombuffer(parts[2], _SLOT).astype(np.int64)
    if frame.slots < 1 or not 1 <= frame.multiple <= MOST_MULTIPLE:
        raise ProtocolError(
            f"A partner's layout has {frame.slots} slots and is rounded up to a multiple of "
            f"{frame.multiple}, where 1 to {MOST_MULTIPLE} was expected; it cannot be used."
        )
    if unheard:
        slots[slots == _NO_SLOT] = -1
    told = slots[slots >= 0]
    if np.unique(told).size != told.size or (told >= frame.slots).any():
        raise ProtocolError(
            f"A partner's layout gives {rows} shared nodes slots that repeat or lie beyond its "
            f"{frame.slots}; it cannot be used, repeat the handshake."
        )
    return frame, slots


def _round_up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple
