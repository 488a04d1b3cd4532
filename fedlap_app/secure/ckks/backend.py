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
from fedlap_app.secure.backend import Accumulator, Line, Sheet, StepWeights, SumBackend
from fedlap_app.secure.ckks import ciphertexts, keys, packing, wire
from fedlap_app.secure.ckks.checks import SLOTS, RealWeights
from fedlap_app.secure.ckks.pads import ResiduePads
from fedlap_app.secure.ckks.parameters import CKKS_2048, PARAMETERS, Parameters
from fedlap_app.secure.ckks.wire import PAIRS, SEEDED, Form
from fedlap_app.secure.header import Header, Place, Sum
from fedlap_app.secure.kdf import digest
from fedlap_app.secure.pads import pad_partners

NO_PADS = "insecure-no-pads"
_SEPARATOR = "+"

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]


def parameters_of(profile: str) -> Parameters:
    """Parameters of a profile; empty: the usual ones."""
    return PARAMETERS[profile.partition(_SEPARATOR)[0] or CKKS_2048.name]


def without_pads(profile: str) -> str:
    """The same profile without pads."""
    return f"{profile}{_SEPARATOR}{NO_PADS}"


class CkksBackend(SumBackend):
    """Seal by encryption, open by decryption.

    `ckks-2048` holds sums below 398, `ckks-4096` below 25,000.
    """

    name: ClassVar[str] = "ckks"
    profiles: ClassVar[tuple[str, ...]] = (*PARAMETERS, *map(without_pads, PARAMETERS))

    @property
    def weakness(self) -> str:
        """Warning for the start of a run."""
        if self._padded:
            return super().weakness
        return (
            f"{NO_PADS} leaves out the pads inside of the ciphertexts: whoever holds a key and "
            "gets single ciphertexts from the server reads single contributions; use it for "
            "measurements only."
        )

    @property
    def _padded(self) -> bool:
        return not self.profile.endswith(NO_PADS)

    @cached_property
    def parameters(self) -> Parameters:
        """Parameters of the profile."""
        return parameters_of(self.profile)

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
        count = contribution_form(this, self.parameters).count
        numbers = np.zeros(count * self.parameters.degree)
        numbers[: this.length] = values
        products = self._check_weights.fill(numbers, this.length, weights, this.recipient)
        self._require_bound(numbers, this.contributors)
        # The inner products under secret weights are a digest of the content.
        self.ledger.claim(place, this.recipient, weights.key + products.tobytes())
        plain = packing.encode(numbers.reshape(count, -1), self.parameters)
        return self._pad(plain, this.recipient, place) if self._padded else plain

    def _encrypted(self, plain: Words, recipient: str) -> tuple[Words, list[bytes]]:
        """Residues of ciphertexts, and seeds if there are any."""
        chosen = self.parameters
        if not recipient:
            encryptor = keys.symmetric_encryptor(self._group_seed, chosen)
            return ciphertexts.encrypt_seeded(plain, encryptor, chosen)
        return ciphertexts.encrypt(plain, self._public_key(recipient), chosen), []

    def _require_bound(self, numbers: Floats, contributors: int) -> None:
        """Refuse what the sum could not hold: it would wrap without a sign."""
        limit = self.parameters.limit / contributors
        # Written so that a nan fails too; the value itself stays out of the sentence.
        if not np.abs(numbers).max() < limit:
            raise ProtocolError(
                f"A value to be summed is not finite or not below {limit:g} in absolute value "
                f"({self.parameters.limit:g} over {contributors} contributors); scale the values "
                "down before sealing, or use the profile ckks-4096."
            )

    def _pad(self, plain: Words, recipient: str, place: Place) -> Words:
        plus, minus = self._signs[recipient]
        pads = self._pads.total(plain.size, place, recipient, add=plus, subtract=minus)
        total: Words = plain + pads.reshape(plain.shape)
        np.minimum(total, total - np.uint64(self.parameters.modulus), out=total)
        return total

    def _open(self, body: memoryview, this: Sum, place: Place, weights: StepWeights) -> Floats:
        chosen = self.parameters
        form = sum_form(this, chosen)
        key, packed, _ = form.read(np.frombuffer(body, "<u8"))
        if key != self._key_id(this.recipient):
            raise ProtocolError(
                f"A sum of {place} is under another key than that of {this.recipient or 'all'!r}; "
                "it is stale, misrouted or altered."
            )
        words = wire.unpack_all([packed], chosen)[0].reshape(form.count, 2, -1)
        seed = self.keys.sum_seed if this.recipient else self._group_seed
        numbers = ciphertexts.decrypt(words, keys.decryptor(seed, chosen), chosen).reshape(-1)
        self._check_weights.verify(
            numbers,
            this.length,
            weights,
            this.recipient,
            count=this.contributors,
            noise=chosen.noise(this.contributors, symmetric=not this.recipient),
        )
        return numbers[: this.length].copy()

    def _sum_bytes(self, this: Sum) -> int:
        return 8 * sum_form(this, self.parameters).words

    def _public_key(self, recipient: str) -> bytes:
        if recipient not in self.keys.public_keys:
            raise ProtocolError(
                f"There is no public key of {recipient!r}; finish the handshake first."
            )
        return self.keys.public_keys[recipient]

    def _key_id(self, recipient: str) -> bytes:
        if recipient not in self._key_ids:
            key = self._public_key(recipient) if recipient else self._group_seed
            self._key_ids[recipient] = keys.key_id(key)
        return self._key_ids[recipient]

    @cached_property
    def _key_ids(self) -> dict[str, bytes]:
        return {}

    @cached_property
    def _group_seed(self) -> bytes:
        return self.keys.group_secret(f"ckks {self.parameters.name}")

    @cached_property
    def _check_weights(self) -> RealWeights:
        return RealWeights()

    @cached_property
    def _pads(self) -> ResiduePads:
        return ResiduePads(self.keys, self.parameters.modulus, self.parameters.bits)

    @cached_property
    def _signs(self) -> dict[str, tuple[list[str], list[str]]]:
        """Peers whose pad is added, and those whose pad is subtracted, for each recipient."""
        me, secret = self.keys.me, self.keys.group_secret("pad partners")
        signs = {}
        for recipient in ("", *self.keys.members):
            senders = self.senders(recipient)
            if me in senders:
                partners = pad_partners(me, senders, digest(secret, recipient))
                plus = [peer for peer in partners if me < peer]
                signs[recipient] = plus, [peer for peer in partners if peer < me]
        return signs


