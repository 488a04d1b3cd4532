"""Train from Python: settings as keywords, everything in this process, nothing left behind."""

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import fedlap_app
from fedlap_app.api.organisations import Organisations
from fedlap_app.api.run import Run
from fedlap_app.api.workplace import Workplace, quietly
from fedlap_app.errors import ConfigError
from fedlap_app.graphs.options import DataOptions
from fedlap_app.knobs import (
    by_key,
    domain_of,
    hand_over,
    key_of,
    keys_of,
    name_of,
    nearest,
    plain,
)
from fedlap_app.methods.base import Method
from fedlap_app.methods.registry import method_class, register
from fedlap_app.presets import read_preset
from fedlap_app.relevance import choose
from fedlap_app.settings import KNOBS, Settings, parse_settings
from fedlap_app.store import places

if TYPE_CHECKING:
    from fedlap_app.flower.server.observer import Observer

_DATA = keys_of(DataOptions)
_log = logging.getLogger("fedlap")
_SHIPPED = Path(fedlap_app.__file__).parents[1] / "conf"


class ProgressLine:
    """One line on the error stream that says how far a run is."""

    def step_done(self, number: int, steps: int) -> None:
        """Show a step of the phase before training."""
        self._show(f"spectral basis, step {number}/{steps}")

    def round_done(self, number: int, rounds: int, totals: Mapping[str, float]) -> None:
        """Show a finished round."""
        scores = [
            f"{each} {100 * totals[f'{each}_accuracy']:.2f} %"
            for each in ("val", "test")
            if f"{each}_accuracy" in totals
        ]
        self._show(", ".join((f"round {number}/{rounds}", *scores)))

    def end(self) -> None:
        """Leave the line."""
        print(file=sys.stderr)

    def _show(self, text: str) -> None:
        print(f"\r{text:<60}", end="", file=sys.stderr, flush=True)


def train(
    orgs: Organisations,
    method: str | type[Method] | Method | None = None,
    *,
    preset: str | os.PathLike[str] | Settings | None = None,
    progress: "bool | Observer" = False,
    store: str | os.PathLike[str] | None = None,
    **settings: object,
) -> Run:
    """Train one node classifier over organisations, all of them in this process.

    The result is that of ``fedlap train`` with the same settings: to the last bit,
    except with ``profile="tenseal-default"``. Nothing is printed or logged, and several threads
    and processes may train at the same time.

    Parameters
    ----------
    orgs
        What `load`, `read` or `split` gave.
    method
        "fedlap+" (spectral basis; the default, unless a preset has another), "fedlap" (learned
        structure features), "fedavg", "local", "central" or another of those that
        docs/settings.md lists; or a `Method` of your own, its class or an object with options.
    preset
        A preset file, the name of one that comes with the project ("cora"), or `Settings`. What
        it says about the data is left to `orgs`.
    progress
        True: a line on the error stream; or an object whose ``step_done(number, steps)`` and
        ``round_done(number, rounds, scores)`` are called.
    store
        Folder that keeps stores and runs, laid out as ``~/.fedlap``; a later run there reuses a
        finished basis. Default: a temporary one, deleted when the run is gone from memory.
    settings
        Any setting of ``fedlap train``, with underscores: ``vectors=100, local_epochs=3``. They
        override the preset. ``model`` may be a torch network that reads `GraphTensors`, or what
        makes one of (features, classes); ``strategy`` an object of Flower's.

    Returns
    -------
    Run
        Accuracy, history, model and predictions.
    """
    require_organisations(orgs)
    name, options = _named(method)
    chosen = settings_of(orgs, name, preset, {**options, **settings})
    place = Workplace() if store is None else Workplace(places.folder_at(store, "store"))
    line = ProgressLine()
    watch = (line if progress else None) if isinstance(progress, bool) else progress
    if watch is not None and not (hasattr(watch, "step_done") and hasattr(watch, "round_done")):
        raise ConfigError(
            f"progress = {progress!r} cannot be told: give True, or an object with step_done and "
            "round_done"
        )
    try:
        with quietly(), places.home_at(place.folder):
            run = conduct(chosen, watch, orgs=orgs)
    except Exception as error:
        _tell_details(error, place.folder)
        raise
    finally:
        if watch is line:
            line.end()
    run.place = place  # whose temporary folder lives as long as the run
    return run


