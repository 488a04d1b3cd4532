"""What hides the padded words of a training sum from the server: one more pad, or ciphertexts.

Pads between contributors hide what each of them gives from all others, whichever cover there is.
Under `mask` the sum itself hides behind one more pad that all members know. Under `ckks` every
contribution is encrypted under a key of the group: words of 32 bits as they are, those of 64 as
four of 16. Sums of both are exact, so both give the same words, and thus the same model.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.accumulator import Accumulator, Line
from fedlap_app.sums.checks import SLOTS
from fedlap_app.sums.ckks import keys
from fedlap_app.sums.ckks import words as ciphered
from fedlap_app.sums.ckks.coefficients import Coefficients
from fedlap_app.sums.ckks.parameters import TRAINING_2048
from fedlap_app.sums.ckks.words import WordAccumulator, WordForm
from fedlap_app.sums.header import Header, Sum
from fedlap_app.sums.keyring import KeyRing
from fedlap_app.sums.training.shape import SumShape, Words

_LIMBS = 4  # of a word of 64 bits
_LIMB_BITS = 16
Senders = Callable[[str], Sequence[str]]


class Cover(ABC):
    """What one member does with the words of a sum, once pads between contributors are on them.

    Parameters
    ----------
    keys
        Keys of the member, the group key included.
    """

    group_pad: ClassVar[bool]
    """Whether the sum hides behind a pad of the group."""

    def __init__(self, keys: KeyRing) -> None:
        self.keys = keys

    @staticmethod
    @abstractmethod
    def body_bytes(shape: SumShape, contributors: int) -> int:
        """Bytes of a sum of so many, header not counted; 1: of a contribution."""

    @abstractmethod
    def seal(self, words: Words, shape: SumShape, contributors: int) -> Any:  # noqa: ANN401
        """Body of a contribution to a sum of so many."""

    @abstractmethod
    def open(self, body: memoryview, shape: SumShape, contributors: int) -> Words:
        """Words of a sum."""

    @staticmethod
    @abstractmethod
    def accumulator(header: Header, senders: Senders, shape: SumShape) -> Accumulator:
        """The server's side."""


class Mask(Cover):
    """Words as they are."""

    group_pad = True

    @staticmethod
    def body_bytes(shape: SumShape, contributors: int) -> int:
        """Eight a word."""
        return 8 * (shape.narrow + shape.scores + SLOTS)

    def seal(self, words: Words, shape: SumShape, contributors: int) -> Any:  # noqa: ANN401
        """The words."""
        return words.data

    def open(self, body: memoryview, shape: SumShape, contributors: int) -> Words:
        """The words."""
        return np.frombuffer(body, dtype="<u8").copy()

    @staticmethod
    def accumulator(header: Header, senders: Senders, shape: SumShape) -> Accumulator:
        """Adds words whose first ones hold several narrow numbers each."""
        return _Ring(header, senders, shape)


class Ciphertexts(Cover):
    """Words in ciphertexts under a key of the group."""

    group_pad = False

    @staticmethod
    def body_bytes(shape: SumShape, contributors: int) -> int:
        """Residues, and the seeds of all contributions."""
        return _form(shape, contributors).size

    def seal(self, words: Words, shape: SumShape, contributors: int) -> Any:  # noqa: ANN401
        """Ciphertexts of the words."""
        Coefficients(TRAINING_2048).require_few(contributors)
        form = _form(shape)
        limbs = np.empty(form.words, dtype=np.uint64)
        wide = form.words - _LIMBS * (words.size - shape.narrow)
        limbs[:wide] = words[: shape.narrow].view("<u4")
        limbs[wide:] = words[shape.narrow :].view("<u2")
        part = ciphered.Part(limbs, form, self._secret, keys.key_id(self._secret))
        return ciphered.seal([part], TRAINING_2048)[0]

    def open(self, body: memoryview, shape: SumShape, contributors: int) -> Words:
        """The words that are nearest, modulo what they were taken from."""

        def require(key: bytes) -> None:
            ciphered.require_key(key, keys.key_id(self._secret), "a round")

        form = _form(shape, contributors)
        found = ciphered.unseal(body, form, [self._secret] * contributors, require)
        wide = form.words - _LIMBS * (shape.scores + SLOTS)
        words = np.empty(shape.narrow + shape.scores + SLOTS, dtype="<u8")
        words[: shape.narrow].view("<u4")[:] = found[:wide]
        limbs = found[wide:].reshape(-1, _LIMBS)
        shifts = np.arange(_LIMBS, dtype=np.uint64) * np.uint64(_LIMB_BITS)
        words[shape.narrow :] = (limbs << shifts).sum(axis=1, dtype=np.uint64)
        return words

    @staticmethod
    def accumulator(header: Header, senders: Senders, shape: SumShape) -> Accumulator:
        """Adds residues."""
        return _Residues(header, senders, shape)

    @property
    def _secret(self) -> bytes:
        return self.keys.group_secret(TRAINING_2048.name)


class _Ring(Accumulator):
    """A running sum whose first words hold several narrow numbers each."""

    word: ClassVar[str] = "<u8"

    def __init__(self, header: Header, senders: Senders, shape: SumShape) -> None:
        self._narrow, self._lanes = shape.narrow, shape.lanes
        super().__init__(header, senders)

    def _absorb(self, line: Line, sender: str, words: NDArray[np.uint64]) -> None:
        rest = line.total[self._narrow :]
        self._lanes.add(line.total[: self._narrow], words[: self._narrow])
        rest += words[self._narrow :]


class _Residues(WordAccumulator):
    """A running sum of ciphertexts."""

    parameters = TRAINING_2048

    def __init__(self, header: Header, senders: Senders, shape: SumShape) -> None:
        self._shape = shape
        super().__init__(header, senders)

    def form(self, this: Sum) -> WordForm:
        """Form of a contribution."""
        return _form(self._shape)


def _form(shape: SumShape, contributors: int = 1) -> WordForm:
    """What the words of a sum look like in ciphertexts."""
    count = 2 * shape.narrow + _LIMBS * (shape.scores + SLOTS)
    return WordForm(TRAINING_2048, count, contributors)


MASK, CKKS = "mask", "ckks"
COVERS: dict[str, type[Cover]] = {MASK: Mask, CKKS: Ciphertexts}


def cover_of(name: str) -> type[Cover]:
    """Cover of a back end."""
    if name not in COVERS:
        raise ProtocolError(f"{name[:40]!r} seals no training; choose one of {', '.join(COVERS)}.")
    return COVERS[name]
