"""Federated node classification over a graph that several organisations hold in parts.

From Python::

    import fedlap_app as fedlap

    orgs = fedlap.load("cora", clients=10, partition="random")
    run = fedlap.train(orgs, "fedlap+", vectors=100, rounds=60)
    run.accuracy["test"]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedlap_app.version import VERSION

if TYPE_CHECKING:
    from fedlap_app.api.organisations import Organisations, load, read
    from fedlap_app.api.run import Basis, Run, open_run
    from fedlap_app.api.split import split
    from fedlap_app.api.training import train
    from fedlap_app.api.updating import Updated, update
    from fedlap_app.errors import FedLapError
    from fedlap_app.methods.base import Method
    from fedlap_app.methods.registry import register
    from fedlap_app.reports.writing import report
    from fedlap_app.settings import Settings
    from fedlap_app.studies.compare import Comparison, compare
    from fedlap_app.studies.tune import Tuned, tune

__version__ = VERSION
__all__ = [
    "Basis",
    "Comparison",
    "FedLapError",
    "Method",
    "Organisations",
    "Run",
    "Settings",
    "Tuned",
    "Updated",
    "compare",
    "load",
    "open_run",
    "read",
    "register",
    "report",
    "split",
    "train",
    "tune",
    "update",
]

_HOMES = {
    "Basis": "api.run",
    "Comparison": "studies.compare",
    "FedLapError": "errors",
    "Method": "methods.base",
    "Organisations": "api.organisations",
    "Run": "api.run",
    "Settings": "settings",
    "Tuned": "studies.tune",
    "Updated": "api.updating",
    "compare": "studies.compare",
    "load": "api.organisations",
    "open_run": "api.run",
    "read": "api.organisations",
    "register": "methods.registry",
    "report": "reports.writing",
    "split": "api.split",
    "train": "api.training",
    "tune": "studies.tune",
    "update": "api.updating",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever has the name
    """Import a part of the API when it is used first: a client needs none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
