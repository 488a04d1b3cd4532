"""What others can learn about edges, before a run: for a federation, or for one organisation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.graphs.folder import read_folder
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.registry import method_class
from fedlap_app.privacy.density import Density, density_of, own_density
from fedlap_app.privacy.solvable import Solvable, at_most_solvable, solvable_of, total_share
from fedlap_app.settings import Settings
from fedlap_app.store import places
from fedlap_app.studies.audit.exposure import (
    BOTH_ROWS,
    TABLE,
    WORST,
    Target,
    limits,
    measures,
    most_exposed,
    table_of,
)
from fedlap_app.studies.audit.leverages import Leverages, leverages_of, row_scaling
from fedlap_app.studies.audit.server_view import own_server_view, server_view
from fedlap_app.studies.planning.plan import find_subgraphs
from fedlap_app.studies.planning.shape import shape_of
from fedlap_app.sums.job.bases import Bases
from fedlap_app.sums.program import Extent
from fedlap_app.sums.programs import Krylov

WHOLE = "whole graph"
CLIENT = "one curious client, from its own sums and edges alone"
_PAPER = (
    "the paper's own reading: whole graph as the target, p = 2 x (directed entries) / n^2, which "
    "counts every edge twice"
)
_TRUE = "each organisation's own nodes, and the share of all pairs of the graph that are connected"
_OWN = "what this organisation alone knows: its own nodes, edges and boundary"

Rows = Mapping[str, NDArray[np.float64]]
"""Rows of the vectors exchanged at each organisation's nodes, scaled as edges multiply them."""


def audit_federation(
    settings: Settings,
    *,
    paper_p: bool = False,
    auc_bound: float = 0.75,
    counts: Sequence[int] = TABLE,
    rows: Callable[[Settings], Rows] | None = None,
    most_entries: int | None = None,
    program: str = "",
) -> dict[str, Any]:
    """Audit a data set, a partition and a configuration.

    Parameters
    ----------
    settings
        Settings of the run.
    paper_p
        Take the paper's whole-graph n and its p.
    auc_bound
        AUC that must not be exceeded.
    counts
        Vectors exchanged in the table.
    rows
        Computes the basis, for exact leverages (default: the paper's approximation).
    most_entries
        Nodes times vectors above which it is not computed (default: no limit).
    program
        Name of a program of sealed sums (default: the method's own one, if it has any).
    """
    program = settings.asked_program(program)
    settings, subgraphs = find_subgraphs(settings)
    reading = _PAPER if paper_p else _TRUE
    head = {
        **_head(settings, settings.data or settings.dataset, reading),
        "partition": settings.partition,
        "clients": settings.clients,
    }
    if not _gives_vectors(settings, program):
        server = server_view(settings, shape_of(subgraphs), program) if program else None
        return {**head, **_without_vectors(settings, program, subgraphs), "server": server}
    graph = density_of(subgraphs)
    exchanged = exchanged_vectors(settings)
    whole = Target(WHOLE, graph.nodes, graph.true_p, exchanged)
    if paper_p:
        p = _published(settings, graph).paper_p
        targets = [replace(whole, density=p)]
    else:
        small = most_entries is None or graph.nodes * exchanged <= most_entries
        known = rows(settings) if rows is not None and small else {}
        p = graph.true_p
        targets = [_target(part, p, exchanged, known.get(part.name)) for part in subgraphs]
        if known:
            stacked = np.concatenate([known[part.name] for part in subgraphs])
            whole = replace(whole, leverages=leverages_of(stacked, whole.density))
    found = [solvable_of(part) for part in subgraphs]
    return {
        **head,
        **_worst_case(targets, auc_bound, counts),
        "whole_graph": {**measures(whole), **limits(whole, auc_bound), "attacker": WORST},
        "organisations": [] if paper_p else [measures(each) for each in targets],
        "solvable": _solved(found),
        "method": _method(settings),
        "program": _revealed(settings, program, subgraphs),
        "server": server_view(settings, shape_of(subgraphs), program),
    }


def audit_organisation(
    folder: Path,
    settings: Settings,
    *,
    auc_bound: float = 0.75,
    counts: Sequence[int] = TABLE,
    program: str = "",
) -> dict[str, Any]:
    """Audit one organisation's folder from what that organisation alone knows.

    Its own rows of a finished basis are used where its store holds one that kept all vectors.
    """
    program = settings.asked_program(program)
    part = read_folder(folder, directed=settings.directed)
    head = _head(settings, str(folder), _OWN)
    if not _gives_vectors(settings, program):
        server = own_server_view(settings, part, program) if program else None
        without = _without_vectors(settings, program, [part])
        return {**head, "partners": list(part.partners), **without, "server": server}
    exchanged = exchanged_vectors(settings)
    store = Path(settings.store_dir) if settings.store_dir else places.own_store(folder)
    own = _stored_leverages(settings, store, part)
    target = replace(_target(part, own_density(part), exchanged), leverages=own)
    solved = solvable_of(part)
    bounds = at_most_solvable(part)
    return {
        **head,
        **_worst_case([target], auc_bound, counts),
        "organisations": [measures(target)],
        "partners": list(part.partners),
        "solvable": _solved([solved]),
        "solvable_by_partners_at_most": [
            {"attacker": f"the partner {each.name} alone", **_counts(each)} for each in bounds
        ],
        "method": _method(settings),
        "program": _revealed(settings, program, [part]),
        "server": own_server_view(settings, part, program),
    }


