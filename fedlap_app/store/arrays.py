"""One file for named arrays and their description: checked, written atomically, memory-mapped.

Layout: 8 bytes of magic, the header's length (uint64), the checksum of the arrays and of the
header (uint32 each), the header as JSON, then every array at a multiple of 64 bytes.
"""

import json
import os
import struct
import threading
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import DataError
from fedlap_app.store.files import replaced

MAGIC = b"FEDLAP\x01\n"
_PREFIX = struct.Struct("<8sQII")
_ALIGN = 64


def write_arrays(
    path: str | os.PathLike[str], meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a description and arrays to ``path``; readers see the old file or the new one."""
    writer = f"{os.getpid()}-{threading.get_ident()}"
    with replaced(Path(path), durable=False, writer=writer) as file:
        _write(file, meta, {key: np.ascontiguousarray(value) for key, value in arrays.items()})


def _write(file: BinaryIO, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    table: dict[str, dict[str, Any]] = {}
    offset = 0
    for key, array in arrays.items():
        dtype = array.dtype.newbyteorder("<").str
        table[key] = {"dtype": dtype, "shape": list(array.shape), "offset": offset}
        offset += -(-array.nbytes // _ALIGN) * _ALIGN
    header = json.dumps({"meta": meta, "arrays": table, "size": offset}).encode()
    header += b" " * (-(_PREFIX.size + len(header)) % _ALIGN)
    file.write(bytes(_PREFIX.size))
    file.write(header)
    checksum = 0
    for key, array in arrays.items():
        little = array.astype(table[key]["dtype"], copy=False)
        raw = little.reshape(-1).view(np.uint8).data if little.size else b""
        for piece in (raw, bytes(-little.nbytes % _ALIGN)):
            checksum = zlib.crc32(piece, checksum)
            file.write(piece)
    file.seek(0)
    file.write(_PREFIX.pack(MAGIC, len(header), checksum, zlib.crc32(header)))


def read_arrays(
    path: str | os.PathLike[str], *, mmap: bool = False
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Description and read-only arrays of a file.

    With ``mmap`` the arrays stay on disk until they are used and their checksum is not compared.
    """
    source = Path(path)
    try:
        raw = np.memmap(source, dtype=np.uint8, mode="r") if mmap else _slurp(source)
        magic, length, checksum, header_checksum = _PREFIX.unpack(raw[: _PREFIX.size].tobytes())
        start = _PREFIX.size + length
        header = raw[_PREFIX.size : start].tobytes()
        if magic != MAGIC or zlib.crc32(header) != header_checksum:
            raise ValueError
        described = json.loads(header)
        body = np.asarray(raw)[start:]
        if body.size != described["size"] or not (mmap or zlib.crc32(body.data) == checksum):
            raise ValueError
        return described["meta"], {
            key: _view(body, entry) for key, entry in described["arrays"].items()
        }
    except FileNotFoundError as error:
        raise DataError(f"There is no file {source}: write it first.") from error
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        raise DataError(
            f"{source} is damaged or was not written by FedLap: delete it and prepare it again."
        ) from error


def _slurp(path: Path) -> NDArray[np.uint8]:
    return np.frombuffer(path.read_bytes(), dtype=np.uint8)


def _view(body: NDArray[np.uint8], entry: Mapping[str, Any]) -> NDArray[Any]:
    dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
    size = int(np.prod(shape)) * dtype.itemsize
    piece = body[entry["offset"] : entry["offset"] + size]
    # A byte string of odd alignment cannot be viewed as wide numbers on every machine.
    if piece.size and piece.__array_interface__["data"][0] % max(dtype.alignment, 1):
        piece = piece.copy()
    array: NDArray[Any] = piece.view(dtype).reshape(shape)
    array.flags.writeable = False
    return array
