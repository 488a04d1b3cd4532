"""Messages that differ from real ones in one way: bits, cuts, types, lengths, nesting."""

import json
import math
from random import Random

from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from fedlap_app.errors import FedLapError
from fedlap_app.store.packing import pack, unpack

LENGTHS = (0, 1, 7, 2**31, 0xFFFFFFFF, 2**32, 2**63 - 1, 2**63, 2**64 - 1)
WHOLE = (-(2**63), -(2**31), -1, 0, 1, 2, 255, 10**6, 2**31, 2**53 + 1, 2**63 - 1)
BROKEN = (math.nan, math.inf, -math.inf, -0.0, 1e308, -1e308, 5e-324)
TEXTS = (
    "", " ", "0", "-1", "nan", "None", "\x00", "\n", "../../etc/passwd", "/", ".", "\u0661",
    "\ud7ff", "\U0001f600", "a" * 300, "[" * 3000, '{"a":' * 1000, "%s%n", "where", "turn", "hello",
)  # fmt: skip
PIECES = (
    b"",
    b"\0" * 8,
    b"[" * 3000,
    b'{"a":' * 1000,
    b"null",
    b"[]",
    b"{}",
    b"\xff" * 64,
    b"1e999",
)
ODD = (None, True, -1, 0, 2**64, 1e308, "", "x" * 300, [], {}, [[[[[]]]]], [None], {"": None})
DEPTH = 4