def conduct(
    settings: Settings,
    observer: "Observer | None" = None,
    *,
    orgs: Organisations | None = None,
    run_id: int | None = None,
) -> Run:
    """Run settings in this process, with its files where FedLap usually keeps them.

    Parameters
    ----------
    settings
        Settings of the run, which name its data.
    observer
        Is told of every round (default: nobody).
    orgs
        Take these parts in place of what the settings name.
    run_id
        Number of the run (default: a new one).
    """
    from fedlap_app.flower.grids.in_process import run_in_process
    from fedlap_app.flower.server.observer import Unwatched
    from fedlap_app.flower.server.parts import Part

    parts = [Part(*each) for each in zip(orgs, orgs.folders, strict=True)] if orgs else ()
    summary = run_in_process(settings, observer or Unwatched(), run_id, parts)
    return Run(Path(summary["run_folder"]), organisations=orgs)


def require_organisations(orgs: object) -> None:
    """Refuse what is no federation."""
    if not isinstance(orgs, Organisations):
        raise ConfigError(
            f"{type(orgs).__name__} is not a federation: give what fedlap.load, fedlap.read or "
            "fedlap.split returned"
        )


def _named(method: str | type[Method] | Method | None) -> tuple[str | None, dict[str, object]]:
    """Name and options of a method; one that is handed over is made known to this process."""
    if method is None or isinstance(method, str):
        return method, {}
    kind = method if isinstance(method, type) else type(method)
    if not issubclass(kind, Method):
        raise ConfigError(
            f"method = {method!r} is none: give a name, or a class derived from fedlap.Method or "
            "an object of one"
        )
    register(kind)
    options = {} if isinstance(method, type) else vars(method.options)
    return kind.name, {name_of(key): value for key, value in options.items()}


def settings_of(
    orgs: Organisations,
    method: str | None,
    preset: str | os.PathLike[str] | Settings | None,
    given: Mapping[str, object],
) -> Settings:
    """Settings from a preset, keywords and the organisations, which describe the data."""
    values: dict[str, object] = {"seed": orgs.seed}
    if isinstance(preset, Settings):
        values |= preset.to_config()
    elif preset is not None:
        values |= read_preset(_preset_path(preset))
    values = {key: value for key, value in values.items() if key not in _DATA} | orgs.facts
    named = _in_place_of_names(given)
    typed = {key_of(name): _checked(orgs, method, name, value) for name, value in named.items()}
    if method is not None:
        typed["method"] = method
    return parse_settings(choose(values, typed, _log.info))


def _in_place_of_names(given: Mapping[str, object]) -> dict[str, object]:
    """Keywords with names where a model or a strategy was given as an object."""
    values = dict(given)
    if callable(values.get("model")):
        values["model"] = hand_over("model", values["model"])
    strategy = values.get("strategy", "")
    if not isinstance(strategy, str):
        from fedlap_app.flower.server.strategies import object_of

        values |= {name_of(key): value for key, value in object_of(strategy).items()}
    return values


def _checked(orgs: Organisations, method: str | None, name: str, value: object) -> object:
    """The value of a keyword; numpy's numbers become Python's, a list a text with commas."""
    key, own = key_of(name), by_key(method_class(method).Options) if method else {}
    names = [name_of(each) for each in (*KNOBS, *own)]
    if name not in names:
        raise ConfigError(
            f"unknown setting '{name}': the nearest valid one is '{nearest(name, names)}'"
        )
    value = ",".join(map(str, value)) if isinstance(value, list | tuple) else plain(value)
    if key in _DATA and value != orgs.facts.get(key):
        raise ConfigError(
            f"{name} = {value!r} is not what these organisations have "
            f"({orgs.facts.get(key)!r}): give it to fedlap.load, fedlap.read or "
            "fedlap.split, not to fedlap.train"
        )
    folder = key in KNOBS and domain_of(KNOBS[key]).folder
    if folder and isinstance(value, str | os.PathLike) and os.fspath(value):
        return str(Path(value).expanduser().absolute())
    return value


def _preset_path(preset: str | os.PathLike[str]) -> Path:
    """A preset by its path, or by the name of one in the folder ``conf``."""
    if not isinstance(preset, str | os.PathLike):
        raise ConfigError(
            f"preset = {preset!r} is none: give the name of one in conf/, a file, or Settings"
        )
    path = Path(preset).expanduser()
    shipped = _SHIPPED / f"{path}.toml"
    return shipped if not path.exists() and shipped.is_file() else path


def _tell_details(error: Exception, home: Path) -> None:
    """Add what the clients wrote into their own logs: here all of them are the caller's."""
    for file in sorted(home.glob("stores/*/errors.log")):
        error.add_note(f"{file.parent.name}: {file.read_text(encoding='utf-8').strip()}")
