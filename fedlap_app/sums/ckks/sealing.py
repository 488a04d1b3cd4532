"""Approximate sums in ciphertexts: keys, bounds, check slots, partners."""

from abc import abstractmethod
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.backend import StepWeights, SumBackend
from fedlap_app.sums.ckks import keys
from fedlap_app.sums.ckks.checks import SLOTS, RealWeights
from fedlap_app.sums.ckks.profiles import is_padded, with_warning
from fedlap_app.sums.ckks.tenseal_parameters import TENSEAL_DEFAULT, TensealParameters
from fedlap_app.sums.header import Place, Sum
from fedlap_app.sums.pads import signed_partners

Floats = NDArray[np.float64]
_DEVIATIONS = 6.0


class CiphertextBackend(SumBackend):
    """Seal by encryption, open by decryption.

    A contribution to a block sum is encrypted under the public key of its recipient, one to a small
    sum under the group key, which all members hold and the server does not.
    """

    name: ClassVar[str] = "ckks"
    spare: ClassVar[int] = SLOTS
    capacity: ClassVar[TensealParameters] = TENSEAL_DEFAULT

    @classmethod
    def noise(cls, profile: str, members: int) -> float:
        """Absolute error of one small sum, but for one in 500 million."""
        return _DEVIATIONS * cls.capacity.noise(members, symmetric=True)

    @classmethod
    def limit(cls, profile: str) -> float:
        """Absolute values of a sum must stay below."""
        return cls.capacity.limit

    @classmethod
    def multiple(cls, profile: str, numbers: int) -> int:
        """Ciphertexts are filled."""
        return cls.capacity.slots

    @classmethod
    def ciphertexts(cls, profile: str, numbers: int) -> int:
        """Ciphertexts of so many numbers and their check slots."""
        return cls.capacity.ciphertexts(numbers + SLOTS)

    @property
    def weakness(self) -> str:
        """Warning for the start of a run."""
        return with_warning(self.profile, super().weakness)

    @property
    def _padded(self) -> bool:
        return is_padded(self.profile)

    def _filled(self, values: Floats, this: Sum, place: Place, weights: StepWeights) -> Floats:
        """Numbers of one contribution (ciphertexts, slots), with its check slots."""
        numbers = np.zeros(self._count(this) * self.capacity.slots)
        numbers[: this.length] = values
        products = self._check_weights.fill(numbers, this.length, weights, this.recipient)
        self._require_bound(numbers, this.contributors)
        # The inner products under secret weights are a digest of the content.
        self.ledger.claim(place, this.recipient, weights.key + products.tobytes())
        return numbers.reshape(-1, self.capacity.slots)

    @abstractmethod
    def _count(self, this: Sum) -> int:
        """Ciphertexts of one contribution."""

    def _require_bound(self, numbers: Floats, contributors: int) -> None:
        """Refuse what the sum could not hold: it would wrap without a sign."""
        limit = self.capacity.limit / contributors
        # Written so that a nan fails too; the value itself stays out of the sentence.
        if not np.abs(numbers).max() < limit:
            raise ProtocolError(
                f"A value to be summed is not finite or not below {limit:g} in absolute value "
                f"({self.capacity.limit:g} over {contributors} contributors); scale the values "
                "down before sealing."
            )

    def _verified(self, numbers: Floats, this: Sum, weights: StepWeights) -> Floats:
        """Values of a decrypted sum, if its check slots fit."""
        self._check_weights.verify(
            numbers,
            this.length,
            weights,
            this.recipient,
            count=this.contributors,
            noise=self.capacity.noise(this.contributors, symmetric=not this.recipient),
        )
        return numbers[: this.length].copy()

    def _require_key(self, key: bytes, this: Sum, place: Place) -> None:
        """Refuse a sum under another key than that of its recipient."""
        if key != self._key_id(this.recipient):
            raise ProtocolError(
                f"A sum of {place} is under another key than that of {this.recipient or 'all'!r}; "
                "it is stale, misrouted or altered."
            )

    def _public_key(self, recipient: str) -> bytes:
        if recipient not in self.keys.public_keys:
            raise ProtocolError(
                f"There is no public key of {recipient!r}; finish the handshake first."
            )
        return self.keys.public_keys[recipient]

    def _secret_seed(self, recipient: str) -> bytes:
        """What the secret key of a sum that this member opens is made of."""
        return self.keys.sum_seed if recipient else self._group_seed

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
        return self.keys.group_secret(f"ckks {self.capacity.name}")

    @cached_property
    def _check_weights(self) -> RealWeights:
        return RealWeights()

    @cached_property
    def _signs(self) -> dict[str, tuple[list[str], list[str]]]:
        """Peers whose pad is added, and those whose pad is subtracted, for each recipient."""
        everyone = {name: self.senders(name) for name in ("", *self.keys.members)}
        return {
            recipient: signed_partners(self.keys.me, senders)
            for recipient, senders in everyone.items()
            if self.keys.me in senders
        }
