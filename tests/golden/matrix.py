"""What must stay the same to the last bit while the code is rebuilt.

``python -m tests.golden.matrix --write`` computes the matrix anew and writes ``golden.json``;
``--write-options`` only the cells of presets and of the commands' options.
Results come from the command line and from the files that it leaves, never from inner modules;
what has no such way is in the functions `resolved_settings` and `run_with_processes`.
"""

import hashlib
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.testing import CliRunner

from fedlap_app.cli import main
from tests.golden.cells import BASES, GRIDS, TRAINING

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("golden.json")
REWRITE = "python -m tests.golden.matrix --write"
Settings = Mapping[str, Any]
Cell = dict[str, Any]


def machine() -> dict[str, str]:
    """What the last bits of a result depend on."""
    import scipy.linalg  # noqa: F401 - loads its own BLAS
    import torch
    from threadpoolctl import threadpool_info

    packages = ("numpy", "scipy", "torch", "torch-geometric", "scikit-learn", "flwr")
    libraries = {
        f"{pool['internal_api']} {pool['version']} for {pool['architecture']}"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    return {
        "python": ".".join(map(str, sys.version_info[:2])),
        **{name: version(name) for name in packages},
        "processor": platform.machine(),
        "torch kernels": torch.backends.cpu.get_cpu_capability(),
        "blas": ", ".join(sorted(libraries)),
    }


def expected() -> dict[str, dict[str, Any]]:
    """The matrix as it was written: `made with` and `cells`."""
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


# Trained models


def trained(settings: Settings, folder: Path) -> Cell:
    """Models and scores of ``fedlap train``, in the in-process grid."""
    return _run("train", settings, folder)


def simulated(settings: Settings, folder: Path) -> Cell:
    """Models and scores of ``fedlap run``, in Flower's simulation."""
    return _run("run", settings, folder)


def run_with_processes(settings: Settings, folder: Path) -> Cell:
    """Models and scores in the grid that starts a process for every message."""
    from fedlap_app.flower.grids.local_grid import ProcessGrid, new_run_id, partition_configs
    from fedlap_app.flower.server.observer import LogObserver
    from fedlap_app.flower.server.run import run
    from fedlap_app.relevance import choose
    from fedlap_app.settings import parse_settings

    # What the method ignores is left out, as the commands do with a preset.
    chosen = parse_settings(choose(_placed(settings, folder), {}, _unsaid))
    nodes = partition_configs(chosen.clients)
    grid = ProcessGrid(nodes, chosen.to_config(), run_id=new_run_id())
    run(grid, chosen, LogObserver())
    return _results(folder)


def _run(command: str, settings: Settings, folder: Path) -> Cell:
    _call(command, "--conf", _preset(_placed(settings, folder), folder), "--json")
    return _results(folder)


def _results(folder: Path) -> Cell:
    """Hashes of the run's model and of every organisation's, and what the rounds scored."""
    run, *others = (folder / "runs").iterdir()
    assert not others, f"more than one run: {others}"
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    rows = [json.loads(line) for line in (run / "metrics.jsonl").open(encoding="utf-8")]
    found: Cell = {"accuracy": summary["accuracy"], "macro_f1": summary["macro_f1"]}
    # The model is that of the best round; the losses tell of the others as well.
    found["losses"] = [[row["train_loss"], row["val_loss"], row["test_loss"]] for row in rows]
    if (run / "model.npz").exists():
        found["model"] = _digest(run / "model.npz", "parameter/")
    for store in sorted((folder / "stores").glob("*")):
        for file in store.rglob("model.npz"):
            found[f"model of {store.name}"] = _digest(file, "parameter/")
    return found


# Spectral bases


def basis(settings: Settings, folder: Path) -> Cell:
    """Hashes of every organisation's rows and eigenvalues by ``fedlap spectrum``."""
    dump = folder / "dump"
    _call("spectrum", "--conf", _preset(settings, folder), "--dump", dump, "--json")
    return {file.stem: _digest(file) for file in sorted(dump.iterdir())}


# Settings and options


def presets() -> dict[str, Path | None]:
    """Cells of the presets; without a preset every setting has its default."""
    files = sorted((ROOT / "conf").rglob("*.toml"))
    return {"preset none": None, **{f"preset {file.relative_to(ROOT)}": file for file in files}}


def resolved_settings(preset: Path | None) -> Cell:
    """Every setting of a run with this preset."""
    from fedlap_app.presets import read_preset
    from fedlap_app.settings import parse_settings

    return dict(parse_settings(read_preset(preset) if preset else {}).to_config())


def commands() -> dict[str, click.Command]:
    """Cells of the commands."""
    return {f"command {path}": command for path, command in _walk(main, "fedlap")}


def _walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _walk(found, f"{path} {name}")


def options(command: click.Command) -> Cell:
    """Names, types and defaults of a command's options and arguments."""
    found = {}
    for parameter in command.params:
        about = parameter.to_info_dict()
        kind = about["type"]
        found["/".join([*about["opts"], *about["secondary_opts"]])] = {
            "type": kind["name"],
            **{limit: kind[limit] for limit in ("choices", "min", "max") if limit in kind},
            "default": about["default"],
            "is_flag": about.get("is_flag", False),
        }
    return found


# The whole


def compute() -> dict[str, Cell]:
    """All cells, runs in the in-process grid."""
    cells: dict[str, Cell] = {}
    ways: list[tuple[Callable[[Settings, Path], Cell], dict[str, dict[str, Any]]]]
    ways = [(trained, TRAINING | GRIDS), (basis, BASES)]
    for way, runs in ways:
        for name, settings in runs.items():
            with tempfile.TemporaryDirectory(prefix="fedlap-golden-") as folder:
                cells[name] = way(settings, Path(folder))
    return cells | offered()


def offered() -> dict[str, Cell]:
    """What presets set and commands take."""
    found = {name: resolved_settings(preset) for name, preset in presets().items()}
    return found | {name: options(command) for name, command in commands().items()}


def text_of(cell: Cell) -> str:
    """A cell as the file has it; JSON knows neither tuples nor paths."""
    return json.dumps(cell, default=str)


def write_options() -> None:
    """Replace the cells of presets and commands; every other line stays as it is."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    stale = ('  "preset ', '  "command ')
    kept = [line.removesuffix(",") for line in lines[3:-2] if not line.startswith(stale)]
    fresh = [f"  {json.dumps(name)}: {text_of(cell)}" for name, cell in offered().items()]
    content = [*lines[:3], ",\n".join([*kept, *fresh]), *lines[-2:], ""]
    FILE.write_text("\n".join(content), encoding="utf-8")


def write() -> None:
    """Compute the matrix and write it, a cell a line."""
    with tempfile.TemporaryDirectory(prefix="fedlap-golden-") as home:
        os.environ["FEDLAP_HOME"] = home
        cells = compute()
    lines = [f"  {json.dumps(name)}: {text_of(cell)}" for name, cell in cells.items()]
    about = f' "made with": {json.dumps(machine())},'
    content = "\n".join(["{", about, ' "cells": {', ",\n".join(lines), " }", "}", ""])
    FILE.write_text(content, encoding="utf-8")


def _call(*arguments: object) -> None:
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, f"{arguments}: {done.output}\n{done.exception!r}"


def _unsaid(text: str) -> None:
    del text


def _placed(settings: Settings, folder: Path) -> Cell:
    return {**settings, "run-dir": str(folder / "runs"), "store-dir": str(folder / "stores")}


def _preset(settings: Settings, folder: Path) -> Path:
    """A preset file, in which a method may find settings that it ignores."""
    file = folder / "golden.toml"
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def _digest(file: Path, prefix: str = "") -> str:
    """Hash of names, shapes, types and bytes of the arrays whose names begin so."""
    found = hashlib.sha256()
    with np.load(file, allow_pickle=False) as arrays:
        names = sorted(name for name in arrays.files if name.startswith(prefix))
        assert names, f"{file} holds nothing called {prefix}..."
        for name in names:
            array = arrays[name]
            found.update(f"{name} {array.shape} {array.dtype.str}\n".encode())
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    ways = {"--write": write, "--write-options": write_options}
    if len(sys.argv) != 2 or sys.argv[1] not in ways:
        sys.exit(f"usage: {REWRITE}[-options]")
    ways[sys.argv[1]]()
