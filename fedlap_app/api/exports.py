"""Plain exports of one graph, a table of nodes and one of edges, as organisations."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlap_app.api.organisations import Organisations
from fedlap_app.api.split import split
from fedlap_app.errors import DataError
from fedlap_app.knobs import nearest

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


def from_exports(
    nodes: Path,
    edges: Path | None,
    named: Mapping[str, str],
    **options: Any,  # noqa: ANN401
) -> Organisations:
    """Organisations from exported files.

    Parameters
    ----------
    nodes, edges
        CSV or Parquet tables; or one npz with x, y, edge_index and perhaps masks.
    named
        Columns that have other names than the usual ones, by what they are.
    options
        Of `split`: owners, clients, partition, classes, features, seed and so on.
    """
    if nodes.suffix == ".npz":
        if edges is not None:
            raise DataError(f"{nodes} holds edges as well: give no table of edges with it")
        return split(_arrays(nodes), **options)
    if edges is None:
        raise DataError(f"{nodes} is a table of nodes: give the table of edges behind it")
    points = _renamed(_table(nodes), _NODES, named, nodes)
    links = _renamed(_table(edges), _EDGES, named, edges)
    for column in ("source", "target"):
        unknown = ~links[column].astype(str).isin(points["id"].astype(str))
        if unknown.any():
            at = int(np.argmax(unknown.to_numpy()))
            raise DataError(
                f"{edges}, line {at + 2}: {column} {str(links[column].iloc[at])!r} is no node of "
                f"{nodes}: list it there, without a label if it has none"
            )
    points["id"] = points["id"].astype(str)
    links = links.astype({"source": str, "target": str})
    return split(points, links, **options)


def _table(path: Path) -> "pd.DataFrame":
    import pandas as pd

    try:
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        found = pd.read_csv(path, dtype_backend="numpy_nullable")
        return found.astype(object).where(found.notna(), None)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} cannot be read as a table ({error}): give CSV or Parquet"
        ) from None


def _renamed(
    table: "pd.DataFrame", wanted: tuple[str, ...], named: Mapping[str, str], path: Path
) -> "pd.DataFrame":
    """The table with the names that `split` knows; amounts without a weight's name stay."""
    names = {}
    for what in wanted:
        found = named.get(what) or next((c for c in USUAL[what] if c in table.columns), None)
        if found is None and what not in _NEEDED:
            continue
        if found is None or found not in table.columns:
            columns = [str(column) for column in table.columns]
            near = nearest(found or what, columns)
            raise DataError(
                f"{path} has no column for the {what} (it has {', '.join(columns)}): name it with "
                f"--{what}, for example --{what} {near}"
            )
        names[found] = what
    return table.rename(columns=names)


def _arrays(path: Path) -> Any:  # noqa: ANN401 - torch_geometric's Data
    import torch
    from torch_geometric.data import Data

    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}): give arrays without objects") from None
    missing = {"x", "y", "edge_index"} - set(arrays)
    if missing:
        raise DataError(
            f"{path} lacks {', '.join(sorted(missing))}: it needs x (nodes, features), y (nodes) "
            "and edge_index (2, edges)"
        )
    return Data(**{name: torch.from_numpy(array) for name, array in arrays.items()})