def mutated(content: RecordDict, rng: Random) -> RecordDict:
    """A copy of some content that differs from it in one to three ways."""
    other = copy(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _mutate(other, rng)
    return other


def copy(content: RecordDict) -> RecordDict:
    """The same content in records of its own."""
    return RecordDict({name: _copy(record) for name, record in content.items()})


def _copy(record):
    if isinstance(record, ArrayRecord):
        other = ArrayRecord()
        for name, array in record.items():
            other[name] = array
        return other
    return type(record)(dict(record))


def _mutate(content: RecordDict, rng: Random) -> None:
    """Change one record, or which records there are."""
    names = [*content]
    if not names:
        content["config"] = ConfigRecord({"run": 1})
        return
    name, other = rng.choice(names), rng.choice(names)
    match rng.randrange(12):
        case 0:
            del content[name]
        case 1:
            content[rng.choice(TEXTS)] = content[name]
        case 2:
            content[name] = _copy(content[other])
        case 3:
            content[name] = rng.choice((ConfigRecord(), MetricRecord(), ArrayRecord()))
        case _:
            record = content[name]
            (_mutate_arrays if isinstance(record, ArrayRecord) else _mutate_values)(record, rng)


def _mutate_values(record: ConfigRecord | MetricRecord, rng: Random) -> None:
    """Change one value of a record, or which values there are."""
    keys = [*record]
    if not keys:
        record["stage"] = rng.choice(WHOLE)
        return
    key, other = rng.choice(keys), rng.choice(keys)
    match rng.randrange(8):
        case 0:
            del record[key]
        case 1:
            record[rng.choice(TEXTS)] = record[key]
        case 2:
            record[key] = record[other]
        case 3:
            record[key] = _any_value(record, rng)
        case _:
            record[key] = _changed(record[key], rng)


def _any_value(record, rng: Random):
    """A value of any type that a record can hold."""
    numbers = (rng.choice(WHOLE), rng.choice(BROKEN), [rng.choice(WHOLE)], [rng.choice(BROKEN)] * 3)
    if isinstance(record, MetricRecord):
        return rng.choice(numbers)
    texts = (rng.choice(TEXTS), rng.choice(PIECES), [rng.choice(TEXTS)], [rng.choice(PIECES)])
    return rng.choice((*numbers, *texts, rng.random() < 0.5, []))


def _changed(value, rng: Random):
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        near = (value + 1, value - 1, value * 2, -value)
        return max(-(2**63), min(2**63 - 1, rng.choice((*WHOLE, *near))))
    if isinstance(value, float):
        return rng.choice((*BROKEN, -value, value * 2, value + 1.0))
    if isinstance(value, str):
        return _text(value, rng)
    if isinstance(value, bytes):
        return changed_bytes(value, rng)
    return _list(value, rng)


def _text(value: str, rng: Random) -> str:
    match rng.randrange(4):
        case 0:
            return rng.choice(TEXTS)
        case 1:
            return value[: rng.randrange(len(value) + 1)]
        case 2:
            return value + rng.choice(TEXTS)
        case _:
            at = rng.randrange(len(value) + 1)
            return value[:at] + rng.choice("09azAZ/.\0 \u00e9") + value[at + 1 :]


def _list(values: list, rng: Random) -> list:
    if not values:
        return [rng.choice(WHOLE)]
    at = rng.randrange(len(values))
    match rng.randrange(5):
        case 0:
            return values[:at]
        case 1:
            return values * rng.choice((2, 3, 1000))
        case 2:
            return [*values[:at], *values[at + 1 :]]
        case 3:
            return values[::-1]
        case _:
            return [*values[:at], _changed(values[at], rng), *values[at + 1 :]]


def changed_bytes(data: bytes, rng: Random, depth: int = 0) -> bytes:
    """Other bytes: raw ones, or one part of packed ones, or one value of JSON."""
    if depth < DEPTH and rng.random() < 0.6:
        inner = _inside(data, rng, depth)
        if inner is not None:
            return inner
    return raw(data, rng)


def _inside(data: bytes, rng: Random, depth: int) -> bytes | None:
    """The same packing or JSON with something else in it; None: it is neither."""
    if data[:1] in (b"{", b"["):
        try:
            return json.dumps(_odd(json.loads(data), rng)).encode()
        except (ValueError, RecursionError):
            return None
    try:
        parts = [bytes(part) for part in unpack(data)]
    except FedLapError:
        return None
    if not parts:
        return None
    at, other = rng.randrange(len(parts)), rng.randrange(len(parts))
    match rng.randrange(8):
        case 0:
            del parts[at]
        case 1:
            parts.insert(at, parts[other])
        case 2:
            parts[at], parts[other] = parts[other], parts[at]
        case 3:
            parts[at] = pack(*parts)
        case _:
            parts[at] = changed_bytes(parts[at], rng, depth + 1)
    return pack(*parts)


def _odd(value, rng: Random):
    """JSON with one value replaced, anywhere in it."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice([*value])
        changed = dict(value)
        if rng.random() < 0.2:
            del changed[key]
        else:
            changed[key] = _odd(value[key], rng)
        return changed
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        return [*value[:at], _odd(value[at], rng), *value[at + 1 :]]
    return rng.choice(ODD)


def raw(data: bytes, rng: Random) -> bytes:
    """Bytes that differ from some others in one way, whatever they mean."""
    if not data:
        return rng.choice(PIECES)
    content, at = bytearray(data), rng.randrange(len(data))
    match rng.randrange(8):
        case 0:
            content[at] ^= 1 << rng.randrange(8)
        case 1:
            del content[at:]
        case 2:
            content += rng.randbytes(rng.choice((1, 8, 64)))
        case 3:
            place = 8 * rng.randrange(max(1, len(content) // 8))
            content[place : place + 8] = (rng.choice(LENGTHS) % 2**64).to_bytes(8, "little")
        case 4:
            place = 4 * rng.randrange(max(1, len(content) // 4))
            content[place : place + 4] = (rng.choice(LENGTHS) & 0xFFFFFFFF).to_bytes(4, "little")
        case 5:
            content[at : at + 16] = content[: len(content[at : at + 16])]
        case 6:
            content[at:at] = rng.choice(PIECES)
        case _:
            return rng.choice(PIECES)
    return bytes(content)


def _mutate_arrays(record: ArrayRecord, rng: Random) -> None:
    """Change one array of a record, or which arrays there are."""
    names = [*record]
    if not names:
        record["x"] = Array("float32", (1,), "numpy.ndarray", b"")
        return
    name, other = rng.choice(names), rng.choice(names)
    array = record[name]
    dtype, shape, stype, data = array.dtype, tuple(array.shape), array.stype, array.data
    match rng.randrange(10):
        case 0:
            del record[name]
            return
        case 1:
            record[rng.choice(TEXTS)] = array
            return
        case 2:
            record[name] = record[other]
            return
        case 3:
            dtype = rng.choice(
                ("float64", "int64", "object", "O", "", "V8", "U9", "bool", "nonsense")
            )
        case 4:
            shape = rng.choice(((), (0,), (-1,), (2**40,), (2**62, 4), (*shape, 1), shape[::-1]))
        case 5:
            stype = rng.choice(("", "pickle", "tensor"))
        case 6:
            data = _numbers(data, rng)
        case _:
            data = raw(data, rng)
    record[name] = Array(dtype, shape, stype, data)


def _numbers(data: bytes, rng: Random) -> bytes:
    """Numbers that are none, in the place of some."""
    start = min(len(data), 128)
    odd = rng.choice((b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\xff\xff\x7f\x7f"))
    size = len(data) - start
    if rng.random() < 0.5:
        return data[:start] + (odd * (size // 4 + 1))[:size]
    at = start + 4 * rng.randrange(size // 4 + 1)
    return data[:at] + odd + data[at + 4 :]
