"""What the server sees of an offline phase, whatever the back end."""

from typing import Any

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.settings import Settings
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.shape import Part, Shape, shape_of
from fedlap_app.studies.planning.traffic import traffic_of
from fedlap_app.sums.job.spec import OfflineSpec

SERVER = "the server, which holds no key (a classifier on its views: `fedlap attack`)"


def server_view(settings: Settings, shape: Shape, program: str) -> dict[str, Any]:
    """Names, sizes, counts and times; the partners of each member unless they are hidden."""
    spec = settings.spec_of(program)
    traffic = traffic_of(Phase(spec, shape, settings.seed), settings.message_mb)
    return {
        "attacker": SERVER,
        "organisations": {
            part.name: {
                "slots": _slots(spec, part),
                "bytes_sent": traffic.up[part.name],
                "bytes_received": traffic.down[part.name],
            }
            for part in shape.parts
        },
        "round_trips": traffic.round_trips + traffic.handshake,
        **_in_any_case(settings, spec, shape),
        "partners": _partners(spec, shape),
    }


def own_server_view(settings: Settings, subgraph: Subgraph, program: str) -> dict[str, Any]:
    """The same of one organisation, as far as it can know before a run."""
    spec, shape = settings.spec_of(program), shape_of([subgraph])
    (part,) = shape.parts
    return {
        "attacker": SERVER,
        "organisations": {part.name: {"slots": _slots(spec, part)}},
        **_in_any_case(settings, spec, shape),
        "partners": _partners(spec, shape),
    }


def _partners(spec: OfflineSpec, shape: Shape) -> dict[str, list[str]] | None:
    if spec.hide_topology and not spec.program.shows_holders:
        return None
    return {part.name: list(part.partners) for part in shape.parts}


def _slots(spec: OfflineSpec, part: Part) -> int:
    return part.frame(spec).length(spec.program.width) // spec.program.width


def _in_any_case(settings: Settings, spec: OfflineSpec, shape: Shape) -> dict[str, Any]:
    nodes = "own nodes" if settings.layout == "full" else "own nodes with a foreign neighbour"
    return {
        "slots_are": f"{nodes}, rounded up",
        "vectors": spec.program.columns(shape.extent) // spec.program.products,
        "timing": "when each message comes, and how long each client says that it worked",
        "contents": (
            f"nothing: sealed by {settings.backend}"
            if spec.facts.sealed
            else f"everything, because the back end is {settings.backend}"
        ),
    }
