"""The runs of the golden matrix; every setting on which a result depends is written out."""

from typing import Any

METHODS = ("fedlap+", "fedlap", "fedavg", "local", "central")
SOLVERS = ("block-lanczos", "dcgs2", "arnoldi")
OPERATORS = ("sym", "rw", "regularised", "laplacian", "adjacency", "directed")

# Defaults may change without a change of these runs.
_BASE = {
    "seed": 3,
    "dataset": "banks",
    "accounts": 240,
    "clients": 3,
    "partition": "owner",
    "directed": False,
    "train-ratio": 0.2,
    "val-ratio": 0.2,
    "test-ratio": 0.6,
    "device": "cpu",
    "spectral": False,
    "operator": "sym",
    "self-loops": True,
    "regulariser": 0.0,
    "solver": "block-lanczos",
    "vectors": 6,
    "rank": 0,
    "keep": "smallest",
    "block": 3,
    "backend": "mask",
    "profile": "auto",
    "hide-topology": True,
    "layout": "full",
}
_TRAINING = _BASE | {
    "model": "sage",
    "hidden": "8",
    "hops": 2,
    "relay": False,
    "dropout": 0.5,
    "input-dropout": 0.25,
    "input-norm": True,
    "standardise": "none",
    "rounds": 2,
    "local-epochs": 2,
    "patience": 0,
    "training-backend": "plain",
    "strategy": "fedavg",
    "server-learning-rate": 0.0,
    "server-momentum": 0.0,
    "proximal-mu": 0.1,
    "weight-by": "labelled",
    "optimizer": "adam",
    "learning-rate": 0.01,
    "weight-decay": 0.005,
    "optimizer-state": "reset",
    "optimizer-at": "client",
    "structure-width": 8,
    "structure-hidden": "",
    "activation": "relu",
    "structure-norm": True,
    "column-weights": "none",
    "diffusion": 20.0,
    "smoothing": 1.0,
    "row-smoothing": 1.0,
    "row-operator": "sym",
    "branch-loss": 0.0,
    "fusion": "sum",
    "unit-norm": False,
    "self-training": 1,
    "self-training-labels": "hard",
    "self-training-confidence": 0.3,
    "self-training-weight": 0.3,
}
_VARIANTS: dict[str, dict[str, Any]] = {
    "without self-training": {"self-training": 0},
    "soft labels": {"self-training-labels": "soft"},
    "optimizer-at server": {"optimizer-at": "server", "local-epochs": 1},
    "optimizer-state keep": {"optimizer-state": "keep"},
    "fedprox": {"strategy": "fedprox"},
    "fedadam": {"strategy": "fedadam", "server-learning-rate": 0.01},
    "fusion validation": {"fusion": "validation", "branch-loss": 1.0},
    "relay": {"model": "decoupled", "relay": True},
    "structure only": {"model": "none", "column-weights": "diffusion", "patience": 1},
}

# Names of cells and the settings of their runs.
TRAINING: dict[str, dict[str, Any]] = {
    **{f"train {method}": _TRAINING | {"method": method} for method in METHODS},
    **{
        f"train fedlap+, {name}": _TRAINING | {"method": "fedlap+"} | settings
        for name, settings in _VARIANTS.items()
    },
    "train fedlap, fusion validation": _TRAINING | {"method": "fedlap", "fusion": "validation"},
    "train fedavg, optimizer-at server": _TRAINING
    | {"method": "fedavg"}
    | _VARIANTS["optimizer-at server"],
}
# The same bits on every grid.
GRIDS: dict[str, dict[str, Any]] = {
    f"two clients {method}": _TRAINING
    | {"method": method, "clients": 2, "rounds": 1, "local-epochs": 1, "block": 6}
    for method in METHODS
    if method != "central"
}
BASES: dict[str, dict[str, Any]] = {
    **{f"basis {solver}": _BASE | {"solver": solver} for solver in SOLVERS},
    **{f"basis of {kind}": _BASE | {"operator": kind, "rank": 5} for kind in OPERATORS},
    "basis of directed edges": _BASE | {"operator": "directed", "directed": True},
    "basis of largest": _BASE | {"keep": "largest", "layout": "boundary", "hide-topology": False},
}
