"""Whether the parts of several organisations fit together, where all of them can be seen."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from fedlap_app.graphs.arrays import Floats, Ints, Strings
from fedlap_app.graphs.edges import edge_keys
from fedlap_app.graphs.subgraph import Subgraph


def check_federation(subgraphs: Sequence[Subgraph]) -> list[str]:
    """Problems between organisations, one sentence each; an empty list when there are none.

    All share classes, features and direction; names and nodes are unique; every external node is
    held by the owner that is named; an edge between two organisations is listed by both, with
    one weight.
    """
    problems = _schema_problems(subgraphs)
    names = Counter(part.name for part in subgraphs)
    twice = [name for name, times in names.items() if times > 1]
    problems += [
        f"{names[name]} organisations call themselves {name!r}: rename them." for name in twice
    ]
    ids = np.concatenate([part.ids for part in subgraphs])
    holder = np.repeat(np.arange(len(subgraphs)), [part.num_nodes for part in subgraphs])
    order = np.argsort(ids, kind="stable")
    problems += _shared_nodes(subgraphs, ids[order], holder[order])
    if problems:  # what follows needs names and nodes that mean one thing
        return problems
    for part in subgraphs:
        problems += _owner_problems(part, subgraphs, ids[order], holder[order])
    return problems + _edge_problems(subgraphs, ids[order], holder[order])


def _schema_problems(subgraphs: Sequence[Subgraph]) -> list[str]:
    first = subgraphs[0]
    problems = []
    for part in subgraphs[1:]:
        if part.classes != first.classes:
            problems.append(
                f"{first.name!r} has the classes {_short(first.classes)} but {part.name!r} has "
                f"{_short(part.classes)}: use the same list in the same order."
            )
        if part.feature_names != first.feature_names:
            problems.append(
                f"{first.name!r} has {first.num_features} features {_short(first.feature_names)} "
                f"but {part.name!r} has {part.num_features} {_short(part.feature_names)}: use the "
                "same columns in the same order."
            )
        elif part.kinds != first.kinds:
            problems.append(
                f"{first.name!r} and {part.name!r} declare other kinds of features: use the same "
                "kinds in every org.toml."
            )
        if part.directed != first.directed:
            problems.append(
                f"{first.name!r} and {part.name!r} differ in whether edges have a direction: "
                "read both in the same way."
            )
    return problems


def _short(names: tuple[str, ...]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def _shared_nodes(subgraphs: Sequence[Subgraph], ids: Strings, holder: Ints) -> list[str]:
    """Nodes that two organisations hold; ``ids`` is sorted."""
    twice = np.flatnonzero(ids[1:] == ids[:-1])
    pairs = Counter(zip(holder[twice].tolist(), holder[twice + 1].tolist(), strict=True))
    examples = {(int(holder[at]), int(holder[at + 1])): str(ids[at]) for at in twice[::-1].tolist()}
    return [
        f"{subgraphs[a].name!r} and {subgraphs[b].name!r} both hold {_count(times, 'node')}, for "
        f"example {examples[a, b]!r}: a node belongs to one organisation."
        for (a, b), times in pairs.items()
    ]


def _count(times: int, what: str) -> str:
    return f"{times} {what}" + ("" if times == 1 else "s")


def _owner_problems(
    part: Subgraph, subgraphs: Sequence[Subgraph], ids: Strings, holder: Ints
) -> list[str]:
    """External nodes of one organisation that the named owner does not hold."""
    position = {other.name: place for place, other in enumerate(subgraphs)}
    problems = [
        f"{part.name!r} names {owner!r} as the owner of "
        f"{_count(int((part.external_owners == owner).sum()), 'node')}, but there is no such "
        "organisation here: correct the owner or add its folder."
        for owner in part.partners
        if owner not in position
    ]
    place = np.minimum(np.searchsorted(ids, part.external_ids), ids.size - 1)
    held = np.where(ids[place] == part.external_ids, holder[place], -1)
    for owner in part.partners:
        wrong = np.flatnonzero((part.external_owners == owner) & (held != position.get(owner, -2)))
        if owner in position and wrong.size:
            example = int(held[wrong[0]])
            holds = f"{subgraphs[example].name!r} holds it" if example >= 0 else "nobody holds it"
            problems.append(
                f"{part.name!r} says that {owner!r} holds {_count(wrong.size, 'node')} which it "
                f"does not, for example {str(part.external_ids[wrong[0]])!r} ({holds}): correct "
                "the owner or the id."
            )
    return problems


def _edge_problems(subgraphs: Sequence[Subgraph], ids: Strings, holder: Ints) -> list[str]:
    """Edges between organisations that only one lists or that differ in weight."""
    keys, weights, listers, others = _listings(subgraphs, ids, holder)
    order = np.lexsort((listers, keys))
    keys, weights, listers, others = keys[order], weights[order], listers[order], others[order]
    paired = np.zeros(keys.size, dtype=bool)
    both = np.flatnonzero(keys[1:] == keys[:-1])
    paired[both] = paired[both + 1] = True
    problems = []
    lonely = np.flatnonzero(~paired)
    for a, b in sorted(set(zip(listers[lonely].tolist(), others[lonely].tolist(), strict=True))):
        mine = lonely[(listers[lonely] == a) & (others[lonely] == b)]
        problems.append(
            f"{subgraphs[a].name!r} lists {_count(mine.size, 'edge')} with "
            f"{subgraphs[b].name!r} that {subgraphs[b].name!r} does not list, for example "
            f"{_edge(int(keys[mine[0]]), ids)}: an edge between two is listed by both."
        )
    unequal = both[weights[both] != weights[both + 1]]
    for a, b in sorted(set(zip(listers[unequal].tolist(), others[unequal].tolist(), strict=True))):
        mine = unequal[(listers[unequal] == a) & (others[unequal] == b)]
        problems.append(
            f"{subgraphs[a].name!r} and {subgraphs[b].name!r} give different weights to "
            f"{_count(mine.size, 'edge')}, for example {_edge(int(keys[mine[0]]), ids)} "
            f"({weights[mine[0]]:g} and {weights[mine[0] + 1]:g}): agree on one."
        )
    return problems


def _edge(key: int, ids: Strings) -> str:
    source, target = divmod(key, ids.size)
    return f"from {str(ids[source])!r} to {str(ids[target])!r}"


def _listings(
    subgraphs: Sequence[Subgraph], ids: Strings, holder: Ints
) -> tuple[Ints, Floats, Ints, Ints]:
    """Key, weight, lister and other side of every edge whose other end is held as it says."""
    names = np.array([part.name for part in subgraphs])
    pieces = []
    for number, part in enumerate(subgraphs):
        everyone = np.concatenate([part.ids, part.external_ids])
        place = np.minimum(np.searchsorted(ids, everyone), ids.size - 1)
        held = (ids[place] == everyone)[part.num_nodes :]
        held &= names[holder[place[part.num_nodes :]]] == part.external_owners
        index, weight = part.inter_edges
        good = held[index.max(axis=0) - part.num_nodes]
        if not part.directed:  # each edge is there in both directions: look at one of them
            good = good & (place[index[0]] < place[index[1]])
        ends = place[index[:, good]]
        lister = np.full(ends.shape[1], number)
        other = holder[ends].sum(axis=0) - lister
        pieces.append((edge_keys(ends, ids.size), weight[good], lister, other))
    keys, weights, listers, others = (np.concatenate(piece) for piece in zip(*pieces, strict=True))
    return keys, weights, listers, others
