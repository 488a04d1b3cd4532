"""Back ends by name, for members and for the server."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from fedlap_app.errors import ConfigError
from fedlap_app.secure.backend import Accumulator, SumBackend
from fedlap_app.secure.header import Header
from fedlap_app.secure.keyring import KeyRing
from fedlap_app.secure.mask import MaskAccumulator, MaskBackend
from fedlap_app.secure.pads import PadLedger
from fedlap_app.secure.plain import PlainAccumulator, PlainBackend

_BACKENDS: dict[str, tuple[type[SumBackend], type[Accumulator]]] = {
    "mask": (MaskBackend, MaskAccumulator),
    "plain": (PlainBackend, PlainAccumulator),
}
BACKENDS = tuple(_BACKENDS)


def make_backend(
    name: str,
    keys: KeyRing,
    *,
    profile: str = "",
    senders: Mapping[str, Iterable[str]] | None = None,
    ledger: PadLedger | None = None,
) -> SumBackend:
    """Back end of one member; the parameters are those of `SumBackend`."""
    return _find(name)[0](keys, profile=profile, senders=senders, ledger=ledger)


def make_accumulator(header: Header, senders: Callable[[str], Sequence[str]]) -> Accumulator:
    """Accumulator of the server; the parameters are those of `Accumulator`."""
    return _find(header.backend)[1](header, senders)


def _find(name: str) -> tuple[type[SumBackend], type[Accumulator]]:
    if name not in _BACKENDS:
        raise ConfigError(
            f"There is no sum back end {name!r}; choose one of {', '.join(_BACKENDS)}."
        )
    return _BACKENDS[name]
