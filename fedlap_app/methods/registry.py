"""Methods by name: those that come with the app, those registered here, those installed beside it.

A package installs methods of its own under the entry points ``fedlap.methods``. A method decides
what leaves an organisation, so that a deployed one takes only what its policy lists (`digest_of`).
"""

import hashlib
import inspect
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from fedlap_app.errors import ConfigError
from fedlap_app.knobs import nearest
from fedlap_app.methods.base import Method

GROUP = "fedlap.methods"
_HOMES = {
    "fedlap+": "fedlap_plus:FedLapPlus",
    "fedlap": "fedlap:FedLap",
    "fedavg": "fedavg:FedAvg",
    "fedsgd": "fedsgd:FedSGD",
    "mlp": "mlp:MLP",
    "fedgcn": "fedgcn:FedGCN",
    "fedsage+": "fedsage:FedSage",
    "fedstruct": "fedstruct:FedStruct",
    "fedpub": "fedpub:FedPub",
    "fedgta": "fedgta:FedGTA",
    "fedtad": "fedtad:FedTAD",
    "local": "local:Local",
    "central": "local:Central",
}
BUILT_IN = tuple(_HOMES)
ALONE, WHOLE_GRAPH = "local", "central"
"""What an organisation has without joining, and what none can have: bounds of comparisons."""
_registered: dict[str, type[Method]] = {}


def names() -> tuple[str, ...]:
    """Methods that can be named, the usual one first."""
    return *_HOMES, *sorted({*_registered, *_installed()} - _HOMES.keys())


def distributed() -> tuple[str, ...]:
    """Methods that leave the data where they are."""
    return tuple(name for name in names() if not method_class(name).pooled)


def register(method: type[Method]) -> type[Method]:
    """Make a method of one's own known in this process; also as a decorator of its class."""
    name = getattr(method, "name", "")
    if name in _HOMES and method is _built_in(name):
        return method
    if not name or name in _HOMES:
        taken = f"method '{name}' comes with the app" if name else "a method needs a name"
        raise ConfigError(f"{taken}: give {method.__name__} a name of its own, name = '...'")
    _registered[name] = method
    return method


def method_class(name: str) -> type[Method]:
    """The class of a method.

    Parameters
    ----------
    name
        One of `names`.
    """
    if name in _HOMES:
        return _built_in(name)
    found = _registered.get(name) or _installed().get(name)
    if found is None:
        known = names()
        raise ConfigError(
            f"method = '{name}' is not one of {', '.join(known)}: "
            f"the nearest valid choice is '{nearest(name, known)}'"
        )
    if getattr(found, "name", "") != name:  # policies go by the name that the class has
        raise ConfigError(
            f"the installed method '{name}' calls itself '{getattr(found, 'name', '')}': write "
            f"name = '{name}' into its class {found.__name__}"
        )
    return found


def is_built_in(name: str) -> bool:
    """Whether a method comes with the app."""
    return name in _HOMES


def digest_of(method: type[Method]) -> str:
    """Hash of the file that a method is in, by which a policy lists it."""
    return hashlib.sha256(Path(inspect.getfile(method)).read_bytes()).hexdigest()


@cache
def _built_in(name: str) -> type[Method]:
    module, _, title = _HOMES[name].partition(":")
    found: type[Method] = getattr(import_module(f"fedlap_app.methods.{module}"), title)
    return found


@cache
def _installed() -> dict[str, type[Method]]:
    return {entry.name: entry.load() for entry in entry_points(group=GROUP)}
