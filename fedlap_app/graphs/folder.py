"""The organisation folder: what a real organisation prepares, and what benchmarks are cut into."""

from itertools import pairwise
from pathlib import Path

import numpy as np

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs import feature_file, organisation
from fedlap_app.graphs.arrays import Bools, Features, Ints, Strings, strings
from fedlap_app.graphs.checks import first_unusable, remedy
from fedlap_app.graphs.edge_table import read_edges, write_edges
from fedlap_app.graphs.kinds import CATEGORY, NUMBER
from fedlap_app.graphs.organisation import Organisation, read_organisation, write_organisation
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.graphs.tables import FORMATS, Table, find_table, read_table, write_table

SPLITS = ("train", "val", "test")
_COLUMNS = ("id", "label", "split")
_MAX_COLUMNS = 256  # wider features go to features.npz


def read_folder(path: str | Path, *, directed: bool = False) -> Subgraph:
    """Read and check one organisation folder.

    Parameters
    ----------
    path : folder with org.toml, nodes and edges (CSV or Parquet), perhaps features.npz.
    directed : keep the direction of the edges.
    """
    folder = Path(path)
    _require_folder(folder, "an organisation folder")
    facts = read_organisation(folder)
    nodes, features = _read_nodes(folder, facts)
    labels, masks = _labels(nodes, facts.classes), _masks(nodes)
    _require_labels(nodes, labels, masks)
    edges = read_edges(find_table(folder, "edges"), facts.name, nodes.text["id"], directed=directed)
    try:
        return Subgraph(
            name=facts.name,
            classes=facts.classes,
            feature_names=facts.feature_names,
            ids=nodes.text["id"],
            external_ids=edges.external_ids,
            external_owners=edges.external_owners,
            edge_index=edges.index,
            edge_weight=edges.weight,
            features=features,
            labels=labels,
            train_mask=masks[0],
            val_mask=masks[1],
            test_mask=masks[2],
            directed=directed,
            kinds=facts.kinds,
            categories=_categories(nodes, facts),
        )
    except DataError as error:
        raise DataError(f"{folder}: {error}") from None


def _read_nodes(folder: Path, facts: Organisation) -> tuple[Table, Features]:
    path = find_table(folder, "nodes")
    matrix = folder / feature_file.FILE
    names = () if matrix.is_file() else facts.feature_names
    if matrix.is_file() and CATEGORY in facts.kinds:
        raise DataError(
            f"{folder / organisation.FILE}: {feature_file.FILE} holds numbers only: put features "
            "of the kind category, and all others, into the nodes' table."
        )
    kinds = dict(zip(names, facts.kinds or [""] * len(names), strict=True))
    texts = tuple(name for name, kind in kinds.items() if kind == CATEGORY)
    numeric = tuple(name for name in names if name not in texts)
    reserved = next((name for name in names if name in _COLUMNS), None)
    if reserved:
        raise DataError(
            f"{folder / organisation.FILE}: a feature cannot be called {reserved!r}: rename it, "
            f"or put the features into {feature_file.FILE}."
        )
    lacking = tuple(name for name, kind in kinds.items() if kind == NUMBER)
    table = read_table(path, (*_COLUMNS, *texts), numeric, lacking=lacking)
    _check_ids(table)
    if matrix.is_file():
        features = feature_file.read_features(matrix, table.lines.size, facts.feature_names)
    else:
        features = np.zeros((table.lines.size, len(names)), dtype=np.float32)
        with np.errstate(over="ignore"):
            features[:, [name not in texts for name in names]] = table.numbers
    _check_finite(table, features, matrix, facts)
    return table, features


def _check_ids(table: Table) -> None:
    ids = table.text["id"]
    if not ids.size:
        raise DataError(f"{table.path} lists no node: an organisation needs at least one.")
    empty = np.flatnonzero(ids == "")
    if empty.size:
        raise DataError(f"{table.where(empty[0])}: the id is empty: give every node one.")
    strings(ids, f"{table.path}: the column id")
    order = np.argsort(ids, kind="stable")
    twice = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if twice.size:
        first, second = order[twice[0]], order[twice[0] + 1]
        raise DataError(
            f"{table.where(second)}: the node {str(ids[second])!r} is already in {table.unit} "
            f"{table.lines[first]}: keep one of the two."
        )


def _check_finite(table: Table, features: Features, matrix: Path, facts: Organisation) -> None:
    place = first_unusable(features, facts.kinds)
    if place is None:
        return
    row, column = place
    where = f"{matrix}, row {row + 1}" if matrix.is_file() else table.where(row)
    raise DataError(
        f"{where}: the feature {facts.feature_names[column]!r} is missing, infinite or too large: "
        f"fill in a number that a float32 can hold{remedy(features, place)}."
    )


def _categories(nodes: Table, facts: Organisation) -> Strings | None:
    """(n, columns) texts of the features that are categories."""
    named = zip(facts.feature_names, facts.kinds, strict=False)
    columns = [nodes.text[name] for name, kind in named if kind == CATEGORY]
    return np.stack(columns, axis=1) if columns else None


