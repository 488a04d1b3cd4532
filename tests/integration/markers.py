"""What must never leave an organisation, as bytes to search for in traffic, databases and logs."""

import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedlap_app.graphs.folder import read_folder
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.sums.job.bases import Bases

_KINDS = ("<f8", "<f4", ">f8")
_HEAD = 8  # bytes by which a marker is looked for; shorter ones could appear by chance
_RUN = 8  # whole numbers in a row: fewer may appear by chance


def planted(parts: Iterable[Subgraph]) -> list[Subgraph]:
    """The same organisations with names of classes and features that appear nowhere else."""
    return [
        replace(
            part,
            classes=tuple(f"markedclass{number}q" for number in range(len(part.classes))),
            feature_names=tuple(
                f"markedfeature{number}q" for number in range(len(part.feature_names))
            ),
        )
        for part in parts
    ]


def markers(data: Path, store: Path) -> dict[str, list[bytes]]:
    """Bytes that betray the features, labels, edges, node ids and eigenvalues of a folder."""
    part = read_folder(data)
    bases = Bases(store / "basis")
    spectra = [bases.load(facts) for facts in bases.facts()]
    assert spectra, "there is no finished basis to take eigenvalues from"
    return {
        "features": [name.encode() for name in part.feature_names]
        + _numbers(_dense(part)[:50].ravel()),
        "labels": [name.encode() for name in part.classes]
        + _rows(part.labels.reshape(1, -1)[:, : 4 * _RUN]),
        "edges": _numbers(part.edge_weight[:200]) + _rows(part.edge_index[:, : 4 * _RUN]),
        "node ids": [str(node).encode() for node in (*part.ids, *part.external_ids)],
        "eigenvalues": [found for each in spectra for found in _numbers(each.eigenvalues)],
        "rows of the basis": [found for each in spectra for found in _numbers(each.U[:20].ravel())],
    }


def found_in(content: bytes, sought: dict[str, list[bytes]]) -> dict[str, int]:
    """How many markers of each kind are in the content; kinds without any are left out."""
    heads = _heads(content, [mark for marks in sought.values() for mark in marks])
    counts = {
        kind: sum(_is_at(content, mark, heads.get(mark[:_HEAD], ())) for mark in set(marks))
        for kind, marks in sought.items()
    }
    return {kind: count for kind, count in counts.items() if count}


def _heads(content: bytes, marks: Iterable[bytes]) -> dict[bytes, list[int]]:
    """Where the first bytes of markers are; all of them at once, since there are thousands."""
    wanted = np.unique(np.array([int.from_bytes(m[:_HEAD], "little") for m in marks], "<u8"))
    is_possible = np.zeros(2**16, dtype=bool)
    is_possible[wanted & 0xFFFF] = True
    places: dict[bytes, list[int]] = {}
    for offset in range(min(_HEAD, max(0, len(content) - _HEAD))):
        words = np.frombuffer(content, "<u8", (len(content) - offset) // _HEAD, offset)
        possible = np.flatnonzero(is_possible[words & 0xFFFF])
        for index in possible[np.isin(words[possible], wanted)].tolist():
            start = offset + _HEAD * index
            places.setdefault(content[start : start + _HEAD], []).append(start)
    return places


def _is_at(content: bytes, mark: bytes, places: Iterable[int]) -> bool:
    return any(content.startswith(mark, place) for place in places)


def database_content(path: Path) -> bytes:
    """Every value of an SQLite database, its files as they are, and what zlib can open in it."""
    files = [path, *path.parent.glob(f"{path.name}-*")]
    content = [each.read_bytes() for each in files]
    with sqlite3.connect(path) as connection:
        for (table,) in connection.execute("select name from sqlite_master where type = 'table'"):
            for row in connection.execute(f'select * from "{table}"'):
                content.extend(_plain(row))
    return b"\n".join(content)


def _plain(row: Iterable[object]) -> Iterator[bytes]:
    for value in row:
        data = value if isinstance(value, bytes) else str(value).encode()
        yield data
        try:
            yield zlib.decompress(data)
        except zlib.error:
            continue


def _numbers(values: NDArray[np.floating]) -> list[bytes]:
    """Numbers as bytes and as text; round ones could be anybody's."""
    telling = [float(v) for v in values if v and abs(v) > 1e-12 and float(v) * 1024 % 1]
    sought = []
    for value in telling:
        sought.extend(np.array(value, dtype=kind).tobytes() for kind in _KINDS)
        sought.append(f"{value:.9g}".encode())
    return [mark for mark in sought if len(mark) >= _HEAD] + [
        np.array(telling[start : start + 2], "<f4").tobytes()
        for start in range(0, len(telling) - 1, 2)
    ]


def _rows(table: NDArray[np.integer]) -> list[bytes]:
    """Stretches of whole numbers in the types in which they could travel."""
    return [
        row[start : start + _RUN].astype(kind).tobytes()
        for row in table
        for start in range(0, row.size - _RUN + 1, _RUN)
        for kind in ("<i8", "<i4", "<i2")
        if np.unique(row[start : start + _RUN]).size > 2
    ]


def _dense(part: Subgraph) -> NDArray[np.floating]:
    features = part.features
    return features if isinstance(features, np.ndarray) else features.toarray()
