"""What the phase has cost a member by the server's counting, as its certificate says it."""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from fedlap_app.errors import ProtocolError
from fedlap_app.store.packing import Data

PRICE_BYTES = 160
_MOST_BYTES = 1024
_LARGEST = 2**63


class Stated(NamedTuple):
    """The price of one member."""

    round_trips: int
    bytes_up: int
    bytes_down: int
    seconds: float


def pack_price(price: Mapping[str, Any]) -> bytes:
    """A price in so many bytes whatever its digits: the lengths of messages tell nothing."""
    return json.dumps(price).encode().ljust(PRICE_BYTES)


def read_price(data: Data) -> Stated:
    """Read what `pack_price` wrote; nothing but plain numbers is taken for it."""
    try:
        found = json.loads(bytes(data[:_MOST_BYTES]))
        price = Stated(*(found[name] for name in Stated._fields))
        counts = all(type(each) is int and 0 <= each < _LARGEST for each in price[:-1])
        if not counts or type(price.seconds) not in (int, float):
            raise ValueError
        if not 0 <= price.seconds < _LARGEST or not math.isfinite(price.seconds):
            raise ValueError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ProtocolError(
            f"A price of {len(data)} bytes came that is not what the server counts; the message "
            "was altered."
        ) from None
    return price
