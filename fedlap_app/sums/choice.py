"""Back ends by name, for members and for the server."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from fedlap_app.errors import ConfigError
from fedlap_app.privacy.policy import BACKENDS
from fedlap_app.sums.accumulator import Accumulator
from fedlap_app.sums.backend import SumBackend
from fedlap_app.sums.ckks.backend import CkksAccumulator, CkksBackend
from fedlap_app.sums.ckks.parameters import CKKS_4096
from fedlap_app.sums.ckks.profiles import CAPACITIES, without_pads
from fedlap_app.sums.ckks.tenseal_backend import TensealAccumulator, TensealBackend
from fedlap_app.sums.header import Header
from fedlap_app.sums.keyring import KeyRing
from fedlap_app.sums.mask import MaskAccumulator, MaskBackend
from fedlap_app.sums.pads import PadLedger
from fedlap_app.sums.plain import PlainAccumulator, PlainBackend

_CKKS = CkksBackend.name
_BACKENDS: dict[str, tuple[type[SumBackend], type[Accumulator]]] = {
    "mask": (MaskBackend, MaskAccumulator),
    "plain": (PlainBackend, PlainAccumulator),
    _CKKS: (CkksBackend, CkksAccumulator),
}
AUTO = "auto"


def backend_class(name: str, profile: str = "") -> type[SumBackend]:
    """Class of a back end, by which its facts are asked."""
    return _find(name, profile)[0]


def _find(name: str, profile: str = "") -> tuple[type[SumBackend], type[Accumulator]]:
    if name == _CKKS and profile in TensealBackend.profiles:
        return TensealBackend, TensealAccumulator
    if name not in _BACKENDS:
        raise ConfigError(
            f"There is no sum back end {name!r}; choose one of {', '.join(_BACKENDS)}."
        )
    return _BACKENDS[name]


def profiles_of(backend: str) -> tuple[str, ...]:
    """Profiles of a back end that a run may choose; the first is its usual one."""
    return tuple(CAPACITIES) if backend == _CKKS else backend_class(backend).profiles


def require_profile(backend: str, profile: str, *, no_pads: bool) -> None:
    """Refuse a profile that the back end has not, and pads left out where there are none."""
    known = profiles_of(backend)
    if profile not in (AUTO, *known):
        raise ConfigError(
            f"profile = '{profile}' does not belong to backend = '{backend}': "
            f"try profile = '{known[0]}'"
        )
    if no_pads and backend != _CKKS:
        raise ConfigError(
            f"insecure-no-pads = true has no meaning for backend = '{backend}': leave it out"
        )


def full_profile(backend: str, profile: str, *, no_pads: bool, large_sums: bool = False) -> str:
    """The profile of a run as its headers name it.

    Parameters
    ----------
    backend, profile
        Names; `auto`: the usual one, or the one for larger sums.
    no_pads
        Whether pads are left out.
    large_sums
        Whether sums may grow beyond what the usual one holds.
    """
    chosen = profile
    if profile == AUTO:
        larger = backend == _CKKS and large_sums
        chosen = CKKS_4096.name if larger else profiles_of(backend)[0]
    return without_pads(chosen) if no_pads else chosen


PROFILES = tuple(name for backend in BACKENDS for name in profiles_of(backend))


def make_backend(
    name: str,
    keys: KeyRing,
    *,
    profile: str = "",
    senders: Mapping[str, Iterable[str]] | None = None,
    ledger: PadLedger | None = None,
) -> SumBackend:
    """Back end of one member; the parameters are those of `SumBackend`."""
    return backend_class(name, profile)(keys, profile=profile, senders=senders, ledger=ledger)


def names_of(backend: str, profile: str) -> tuple[str, str]:
    """Back end and profile as headers name them."""
    return backend, profile or backend_class(backend).profiles[0]


def make_accumulator(header: Header, senders: Callable[[str], Sequence[str]]) -> Accumulator:
    """Accumulator of the server; the parameters are those of `Accumulator`."""
    return _find(header.backend, header.profile)[1](header, senders)
