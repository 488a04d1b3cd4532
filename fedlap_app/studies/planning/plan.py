"""The price of an offline phase for one configuration, before it runs."""

import statistics
from typing import Any

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.base import Schema
from fedlap_app.settings import Settings
from fedlap_app.studies.planning.calibration import Rates, calibrate, process_mb, with_backend
from fedlap_app.studies.planning.columns import COLUMNS, column_of, with_sums
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.room import Room, disk_of, memory_of
from fedlap_app.studies.planning.shape import Shape, equal_parts, shape_of
from fedlap_app.studies.planning.traffic import traffic_of
from fedlap_app.studies.planning.values import Values, values_of
from fedlap_app.studies.planning.work import work_of


def make_plan(
    settings: Settings,
    *,
    nodes: int | None = None,
    edges: int | None = None,
    round_trip_seconds: float | None = None,
    program: str = "",
) -> dict[str, Any]:
    """Predict the phase with the sums of the settings, and with all other ways to sum.

    Parameters
    ----------
    settings
        Settings of the run.
    nodes, edges
        Of a federation that does not exist yet (default: look at the data).
    round_trip_seconds
        Of the deployment, where all parties compute side by side (default: all parties in this
        process, one after the other).
    program
        Name of the program (default: the method's own one, if it has any).
    """
    program = settings.asked_program(program)
    if program:
        settings.spec_of(program)
    empty = process_mb()
    settings, shape = find_shape(settings, nodes, edges)
    rates = calibrate(settings)
    training = _training(settings, shape, rates, round_trip_seconds) if nodes is None else {}
    if not program:
        return {**_where(settings, shape), "backends": {}, **training}
    choices = {name: with_sums(settings, name) for name in COLUMNS}
    plans = {
        name: _plan(chosen, program, shape, with_backend(rates, chosen), round_trip_seconds, empty)
        for name, chosen in choices.items()
    }
    return {
        **_what(settings, program, shape),
        **plans[column_of(settings)],
        "backends": plans,
        **training,
    }


def find_shape(settings: Settings, nodes: int | None, edges: int | None) -> tuple[Settings, Shape]:
    """Sizes of the federation, and the settings with its number of organisations."""
    if nodes is None:
        if edges is not None:
            raise ConfigError("--edges goes with --nodes: a data set has its own edges")
        settings, subgraphs = find_subgraphs(settings)
        return settings, shape_of(subgraphs)
    if settings.data:
        raise ConfigError("--nodes and --data exclude each other: give one of them")
    settings = _with_clients(settings)
    return settings, equal_parts(nodes, settings.clients, edges)


def _training(
    settings: Settings, shape: Shape, rates: Rates, round_trip: float | None
) -> dict[str, Any]:
    """What training and sealing it takes, where the data says how large the model is."""
    from fedlap_app.studies.planning.local_training import local_price, with_bottleneck
    from fedlap_app.studies.planning.training_price import training_price

    _, parts = find_subgraphs(settings)
    schema = Schema(parts[0].num_features, parts[0].num_classes, shape.nodes)
    found: dict[str, Any] = training_price(settings, schema)
    local = local_price(settings, parts)
    if local:
        trip = rates.message * settings.clients if round_trip is None else round_trip
        found = with_bottleneck({**found, **local}, settings, trip, together=round_trip is None)
    return {"training": found} if found else {}


def find_subgraphs(settings: Settings) -> tuple[Settings, list[Subgraph]]:
    """All parts of the data, and the settings with their number."""
    from fedlap_app.flower.server.parts import subgraphs_of

    settings = _with_clients(settings)
    return settings, subgraphs_of(settings)


def _with_clients(settings: Settings) -> Settings:
    from fedlap_app.flower.grids.in_process import count_clients

    return settings.with_clients(count_clients(settings))


def _where(settings: Settings, shape: Shape) -> dict[str, Any]:
    return {
        "method": settings.method,
        "dataset": None if shape.assumed else settings.data or settings.dataset,
        "nodes": shape.nodes,
        "clients": settings.clients,
    }


def _what(settings: Settings, program: str, shape: Shape) -> dict[str, Any]:
    spec = settings.spec_of(program)
    return {
        "program": program,
        "about": spec.program.describe(shape.extent),
        "columns": spec.program.columns(shape.extent),
        **_where(settings, shape),
        "operator": settings.operator,
        "solver": settings.solver,
        "backend": settings.backend,
        "profile": spec.profile,
        "block": settings.block,
        "vectors": settings.vectors,
        "rank": settings.kept,
        "exact": spec.program.is_exact(shape.extent),
    }


def _plan(
    settings: Settings,
    program: str,
    shape: Shape,
    rates: Rates,
    round_trip: float | None,
    empty_mb: float,
) -> dict[str, Any]:
    phase = Phase(settings.spec_of(program), shape, settings.seed)
    traffic = traffic_of(phase, settings.message_mb, named=program != settings.possible_programs[0])
    values = values_of(phase)
    work = work_of(phase, traffic, values, rates)
    if round_trip is None:
        seconds = work.one_after_the_other
        round_trip = rates.message * settings.clients
    else:
        trips = traffic.round_trips + traffic.handshake
        seconds = work.side_by_side + trips * round_trip
    wanted = statistics.mean(count.wanted for count in values.values())
    return {
        "round_trips": traffic.round_trips,
        "handshake_round_trips": traffic.handshake,
        "bytes_up_per_client": traffic.mean_up,
        "bytes_up_largest": max(traffic.up.values()),
        "bytes_down_per_client": traffic.mean_down,
        "bytes_down_largest": max(traffic.down.values()),
        "values_per_client": wanted,
        "bytes_per_value_up": traffic.mean_up / max(wanted, 1),
        "pads_per_value": _pads(settings, values),
        "ciphertexts_per_client": statistics.mean(each.ciphertexts for each in values.values()),
        "round_trip_seconds": round_trip,
        "seconds": seconds,
        "seconds_client": max(work.members.values()),
        "seconds_server": work.server,
        "memory_mb": _room(memory_of(phase, traffic, empty_mb)),
        "disk_mb": _room(disk_of(phase, traffic)),
    }


def _pads(settings: Settings, values: dict[str, Values]) -> float:
    """Mean number of pads on a sealed number."""
    if settings.backend != "mask":
        return 0.0
    padded = sum(count.padded for count in values.values())
    return padded / max(sum(count.sealed for count in values.values()), 1)


def _room(room: Room) -> dict[str, float]:
    return {"client": room.member, "server": room.server, "one_process": room.together}