def _labels(table: Table, classes: tuple[str, ...]) -> Ints:
    texts = table.text["label"]
    labels = np.full(texts.size, -1, dtype=np.int64)
    for number, name in enumerate(classes):
        labels[texts == name] = number
    unknown = np.flatnonzero((labels < 0) & (texts != ""))
    if unknown.size:
        raise DataError(
            f"{table.where(unknown[0])}: the label {str(texts[unknown[0]])!r} is not among the "
            f"classes of org.toml ({', '.join(classes)}): correct it or leave it empty."
        )
    return labels


def _masks(table: Table) -> tuple[Bools, ...]:
    texts = table.text["split"]
    masks = tuple(texts == name for name in SPLITS)
    unknown = np.flatnonzero((texts != "") & ~np.any(masks, axis=0))
    if unknown.size:
        raise DataError(
            f"{table.where(unknown[0])}: unknown split {str(texts[unknown[0]])!r}: write "
            f"{', '.join(SPLITS)} or leave it empty."
        )
    return masks


def _require_labels(table: Table, labels: Ints, masks: tuple[Bools, ...]) -> None:
    bare = np.flatnonzero(np.any(masks, axis=0) & (labels < 0))
    if bare.size:
        raise DataError(
            f"{table.where(bare[0])}: the node {str(table.text['id'][bare[0]])!r} is in a split "
            "but has no label: label it or leave the split empty."
        )


def write_folder(subgraph: Subgraph, path: str | Path, fmt: str = "csv") -> None:
    """Write an organisation folder; `read_folder` gives the same subgraph back.

    Parameters
    ----------
    subgraph : what to write.
    path : folder, made when it is not there.
    fmt : csv or parquet.
    """
    if fmt not in FORMATS:
        raise ConfigError(f"Unknown format {fmt!r}: choose {' or '.join(FORMATS)}.")
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_nodes(subgraph, folder, fmt)
        write_edges(subgraph, folder, fmt)
        write_organisation(
            folder,
            Organisation(subgraph.name, subgraph.classes, subgraph.feature_names, subgraph.kinds),
        )
    except OSError as error:
        raise DataError(f"{folder} cannot be written ({error.strerror}): check it.") from None


def _write_nodes(subgraph: Subgraph, folder: Path, fmt: str) -> None:
    columns: dict[str, Strings | Features] = {
        "id": subgraph.ids,
        "label": np.array([*subgraph.classes, ""])[subgraph.labels],
        "split": _split_names(subgraph),
    }
    matrix = folder / feature_file.FILE
    names, features = subgraph.feature_names, subgraph.features
    wide = len(names) > _MAX_COLUMNS and subgraph.categories is None
    narrow = not wide and not set(names) & set(_COLUMNS)
    if isinstance(features, np.ndarray) and narrow:
        columns |= {name: features[:, column] for column, name in enumerate(names)}
        columns |= _texts(subgraph)
        matrix.unlink(missing_ok=True)
    else:
        feature_file.write_features(matrix, features)
    write_table(folder, "nodes", columns, fmt)


def _texts(subgraph: Subgraph) -> dict[str, Strings]:
    """Columns of categories by name."""
    named = zip(subgraph.feature_names, subgraph.kinds, strict=False)
    texts = [name for name, kind in named if kind == CATEGORY]
    held = subgraph.categories
    return {} if held is None else {name: held[:, at] for at, name in enumerate(texts)}


def _split_names(subgraph: Subgraph) -> Strings:
    masks = [subgraph.train_mask, subgraph.val_mask, subgraph.test_mask]
    names: Strings = np.select(masks, [np.array(name) for name in SPLITS], default=np.array(""))
    return names


def _require_folder(path: Path, what: str) -> None:
    if path.is_file():
        raise DataError(f"{path} is a file: name {what}, perhaps {path.resolve().parent}.")
    if not path.is_dir():
        raise DataError(f"There is no folder {path}: name {what}.")


def organisation_folders(path: str | Path) -> list[Path]:
    """Organisation folders directly below a folder, in the order of the folders' names."""
    folder = Path(path)
    _require_folder(folder, "a folder of organisation folders")
    children = [child for child in folder.iterdir() if child.is_dir()]
    found = [child for child in children if (child / organisation.FILE).is_file()]
    for child in children:
        if child not in found and any((child / f"nodes.{end}").exists() for end in FORMATS):
            raise DataError(
                f"{child} has nodes but no {organisation.FILE}: write one, or move it away."
            )
    if not found:
        raise DataError(
            f"{folder} holds no organisation folders: each is a folder with an org.toml."
        )
    return sorted(found)


def federation_folders(path: str | Path) -> list[Path]:
    """Organisation folders directly below a folder, in the order of the organisations' names."""
    if (Path(path) / organisation.FILE).is_file():
        raise DataError(
            f"{path} is one organisation folder: name the folder that holds those of all."
        )
    found = organisation_folders(path)
    named = sorted((read_organisation(child).name, child) for child in found)
    for (name, first), (other, second) in pairwise(named):
        if name == other:
            raise DataError(
                f"{first} and {second} both call themselves {name!r}: rename one of them."
            )
    return [child for _, child in named]


def read_federation(path: str | Path, *, directed: bool = False) -> list[Subgraph]:
    """Read the organisation folders below a folder, in the order of their names."""
    return [read_folder(child, directed=directed) for child in federation_folders(path)]