class CkksAccumulator(Accumulator):
    """Running sums of ciphertexts, coefficient by coefficient; holds no key and needs none."""

    word: ClassVar[str] = "<u8"

    def __init__(self, header: Header, senders: Callable[[str], Sequence[str]]) -> None:
        if header.profile not in CkksBackend.profiles:
            raise ProtocolError(
                f"There is no profile {header.profile!r} of the back end ckks; "
                f"choose one of {', '.join(CkksBackend.profiles)}."
            )
        self._parameters = parameters_of(header.profile)
        # Residues are summed in 64 bits and reduced when so many are in a sum.
        self._most = (1 << 64) // self._parameters.modulus - 1
        self._keys: dict[str, bytes] = {}
        self._newest: dict[str, bytes] = {}
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

    def _require_key(self, line: Line, key: bytes) -> None:
        recipient = line.sum.recipient
        self._newest[recipient] = key
        known = self._keys.get(recipient, key)
        if key != known:
            raise ProtocolError(
                f"A contribution to {self.step.place} is under the key {key.hex()} where "
                f"{known.hex()} was used; ciphertexts under different keys are never added."
            )

    def _expanded(self, first: Words, seeds: Sequence[bytes]) -> Words:
        """Both polynomials of seeded ciphertexts."""
        second = np.stack([ciphertexts.expand(seed, self._parameters) for seed in seeds])
        return np.stack([first, second], axis=1)

    def _absorb(self, line: Line, sender: str, words: NDArray[Any]) -> None:
        if line.added and len(line.added) % self._most == 0:
            line.total %= np.uint64(self._parameters.modulus)
        line.total += words
        self._keys[line.sum.recipient] = self._newest[line.sum.recipient]

    def _sum_body(self, line: Line) -> bytes | memoryview:
        line.total %= np.uint64(self._parameters.modulus)
        form = sum_form(line.sum, self._parameters)
        packed = wire.pack_all([line.total], self._parameters)
        return b"".join(form.write(self._keys[line.sum.recipient], packed[0]))


def contribution_form(this: Sum, parameters: Parameters) -> Form:
    """Form of a contribution."""
    count = parameters.ciphertexts(this.length + SLOTS)
    return Form(parameters, count, PAIRS if this.recipient else SEEDED)


def sum_form(this: Sum, parameters: Parameters) -> Form:
    """Form of a sum."""
    return Form(parameters, parameters.ciphertexts(this.length + SLOTS), PAIRS)
