"""The back end `ckks`: sums of ciphertexts that only clients can decrypt.

A contribution to a block sum is encrypted under the public key of its recipient, one to a small sum
under the group key, which all members hold and the server does not; the latter are seeded, half
the bytes. Inside of the ciphertexts lie zero-sum pads between the senders: whoever gets hold of
single ciphertexts and of the key opens noise. Check slots tell the recipient that the sum is whole.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.accumulator import Line
from fedlap_app.sums.backend import Sheet, StepWeights
from fedlap_app.sums.ckks import ciphertexts, keys, packing, wire
from fedlap_app.sums.ckks.checks import SLOTS
from fedlap_app.sums.ckks.keyed import KeyedAccumulator
from fedlap_app.sums.ckks.pads import ResiduePads
from fedlap_app.sums.ckks.parameters import PARAMETERS, Parameters
from fedlap_app.sums.ckks.profiles import base_of, without_pads
from fedlap_app.sums.ckks.sealing import CiphertextBackend, Floats
from fedlap_app.sums.ckks.wire import PAIRS, SEEDED, Form
from fedlap_app.sums.header import Header, Place, Sum

Words = NDArray[np.uint64]


def _parameters_of(profile: str) -> Parameters:
    return PARAMETERS[base_of(profile)]


class CkksBackend(CiphertextBackend):
    """Ciphertexts for additions only.

    `ckks-2048` holds sums below 398, `ckks-4096` below 25,000.
    """

    profiles: ClassVar[tuple[str, ...]] = (*PARAMETERS, *map(without_pads, PARAMETERS))

    @cached_property
    def parameters(self) -> Parameters:
        """Parameters of the profile."""
        return _parameters_of(self.profile)

    @classmethod
    def body_bytes(cls, profile: str, this: Sum, *, summed: bool) -> int:
        """Bytes of a sum or of one contribution to it, header not counted."""
        return 8 * (sum_form if summed else contribution_form)(this, _parameters_of(profile)).words

    @classmethod
    def new_public_key(cls, profile: str, seed: bytes) -> bytes:
        """Public key for the block sums of a member, drawn for a secret seed."""
        return keys.new_public_key(seed, _parameters_of(profile))

    @classmethod
    def public_key_bytes(cls, profile: str) -> int:
        """Bytes of such a key."""
        return keys.public_key_bytes(_parameters_of(profile))

    def _count(self, this: Sum) -> int:
        return contribution_form(this, self.parameters).count

    def _body(self, sheet: Sheet, weights: StepWeights) -> memoryview:
        sealed = []
        for this in sheet.header.sums:
            plain = self._plain(sheet.rooms[this.recipient], this, sheet.header.place, weights)
            sealed.append(self._encrypted(plain, this.recipient))
        packed = wire.pack_all([residues for residues, _ in sealed], self.parameters)
        parts: list[bytes] = []
        for this, words, (_, seeds) in zip(sheet.header.sums, packed, sealed, strict=True):
            form = contribution_form(this, self.parameters)
            parts += form.write(self._key_id(this.recipient), words, seeds)
        return memoryview(b"".join(parts))

    def _plain(self, values: Floats, this: Sum, place: Place, weights: StepWeights) -> Words:
        """Padded plaintexts of one contribution, with its check slots."""
        numbers = self._filled(values, this, place, weights)
        plain = packing.encode(numbers, self.parameters)
        return self._pad(plain, this.recipient, place, weights) if self._padded else plain

    def _encrypted(self, plain: Words, recipient: str) -> tuple[Words, list[bytes]]:
        """Residues of ciphertexts, and seeds if there are any."""
        chosen = self.parameters
        if not recipient:
            encryptor = keys.symmetric_encryptor(self._group_seed, chosen)
            return ciphertexts.encrypt_seeded(plain, encryptor, chosen)
        return ciphertexts.encrypt(plain, self._public_key(recipient), chosen), []

    def _pad(self, plain: Words, recipient: str, place: Place, weights: StepWeights) -> Words:
        plus, minus = self._signs[recipient]
        pads = self._pads.total(
            plain.size, place, recipient, add=plus, subtract=minus, seen=weights.key
        )
        total: Words = plain + pads.reshape(plain.shape)
        np.minimum(total, total - np.uint64(self.parameters.modulus), out=total)
        return total

    def _open(self, body: memoryview, this: Sum, place: Place, weights: StepWeights) -> Floats:
        chosen = self.parameters
        form = sum_form(this, chosen)
        key, packed, _ = form.read(np.frombuffer(body, "<u8"))
        self._require_key(key, this, place)
        words = wire.unpack_all([packed], chosen)[0].reshape(form.count, 2, -1)
        decryptor = keys.decryptor(self._secret_seed(this.recipient), chosen)
        numbers = ciphertexts.decrypt(words, decryptor, chosen).reshape(-1)
        return self._verified(numbers, this, weights)

    @cached_property
    def _pads(self) -> ResiduePads:
        return ResiduePads(self.keys, self.parameters.modulus, self.parameters.bits)


class CkksAccumulator(KeyedAccumulator):
    """Running sums of ciphertexts, coefficient by coefficient; holds no key and needs none."""

    def __init__(self, header: Header, senders: Callable[[str], Sequence[str]]) -> None:
        if header.profile not in CkksBackend.profiles:
            raise ProtocolError(
                f"There is no profile {header.profile!r} of the back end ckks; "
                f"choose one of {', '.join(CkksBackend.profiles)}."
            )
        self._parameters = _parameters_of(header.profile)
        # Residues are summed in 64 bits and reduced when so many are in a sum.
        self._most = (1 << 64) // self._parameters.modulus - 1
        super().__init__(header, senders)

    def _room(self, this: Sum) -> NDArray[Any]:
        count = contribution_form(this, self._parameters).count
        return np.zeros((count, 2, self._parameters.degree), dtype=np.uint64)

    def _words(self, this: Sum) -> int:
        return contribution_form(this, self._parameters).words

    def _read(self, lines: Sequence[Line], parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Ciphertexts of all contributions of a member; anything else is refused."""
        found = []
        for line, words in zip(lines, parts, strict=True):
            key, packed, seeds = contribution_form(line.sum, self._parameters).read(words)
            self._require_key(line, key)
            found.append((packed, seeds))
        residues = wire.unpack_all([packed for packed, _ in found], self._parameters)
        return [
            self._expanded(each, seeds) if seeds else each.reshape(len(each), 2, -1)
            for each, (_, seeds) in zip(residues, found, strict=True)
        ]

    def _expanded(self, first: Words, seeds: Sequence[bytes]) -> Words:
        """Both polynomials of seeded ciphertexts."""
        second = np.stack([ciphertexts.expand(seed, self._parameters) for seed in seeds])
        return np.stack([first, second], axis=1)

    def _absorb(self, line: Line, sender: str, words: NDArray[Any]) -> None:
        if line.added and len(line.added) % self._most == 0:
            line.total %= np.uint64(self._parameters.modulus)
        line.total += words
        self._keep_key(line)

    def _sum_body(self, line: Line) -> bytes | memoryview:
        line.total %= np.uint64(self._parameters.modulus)
        form = sum_form(line.sum, self._parameters)
        packed = wire.pack_all([line.total], self._parameters)
        return b"".join(form.write(self._key_of(line), packed[0]))


def contribution_form(this: Sum, parameters: Parameters) -> Form:
    """Form of a contribution."""
    count = parameters.ciphertexts(this.length + SLOTS)
    return Form(parameters, count, PAIRS if this.recipient else SEEDED)


def sum_form(this: Sum, parameters: Parameters) -> Form:
    """Form of a sum."""
    return Form(parameters, parameters.ciphertexts(this.length + SLOTS), PAIRS)
