"""Complex packing: N real numbers in the N / 2 complex slots of one plaintext.

The slots of a plaintext m are its values at the roots zeta^(3^j), zeta = exp(i pi / N), j < N / 2,
as SEAL orders them; at the conjugate roots it has the conjugate values. So the coefficients are a
Fourier transform of N values away. Value j stands in the real part of slot j, value N / 2 + j in
the imaginary part.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fedlap_app.secure.ckks.parameters import Parameters

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]


def encode(values: Floats, parameters: Parameters) -> Words:
    """Coefficients modulo q, in the form (ciphertexts, N), of values of the same form."""
    half = parameters.degree // 2
    at, conjugate_at, turns = _embedding(parameters.degree, parameters.scale)
    spectrum = np.empty(values.shape, dtype=np.complex128)
    spectrum[:, at] = values[:, :half]
    spectrum.imag[:, at] = values[:, half:]
    spectrum[:, conjugate_at] = spectrum[:, at].conj()
    transformed = np.fft.fft(spectrum, axis=1)
    transformed *= turns
    whole = np.rint(transformed.real).astype(np.int64)
    whole[whole < 0] += parameters.modulus
    return whole.view(np.uint64)


def from_slots(slots: NDArray[np.complex128]) -> Floats:
    """Values of decoded slots (ciphertexts, N / 2)."""
    return np.concatenate([slots.real, slots.imag], axis=1)


@lru_cache(maxsize=8)
def _embedding(
    degree: int, scale: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.complex128]]:
    """Place of each slot and of its conjugate among the odd powers of zeta, and the last factor."""
    powers = np.empty(degree // 2, dtype=np.int64)
    power = 1
    for slot in range(degree // 2):
        powers[slot] = power
        power = 3 * power % (2 * degree)
    at = (powers - 1) // 2
    turns = np.exp(-1j * np.pi * np.arange(degree) / degree) * (scale / degree)
    return at, degree - 1 - at, turns
