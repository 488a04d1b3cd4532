"""Plain exports of one graph, a table of nodes and one of edges, as organisations."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fedlap_app.api.export_columns import meaning, numbers, texts
from fedlap_app.api.export_tables import Export, read_export, with_ends
from fedlap_app.api.organisations import Organisations
from fedlap_app.api.saved_graphs import SUFFIXES, read_saved
from fedlap_app.api.split import split
from fedlap_app.errors import DataError
from fedlap_app.graphs.checks import UNSAFE_NAME

if TYPE_CHECKING:
    import pandas as pd

# What exports often call the columns that are needed; the first that is there is taken.
USUAL = {
    "id": ("id", "node", "node_id", "account", "account_id", "name"),
    "label": ("label", "class", "y", "target_class"),
    "split": ("split", "set", "fold"),
    "source": ("source", "src", "from", "sender", "u"),
    "target": ("target", "dst", "to", "receiver", "v"),
    "weight": ("weight", "amount"),
}
_NODES, _EDGES = ("id", "label", "split"), ("source", "target", "weight")
_NEEDED = ("id", "label", "source", "target")
_SPLITS = {"training": "train", "valid": "val", "validation": "val", "testing": "test"}


class Imported(NamedTuple):
    """Organisations of an export, and in lines what was made of which column."""

    organisations: Organisations
    lines: tuple[str, ...] = ()


def from_exports(
    nodes: Path,
    edges: Path | None,
    named: Mapping[str, str],
    *,
    owners: str | None = None,
    features: Sequence[str] | None = None,
    categories: Collection[str] = (),
    drop_strangers: bool = False,
    **options: Any,  # noqa: ANN401
) -> Imported:
    """Organisations from exported files.

    Parameters
    ----------
    nodes, edges
        Tables, CSV as any program writes it or Parquet; or one npz or pt file with x, y,
        edge_index and perhaps masks. The edges may be a bare list without names of columns.
    named
        Columns that have other names than the usual ones, by what they are; "": not there.
    owners, features
        Columns of the nodes: who holds a node, and what is a feature (default: all others).
    categories
        Features that are text even where they look like numbers.
    drop_strangers
        Leave out edges whose ends are not among the nodes, which are refused otherwise.
    options
        Of `split`: clients, partition, classes, seed and so on.
    """
    if nodes.suffix in SUFFIXES:
        if edges is not None:
            raise DataError(f"{nodes} holds edges as well: give no table of edges with it")
        return Imported(split(read_saved(nodes), owners=owners, features=features, **options))
    if edges is None:
        raise DataError(f"{nodes} is a table of nodes: give the table of edges behind it")
    table = read_export(nodes)
    roles = _roles(table, _NODES, named)
    points, lines = _points(table, roles, owners, features, categories)
    list_ = with_ends(read_export(edges), set(points["id"]))
    ends = _roles(list_, _EDGES, named)
    links, more = _links(list_, ends, set(points["id"]), drop_strangers=drop_strangers)
    kinds = dict.fromkeys(categories, "category")
    owner = "owner" if owners else None
    given = [name for name in points.columns if name not in ("id", "label", "split", "owner")]
    orgs = split(points, links, owners=owner, features=given, kinds=kinds, **options)
    return Imported(orgs, (*lines, *more))


def _roles(table: Export, wanted: tuple[str, ...], named: Mapping[str, str]) -> dict[str, str]:
    """Which column is what; capitals and signs between words do not count."""
    there = {_plain(str(name)): str(name) for name in reversed(table.cells.columns)}
    found: dict[str, str] = {}
    for what in wanted:
        usual = next((there[_plain(name)] for name in USUAL[what] if _plain(name) in there), "")
        name = named.get(what, usual)
        _require(table, name)
        if name and name not in found.values():
            found[what] = name
    lacking = [what for what in wanted if what in _NEEDED and what not in found]
    if lacking:
        flags = " ".join(f"--{what} COLUMN" for what in lacking)
        raise DataError(
            f"{table.path} has no column that is called {' or '.join(lacking)} or the like (it "
            f"has {_listed(table)}): say which it is, {flags}"
        )
    return found


def _points(
    table: Export,
    roles: Mapping[str, str],
    owners: str | None,
    features: Sequence[str] | None,
    categories: Collection[str],
) -> tuple["pd.DataFrame", tuple[str, ...]]:
    """The nodes as `split` takes them."""
    import pandas as pd

    named = [f"{what} = {name}" for what, name in roles.items()]
    columns = {what: texts(table.cells[name]) for what, name in roles.items()}
    columns["label"] = _whole(columns["label"])
    if "split" in columns:
        columns["split"] = columns["split"].str.lower().replace(_SPLITS)
    if owners:
        _require(table, owners)
        named.append(f"owner = {owners}")
        columns["owner"] = _as_names(texts(table.cells[owners]))
    others = [name for name in table.cells.columns if name not in (*roles.values(), owners)]
    words = []
    for name in others if features is None else features:
        _require(table, name)
        found, what = meaning(table.cells[name], comma=table.comma, category=name in categories)
        if found is not None:
            columns[str(name)] = found
        words.append(f"{name} ({what if found is not None else f'left out: {what}'})")
    lines = [f"{table.path.name}: {', '.join(named)}", f"  features: {', '.join(words) or 'none'}"]
    return pd.DataFrame(columns), tuple(lines)


def _links(
    table: Export, roles: Mapping[str, str], nodes: Collection[str], *, drop_strangers: bool
) -> tuple["pd.DataFrame", tuple[str, ...]]:
    """The edges as `split` takes them: of lines between the same two nodes the weights add up."""
    import pandas as pd

    links = pd.DataFrame({what: texts(table.cells[name]) for what, name in roles.items()})
    notes = [f"{what} = {name}" for what, name in roles.items()]
    for side in ("source", "target"):
        known = links[side].isin(nodes)
        if known.all():
            continue
        missing = int((~known).sum())
        if not drop_strangers:
            at = known.idxmin()
            raise DataError(
                f"{table.where(int(at))}: {side} {links[side][at]!r} is no node of the other table "
                f"(in {missing:,} of {len(links):,} lines): list such nodes there, without a label "
                "if they have none, or leave the lines out with --drop-strangers"
            )
        links = links[known]
        notes.append(f"left out for a {side} that is no node: {missing:,}")
    if "weight" not in links:
        return links, (f"{table.path.name}: {', '.join(notes)}",)
    links["weight"] = _weights(table, links["weight"])
    summed = links.groupby(["source", "target"], sort=False, as_index=False)["weight"].sum()
    if len(summed) < len(links):
        notes.append(f"{len(links):,} lines are {len(summed):,} edges, whose weights are sums")
    return summed, (f"{table.path.name}: {', '.join(notes)}",)


def _weights(table: Export, cells: "pd.Series") -> "pd.Series":
    found = numbers(cells, comma=table.comma)
    if found is None:
        bad = next(at for at, cell in cells.items() if numbers(cells.loc[[at]], comma=True) is None)
    elif (found > 0).all():
        return found
    else:
        bad = (found > 0).idxmin()
    raise DataError(
        f"{table.where(int(bad))}: the weight {cells[bad]!r} is no number above 0: correct it, "
        "leave the line out, name another column with --weight, or none with --weight ''"
    )


def _whole(labels: "pd.Series") -> "pd.Series":
    """Labels that are whole numbers as such, so that -1 is none and 10 comes after 2."""
    known = labels[labels != ""]
    if not known.str.fullmatch(r"-1|0|[1-9]\d*").all():
        return labels
    return known.astype(int).astype(object).reindex(labels.index)


def _as_names(owners: "pd.Series") -> "pd.Series":
    """Owners as names of folders, unless two would become the same."""
    safe = owners.str.replace(UNSAFE_NAME, "-", regex=True).str.strip()
    return safe if safe.nunique() == owners.nunique() else owners


def _require(table: Export, name: str) -> None:
    if name and name not in table.cells.columns:
        raise DataError(f"{table.path} has no column {name!r}: it has {_listed(table)}")


def _listed(table: Export) -> str:
    return ", ".join(map(str, table.cells.columns))


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
