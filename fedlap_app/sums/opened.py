"""Decrypted numbers as a type of their own, so that none reaches the server by accident."""

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray


class Opened:
    """Numbers from an opened sum; only `numbers` gives them, in places that say so.

    One decrypted value at full precision can cost a homomorphic back end its key, so this type
    refuses everything by which a value would get into a message, a metric or a log record: it does
    not pickle, convert to an array or a number, iterate, or print its content.
    """

    __slots__ = ("_numbers",)

    def __init__(self, numbers: NDArray[np.float64]) -> None:
        self._numbers = numbers

    @property
    def numbers(self) -> NDArray[np.float64]:
        """The numbers, for computations that stay with this member."""
        return self._numbers

    def __len__(self) -> int:
        return self._numbers.size

    def __repr__(self) -> str:
        return f"<Opened: {len(self)} numbers>"

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:  # noqa: ANN401
        raise TypeError("Opened numbers stay with the member that opened them; use `.numbers`.")

    __array__ = __float__ = __int__ = __iter__ = __getitem__ = _refuse
    __bytes__ = __reduce_ex__ = __getstate__ = _refuse
