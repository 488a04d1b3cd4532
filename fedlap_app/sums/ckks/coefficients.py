"""Whole numbers in the coefficients of ciphertexts: their sums are exact modulo a power of two.

A word m below 2^t stands in a coefficient as m q / 2^t, cut off. Coefficients add up modulo q as
words do modulo 2^t, and every contribution adds an error of SEAL's distribution, which is drawn
anew. As long as these stay below half of q / 2^t, rounding takes all of them off: what comes out is
the sum itself and holds nothing of any error, of the key or of how often it was opened.

A contribution is one polynomial and the seed of the other. Whoever adds has no use for the second
ones and hands the seeds on; who opens draws them again and takes a_k s_k off the sum, so that every
contribution may be under a key of its own. Of the first polynomials only the coefficients that hold
something are sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.ckks import keys, workers
from fedlap_app.sums.ckks.parameters import ERROR, Parameters, load_seal
from fedlap_app.sums.ckks.seal_files import LARGEST, seal_files
from fedlap_app.sums.ckks.wire import STEP

_DEVIATIONS = 10.0
_CUT = 16  # bits that a correction may lack: it stays below one residue

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Coefficients:
    """How words stand in the coefficients of some parameters.

    Attributes
    ----------
    parameters
        Degree and prime q; a word is multiplied with about 2^scale_bits.
    """

    parameters: Parameters

    @property
    def most_contributors(self) -> int:
        """Contributions whose errors stay below half a step by ten deviations."""
        return int((self.parameters.scale / 2 / _DEVIATIONS / ERROR) ** 2)

    def room(self, words: int) -> int:
        """Coefficients that are sent of so many words."""
        return -(-words // STEP) * STEP

    def require_few(self, contributors: int) -> None:
        """Refuse a sum whose errors could pass for numbers."""
        if contributors > self.most_contributors:
            raise ProtocolError(
                f"A sum of {contributors} ciphertexts was asked for and {self.parameters.name} "
                f"holds {self.most_contributors}: set 'mask' in place of 'ckks'."
            )

    def encode(self, words: Words) -> Words:
        """Residues of words below 2^t."""
        # With q = 2^b - c, m q / 2^t is m 2^(b - t) less m c / 2^t.
        lacking = (words >> np.uint64(_CUT)) * np.uint64(self._short)
        lacking >>= np.uint64(self.parameters.word_bits - _CUT)
        found: Words = (words << np.uint64(self.parameters.scale_bits)) - lacking
        return found

    def decode(self, residues: Words) -> Words:
        """The words that some residues are nearest to."""
        # And 1 / q is (1 + c / 2^b) / 2^b, but for what is far below an error.
        half = self.parameters.bits // 2
        lacking = (residues >> np.uint64(half)) * np.uint64(self._short)
        lacking >>= np.uint64(self.parameters.bits - half)
        found = residues + lacking + np.uint64(1 << self.parameters.scale_bits - 1)
        found >>= np.uint64(self.parameters.scale_bits)
        found &= np.uint64((1 << self.parameters.word_bits) - 1)
        return found

    def add(self, residues: Words, others: Words) -> Words:
        """Add residues in place."""
        residues += others
        np.minimum(residues, residues - np.uint64(self.parameters.modulus), out=residues)
        return residues

    @property
    def _short(self) -> int:
        """What the prime lacks to a power of two."""
        return (1 << self.parameters.bits) - self.parameters.modulus


def zeros(secrets: Sequence[bytes], parameters: Parameters) -> tuple[Words, list[bytes]]:
    """First polynomials of fresh encryptions of zero, and their seeds.

    Parameters
    ----------
    secrets : sequence of bytes
        Of every ciphertext what its secret key is made of.
    parameters : Parameters
        Degree and prime.
    """
    shares = workers.shares(_zeros, secrets, parameters)
    return np.concatenate([first for first, _ in shares]), [
        seed for _, seeds in shares for seed in seeds
    ]


def _zeros(secrets: Sequence[bytes], parameters: Parameters) -> tuple[Words, list[bytes]]:
    files, first, seeds = seal_files(parameters), [], []
    for secret in secrets:
        encryptor = keys.symmetric_encryptor(secret, parameters)
        transformed, seed = files.seeded_words(encryptor.encrypt_zero_symmetric())
        first.append(transformed)
        seeds.append(seed)
    return _coefficients(np.stack(first), parameters), seeds


def unseal(
    total: Words, sealed: Sequence[tuple[bytes, Sequence[bytes]]], parameters: Parameters
) -> Words:
    """Residues of a sum of ciphertexts, errors included; the sum is changed.

    Parameters
    ----------
    total : array
        Sum of the first polynomials, as far as they were sent.
    sealed : sequence
        Of every contribution what its secret key is made of, and its seeds.
    parameters : Parameters
        Degree and prime.
    """
    count = parameters.ciphertexts(total.size)
    seal_of, files, change = load_seal(), seal_files(parameters), _evaluator(parameters)
    empty = np.zeros(parameters.degree, dtype=np.uint64)
    found = np.empty((count, parameters.degree), dtype=np.uint64)
    for number, row in enumerate(found):
        # SEAL takes no ciphertext whose second polynomial is zero.
        sum_of, plain = (
            files.ciphertext(np.stack([empty, empty + 1]), ntt=True),
            seal_of.Plaintext(),
        )
        for secret, seeds in sealed:
            second = files.expanded(empty, seeds[number])
            keys.decryptor(secret, parameters).decrypt(second, plain)
            change.add_plain_inplace(sum_of, plain)
        row[:] = files.words(sum_of)[0]
    return Coefficients(parameters).add(
        total, _coefficients(found, parameters).reshape(-1)[: total.size]
    )


def _coefficients(transformed: Words, parameters: Parameters) -> Words:
    """Coefficients of polynomials in NTT form, by as many as SEAL transforms at once."""
    files, out = seal_files(parameters), np.empty_like(transformed)
    for start in range(0, len(out), LARGEST):
        part = transformed[start : start + LARGEST]
        size = max(2, len(part))
        some = files.ciphertext(np.resize(part, (size, parameters.degree)), ntt=True)
        _evaluator(parameters).transform_from_ntt_inplace(some)
        out[start : start + LARGEST] = files.words(some, size)[: len(part)]
    return out


@lru_cache(maxsize=8)
def _evaluator(parameters: Parameters) -> Any:  # noqa: ANN401
    """SEAL's evaluator, which adds and transforms."""
    return load_seal().Evaluator(parameters.context)