def _gives_vectors(settings: Settings, program: str) -> bool:
    """Whether vectors of a basis are exchanged, which the numbers about edges are about."""
    return settings.needs_basis or program == Krylov.name


def _without_vectors(settings: Settings, program: str, parts: Sequence[Subgraph]) -> dict[str, Any]:
    """What is left to say where no vectors are exchanged."""
    return {
        "vectors": 0,
        "method": _method(settings),
        "program": _revealed(settings, program, parts) if program else None,
    }


def _method(settings: Settings) -> dict[str, Any]:
    """What the training that follows shows to whom, in words."""
    says = [*method_class(settings.method).reveals]
    if promise := settings.promise:
        about = promise.of(settings.rounds * (settings.self_training + 1))
        says.append(
            f"Noise on updates bounds what they show of {about['unit']}, by epsilon = "
            f"{about['epsilon']:.3g} at delta = {about['delta']:g} after {about['releases']} "
            f"rounds, while at most {about['colluders']} members collude. It does not cover "
            f"{about['omits']}."
        )
    return {"name": settings.method, "says": says}


def _revealed(settings: Settings, program: str, parts: Sequence[Subgraph]) -> dict[str, Any]:
    """What a program gives away of these parts, in words and numbers."""
    found = settings.spec_of(program).program
    return {"name": found.name, **found.reveals(parts)}


def exchanged_vectors(settings: Settings) -> int:
    """M: columns of all block products; `directed` sends A'q and then A (A'q)."""
    return settings.krylov.columns(Extent())


def one_line(settings: Settings) -> str:
    """What to tell before a run: the worst-case attacker against the most exposed organisation."""
    worst = worst_exposure(settings, find_subgraphs(settings)[1])
    return (
        f"Privacy: the paper's worst-case attacker (knows every other entry of the "
        f"{worst['vectors']} vectors exchanged, all degrees and p) tells edges inside "
        f"{worst['target']} ({worst['nodes']} nodes, density {worst['density']:.2g}) from other "
        f"pairs with AUC {worst['auc']:.3f}; see `fedlap audit`"
    )


def worst_exposure(settings: Settings, parts: Sequence[Subgraph]) -> dict[str, Any]:
    """What the worst-case attacker learns of the most exposed organisation."""
    density, vectors = density_of(parts).true_p, exchanged_vectors(settings)
    return measures(most_exposed([_target(part, density, vectors) for part in parts]))


def _target(
    part: Subgraph, density: float, vectors: int, rows: NDArray[np.float64] | None = None
) -> Target:
    exact = None if rows is None else leverages_of(rows, density)
    return Target(part.name, part.num_nodes, density, vectors, exact)


def _published(settings: Settings, graph: Density) -> Density:
    """Counts of the graph as it was published: an edge that has a direction is one entry."""
    if settings.data or settings.directed:
        return graph
    return density_of(find_subgraphs(replace(settings, directed=True))[1])


def _head(settings: Settings, source: str, reading: str) -> dict[str, Any]:
    return {
        "data": source,
        "operator": settings.operator,
        "backend": settings.backend,
        "hide_topology": settings.hide_topology,
        "reading": reading,
    }


def _worst_case(
    targets: Sequence[Target], auc_bound: float, counts: Sequence[int]
) -> dict[str, Any]:
    worst = most_exposed(targets)
    found = limits(worst, auc_bound)
    return {
        "attacker": WORST,
        "attacker_both_rows": BOTH_ROWS,
        **measures(worst),
        **found,
        "table": table_of(worst, [*counts, worst.vectors]),
    }


def _solved(found: Sequence[Solvable]) -> dict[str, Any]:
    return {
        "attacker": CLIENT,
        "share": total_share(found),
        "clients": [{"client": each.name, **_counts(each)} for each in found],
    }


def _counts(each: Solvable) -> dict[str, Any]:
    return {"foreign": each.foreign, "solved": each.solved, "share": each.share}


def _stored_leverages(settings: Settings, store: Path, part: Subgraph) -> Leverages | None:
    """Exact alpha_v from a basis of this graph and these settings that kept all its vectors."""
    if not store.is_dir():
        return None
    spec, bases = settings.offline_spec, Bases(store / Krylov.kept_as)
    specs, data = {spec.digest(None), spec.digest(settings.seed)}, part.fingerprint()
    for facts in reversed(bases.facts()):
        if facts.data != data or facts.spec not in specs:
            continue
        basis = bases.load(facts)
        if basis.certificate.rank == basis.certificate.vectors:
            scaled = row_scaling(settings.krylov, part)[:, None] * np.asarray(basis.U)
            return leverages_of(scaled, own_density(part))
    return None
