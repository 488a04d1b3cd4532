"""The back end `ckks`: exact sums of words in ciphertexts that only members can decrypt.

A contribution to a block sum is encrypted under a key that its sender and the recipient alone have,
one to a small sum under a key of the group, which all members hold and the server does not. All are
seeded. Inside of the ciphertexts lie zero-sum pads between the senders: whoever gets hold of single
contributions and of their keys opens uniform words. Errors are rounded off, so sums are exact, and
check slots tell the recipient that a sum is whole.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.backend import Floats, Sheet, StepWeights
from fedlap_app.sums.checks import SLOTS
from fedlap_app.sums.ckks import keys, words
from fedlap_app.sums.ckks.coefficients import Coefficients
from fedlap_app.sums.ckks.parameters import PARAMETERS, Parameters
from fedlap_app.sums.ckks.profiles import base_of, is_padded, with_warning, without_pads
from fedlap_app.sums.ckks.words import WordAccumulator, WordForm
from fedlap_app.sums.exact import ExactBackend
from fedlap_app.sums.header import Header, Place, Sum

FRACTION_BITS = 34
_MULTIPLE = 512


def _parameters_of(profile: str) -> Parameters:
    return PARAMETERS[base_of(profile)]


class CkksBackend(ExactBackend):
    """Ciphertexts for additions only; numbers have 34 bits behind the point.

    `ckks-2048` holds sums below 512, `ckks-4096` below 32,768, of at most 256 contributions.
    """

    name: ClassVar[str] = "ckks"
    profiles: ClassVar[tuple[str, ...]] = (*PARAMETERS, *map(without_pads, PARAMETERS))

    @classmethod
    def fraction_bits(cls, profile: str) -> int:
        """Fraction bits of a number."""
        return FRACTION_BITS

    @classmethod
    def limit(cls, profile: str) -> float:
        """Absolute values of a sum must stay below."""
        return float(2 ** (_parameters_of(profile).word_bits - 1 - FRACTION_BITS))

    @classmethod
    def multiple(cls, profile: str, numbers: int) -> int:
        """What the length of a block is rounded up to, which is all that its rows are known by."""
        return _MULTIPLE

    @classmethod
    def ciphertexts(cls, profile: str, numbers: int) -> int:
        """Ciphertexts of so many numbers and their check slots."""
        return WordForm(_parameters_of(profile), numbers + SLOTS).ciphertexts

    @classmethod
    def body_bytes(cls, profile: str, this: Sum, *, summed: bool) -> int:
        """Bytes of a sum or of one contribution to it, header not counted."""
        return _form(this, _parameters_of(profile), summed=summed).size

    @property
    def weakness(self) -> str:
        """Warning for the start of a run."""
        return with_warning(self.profile, super().weakness)

    @cached_property
    def parameters(self) -> Parameters:
        """Parameters of the profile."""
        return _parameters_of(self.profile)

    @property
    def sum_bits(self) -> int:  # type: ignore[override]
        """One bit of a word is the sign."""
        return self.parameters.word_bits - 1

    def block_key(self, sender: str, recipient: str) -> str:
        """Public name of the key of the two."""
        return self.keys.pair_key_id(recipient if sender == self.keys.me else sender)

    def _body(self, sheet: Sheet, weights: StepWeights) -> memoryview:
        super()._body(sheet, weights)
        parts = []
        for this in sheet.header.sums:
            Coefficients(self.parameters).require_few(this.contributors)
            secret = self._secret(self.keys.me, this.recipient)
            form = _form(this, self.parameters, summed=False)
            content = sheet.parts[this.recipient].view("<u8")
            parts.append(words.Part(content, form, secret, self._key_id(this.recipient)))
        return memoryview(b"".join(words.seal(parts, self.parameters)))

    def _open(self, body: memoryview, this: Sum, place: Place, weights: StepWeights) -> Floats:
        form = _form(this, self.parameters, summed=True)
        secrets = [self._secret(name, this.recipient) for name in self.senders(this.recipient)]
        expected = self._key_id(this.recipient)

        def require(key: bytes) -> None:
            words.require_key(key, expected, str(place))

        unseal = words.unseal if this.recipient else words.unseal_shared
        found = unseal(body, form, secrets, require)
        # Numbers have a sign; what check slots hold has none.
        above = np.uint64(64 - self.parameters.word_bits)
        signed = (found[:-SLOTS] << above).view(np.int64) >> above.astype(np.int64)
        found[:-SLOTS] = signed.view(np.uint64)
        return self._verified(found, this, weights)

    def _partners(
        self, recipient: str, senders: Sequence[str]
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Nobody's, where pads are left out."""
        return super()._partners(recipient, senders) if is_padded(self.profile) else ((), ())

    def _secret(self, sender: str, recipient: str) -> bytes:
        """What the key of a contribution is made of."""
        if (sender, recipient) not in self._secrets:
            purpose = f"{self.parameters.name} {recipient}"
            peer = recipient if sender == self.keys.me else sender
            secret = (
                self.keys.pair_secret(peer, purpose)
                if recipient
                else self.keys.group_secret(purpose)
            )
            self._secrets[sender, recipient] = secret
        return self._secrets[sender, recipient]

    def _key_id(self, recipient: str) -> bytes:
        """Public name of the keys of the sums for a recipient."""
        return self._key_ids[recipient]

    @cached_property
    def _key_ids(self) -> dict[str, bytes]:
        return {
            name: keys.key_id(self.keys.group_secret(f"{self.parameters.name} key id {name}"))
            for name in ("", *self.keys.members)
        }

    @cached_property
    def _secrets(self) -> dict[tuple[str, str], bytes]:
        return {}


class CkksAccumulator(WordAccumulator):
    """Running sums of ciphertexts, coefficient by coefficient; holds no key and needs none."""

    def __init__(self, header: Header, senders: Callable[[str], Sequence[str]]) -> None:
        if header.profile not in CkksBackend.profiles:
            raise ProtocolError(
                f"There is no profile {header.profile!r} of the back end ckks; "
                f"choose one of {', '.join(CkksBackend.profiles)}."
            )
        self.parameters = _parameters_of(header.profile)
        super().__init__(header, senders)

    def form(self, this: Sum) -> WordForm:
        """Form of a contribution."""
        return _form(this, self.parameters, summed=False)


def _form(this: Sum, parameters: Parameters, *, summed: bool) -> WordForm:
    """What a contribution or a sum looks like on the wire."""
    return WordForm(parameters, this.length + SLOTS, this.contributors if summed else 1)
