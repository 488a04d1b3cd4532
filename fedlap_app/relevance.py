"""Settings that a run would ignore: refused when they were typed, dropped when a preset has them.

A method declares the knobs that it reads (`Method.reads`), and so does every program of sealed sums
here. A value that equals the default asks for nothing and is always fine.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from fedlap_app.errors import ConfigError
from fedlap_app.knobs import Options, domain_of, handed, keys_of, toml
from fedlap_app.methods.registry import BUILT_IN, method_class, names
from fedlap_app.settings import KNOBS, OperationOptions, RunOptions
from fedlap_app.spectral.options import BasisOptions
from fedlap_app.sums.options import NeighbourOptions, SealedTrainingOptions, SumOptions
from fedlap_app.sums.programs import Krylov, RowNames

T = TypeVar("T")
ALWAYS = keys_of(RunOptions, OperationOptions, NeighbourOptions, SealedTrainingOptions)
PROGRAMS = {
    Krylov.name: keys_of(BasisOptions, SumOptions),
    # Names of rows tell the server who shares nodes, whatever is asked for.
    RowNames.name: keys_of(SumOptions) - {"hide-topology", "layout"},
}
"""What programs read; one that is not here reads how sums are sealed."""
MOMENTS = keys_of(SumOptions) - {"layout", "refresh-basis", "hide-topology"}
"""What sums over feature columns read, which every method has where the tables ask for them."""


def read_by(method: str, *, spectral: bool = False) -> frozenset[str]:
    """Keys that have an effect on a run of a method."""
    kind = method_class(method)
    read = ALWAYS | kind.reads if kind.pooled else ALWAYS | kind.reads | {"spectral"}
    if kind.exchanges:
        read |= MOMENTS
    programs = {*kind.programs, Krylov.name} if spectral and "spectral" in read else kind.programs
    return read.union(*(PROGRAMS.get(program, keys_of(SumOptions)) for program in programs))


def readers_of(key: str, methods: Collection[str] = BUILT_IN) -> tuple[str, ...]:
    """Methods on which a knob has an effect."""
    return tuple(each for each in methods if key in read_by(each))


def group_readers(group: type) -> tuple[str, ...]:
    """Methods that come with the app and read most of a group."""
    keys = keys_of(group)
    return tuple(each for each in BUILT_IN if 2 * len(read_by(each) & keys) > len(keys))


def title_of(group: type) -> str:
    """Title of a group of knobs, with the methods that read it unless all do."""
    if not issubclass(group, Options):
        return "Options of the method"
    readers = group_readers(group)
    return group.title if readers == BUILT_IN else f"{group.title} ({', '.join(readers)})"


def choose(
    preset: Mapping[str, object], typed: Mapping[str, object], note: Callable[[str], None]
) -> dict[str, object]:
    """Values of a preset and what was typed beside it, without what the run ignores.

    Parameters
    ----------
    preset, typed
        By key; what is typed counts more.
    note
        Is told in one line what of the preset is ignored.
    """
    values = {**preset, **typed}
    unread = _unread(values)
    _refuse(unread, typed)
    if unread:
        method = values.get("method", RunOptions.method)
        note(f"Method {method} ignores of the preset: {', '.join(unread)}")
        values = {key: value for key, value in values.items() if key not in unread}
    idle = _idle(values)
    _refuse(idle, typed)
    # What a preset holds beside its own other values stays; what was typed has made the rest idle.
    made = idle.keys() - _idle(preset).keys()
    if made:
        note(f"What was typed leaves no effect to these of the preset: {', '.join(sorted(made))}")
    return {key: value for key, value in values.items() if key not in made}


def _refuse(reasons: Mapping[str, str], typed: Mapping[str, object]) -> None:
    """Refuse a value that was typed and has no effect."""
    for reason in (reasons[key] for key in typed if key in reasons):
        raise ConfigError(reason)


def refuse_unread(values: Mapping[str, T]) -> Mapping[str, T]:
    """The values, none of which the method ignores: nobody knows which of them were typed."""
    for reason in _unread(values).values():
        raise ConfigError(reason)
    return values


def _unread(values: Mapping[str, object]) -> dict[str, str]:
    """Why the method ignores a value, for each that it does."""
    method = values.get("method", RunOptions.method)
    if not isinstance(method, str):
        return {}  # refused where types are checked
    read = read_by(method, spectral=values.get("spectral") is True)
    return {key: _reason(key, values[key], method) for key in _set(values) if key not in read}


def _reason(key: str, value: object, method: str) -> str:
    readers = readers_of(key, names())
    basis = " or with spectral = true" if key in PROGRAMS[Krylov.name] and key != "spectral" else ""
    return (
        f"{key} = {toml(value)} has no effect on method '{method}', only on "
        f"{', '.join(readers)}{basis}: leave it out, or try method = '{readers[0]}'"
    )


def _idle(values: Mapping[str, object]) -> dict[str, str]:
    """Why a value has no effect beside the others, for each that has none."""
    found = {}
    for key in _set(values):
        needed = domain_of(KNOBS[key]).only
        if needed is None:
            continue
        other, choices = needed
        chosen = values.get(other, KNOBS[other].default)
        # What an object reads is its own matter.
        if chosen not in choices and handed(other, str(chosen)) is None:
            found[key] = (
                f"{key} = {toml(values[key])} has no effect with {other} = {toml(chosen)}: leave "
                f"it out, or try {other} = '{choices[0]}'"
            )
    return found


def _set(values: Mapping[str, object]) -> list[str]:
    """Keys whose value is not the default."""
    return [key for key in values if key in KNOBS and values[key] != KNOBS[key].default]
