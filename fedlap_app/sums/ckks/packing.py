"""Complex packing: N real numbers in the N / 2 complex slots of one plaintext.

The slots of a plaintext m are its values at the roots zeta^(3^j), zeta = exp(i pi / N), j < N / 2,
as SEAL orders them; at the conjugate roots it has the conjugate values. Half of all these are the
roots r = zeta^(4 k + 1), for which r^(N/2) = i, so that m(r) is the sum over n < N / 2 of
(m_n + i m_(n + N/2)) r^n: a Fourier transform of N / 2 numbers, and so is the way back.

Value j stands in the real part of slot j, value N / 2 + j in the imaginary part.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fedlap_app.sums.ckks.parameters import Parameters

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]


def encode(values: Floats, parameters: Parameters) -> Words:
    """Coefficients modulo q, in the form (ciphertexts, N), of values of the same form."""
    half = parameters.degree // 2
    slots, signs, turns = _embedding(parameters.degree, parameters.scale)
    spectrum = np.empty((len(values), half), dtype=np.complex128)
    spectrum.real = values[:, slots]
    np.multiply(values[:, half + slots], signs, out=spectrum.imag)
    transformed = np.fft.fft(spectrum, axis=1)
    transformed *= turns
    whole = np.empty(values.shape, dtype=np.int64)
    np.rint(transformed.real, out=whole[:, :half], casting="unsafe")
    np.rint(transformed.imag, out=whole[:, half:], casting="unsafe")
    # All bits of a negative number's sign, so that q is added to those only.
    whole += (whole >> 63) & parameters.modulus
    return whole.view(np.uint64)


def from_slots(slots: NDArray[np.complex128]) -> Floats:
    """Values of decoded slots (ciphertexts, N / 2)."""
    return np.concatenate([slots.real, slots.imag], axis=1)


@lru_cache(maxsize=8)
def _embedding(
    degree: int, scale: float
) -> tuple[NDArray[np.int64], Floats, NDArray[np.complex128]]:
    """Which slot belongs to zeta^(4 k + 1), whether as it is or conjugate, and the last factors."""
    slots, signs = np.empty(degree // 2, dtype=np.int64), np.empty(degree // 2)
    power = 1
    for slot in range(degree // 2):
        conjugate = power % 4 == 3
        k = ((2 * degree - power if conjugate else power) - 1) // 4
        slots[k], signs[k] = slot, -1.0 if conjugate else 1.0
        power = 3 * power % (2 * degree)
    turns = np.exp(-1j * np.pi * np.arange(degree // 2) / degree) * (2 * scale / degree)
    return slots, signs, turns
