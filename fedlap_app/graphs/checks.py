"""What must hold for every graph; each violation is one sentence."""

import re

import numpy as np
import scipy.sparse as sp

from fedlap_app.errors import DataError
from fedlap_app.graphs.arrays import Bools, Features, Floats, Ints, Strings, stored_values
from fedlap_app.graphs.edges import edge_keys
from fedlap_app.graphs.kinds import NUMBER, Kinds
from fedlap_app.graphs.lookalikes import fault_of_letters

NAME_LIMIT = 100
UNSAFE_NAME = re.compile(r'[<>:"/\\|?*`]')
# Letters and marks that show nothing; what Python calls unprintable is refused besides.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def check_name(name: str) -> None:
    """Refuse organisation names that could not also be the name of a folder."""
    if not isinstance(name, str) or not name.strip():
        raise DataError(f"The organisation name {name!r} is not usable: write one in letters.")
    fault = fault_of_name(name)
    if fault:
        raise DataError(f"The organisation name {name[:NAME_LIMIT]!r} {fault}.")
    if UNSAFE_NAME.search(name) or name != name.strip() or name.startswith((".", "-", "~")):
        raise DataError(
            f"The organisation name {name!r} is not usable as a folder name: leave out leading "
            'dots, dashes and tildes, outer spaces and the characters < > : " / \\ | ? * `.'
        )


def fault_of_name(name: str) -> str:
    """What people mistake in a name or certificates cannot hold; empty: nothing."""
    if not name.isprintable() or _INVISIBLE.search(name):
        return "has an invisible or control character: take printable ones"
    if len(name.encode()) > NAME_LIMIT:
        return f"has {len(name.encode())} bytes in UTF-8: take at most {NAME_LIMIT}"
    return fault_of_letters(name)


def check_list(values: tuple[str, ...], what: str) -> None:
    """Refuse a list of names with empty or repeated entries."""
    if not all(isinstance(value, str) and value for value in values):
        raise DataError(f"The {what} {list(values)!r} are not all non-empty strings: name each.")
    odd = next((value for value in values if not value.isprintable()), None)
    if odd is not None:
        raise DataError(f"The {what} have a control character in {odd!r}: remove it.")
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise DataError(f"The {what} list {twice!r} twice: every name may appear once.")


def check_unique(ids: Strings, what: str) -> None:
    """Refuse a vector of strings in which one appears twice."""
    ordered = np.sort(ids)
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if twice.size:
        raise DataError(f"{what} {str(ordered[twice[0]])!r} is listed twice: keep one entry.")


def check_features(
    features: Features, ids: Strings, feature_names: tuple[str, ...], kinds: Kinds = ()
) -> None:
    """Refuse a feature matrix of the wrong shape or with values that are not finite.

    A value of a column that is declared as a number may be missing.
    """
    if features.shape != (len(ids), len(feature_names)):
        raise DataError(
            f"The features have the shape {tuple(features.shape)} but there are {len(ids)} nodes "
            f"and {len(feature_names)} feature names: the two must agree."
        )
    place = first_unusable(features, kinds)
    if place is not None:
        row, column = place
        raise DataError(
            f"The feature {feature_names[column]!r} of node {str(ids[row])!r} is not a finite "
            f"number: fill in a value that a float32 can hold{remedy(features, place)}."
        )


def first_unusable(features: Features, kinds: Kinds = ()) -> tuple[int, int] | None:
    """Row and column of the first value that is infinite, or missing where it must not be."""
    values = stored_values(features)
    bad = ~np.isfinite(values)
    if not bad.any():
        return None
    if isinstance(features, np.ndarray):
        rows, columns = np.nonzero(bad.reshape(features.shape))
    else:
        rows, columns = (each[bad] for each in features.tocoo().coords)
    may_miss = np.array([kind == NUMBER for kind in kinds] or [False] * features.shape[1])
    wrong = np.flatnonzero(~(np.isnan(values[bad]) & may_miss[columns]))
    return (int(rows[wrong[0]]), int(columns[wrong[0]])) if wrong.size else None


def remedy(features: Features, place: tuple[int, int]) -> str:
    """What else helps where a value is missing."""
    if not np.isnan(features[place]):
        return ""
    return ', or declare the column in kinds = {NAME = "number"}, which may lack values'


def check_labels(labels: Ints, ids: Strings, classes: tuple[str, ...]) -> None:
    """Refuse labels outside -1 (none) and the positions of the classes."""
    if labels.shape != ids.shape:
        raise DataError(f"There are {labels.size} labels for {ids.size} nodes: give one a node.")
    bad = np.flatnonzero((labels < -1) | (labels >= len(classes)))
    if bad.size:
        raise DataError(
            f"The label {labels[bad[0]]} of node {str(ids[bad[0]])!r} is outside the "
            f"{len(classes)} classes: use 0 to {len(classes) - 1}, or -1 for none."
        )


def check_masks(masks: tuple[Bools, Bools, Bools], labels: Ints, ids: Strings) -> None:
    """Refuse masks that overlap or that hold a node without a label."""
    for mask in masks:
        if mask.shape != ids.shape:
            raise DataError(f"A split has {mask.size} entries for {ids.size} nodes: give one each.")
    total = sum(mask.astype(np.int8) for mask in masks)
    twice = np.flatnonzero(np.asarray(total) > 1)
    if twice.size:
        raise DataError(f"Node {str(ids[twice[0]])!r} is in two splits: put it into one.")
    bare = np.flatnonzero((np.asarray(total) > 0) & (labels < 0))
    if bare.size:
        raise DataError(
            f"Node {str(ids[bare[0]])!r} is in a split but has no label: label it or take it out."
        )


def check_edges(index: Ints, weight: Floats, ids: Strings, *, directed: bool) -> None:
    """Refuse edges that are not simple; ``index`` is sorted by source and then target."""
    size = len(ids)
    if index.shape != (2, weight.size):
        raise DataError(
            f"The edges have the shape {index.shape} for {weight.size} weights: give (2, E)."
        )
    if index.size and (index.min() < 0 or index.max() >= size):
        raise DataError(
            f"An edge names node {int(index.min() if index.min() < 0 else index.max())} but there "
            f"are only {size} nodes: number them from 0."
        )
    _refuse_edge(index, index[0] == index[1], ids, "is a self loop: leave it out")
    _refuse_edge(
        index,
        ~(np.isfinite(weight) & (weight > 0)),
        ids,
        "has a weight that is not a positive number: correct it or leave the edge out",
    )
    keys = edge_keys(index, size)
    _refuse_edge(
        index,
        np.r_[False, keys[1:] == keys[:-1]][: keys.size],
        ids,
        "is listed twice: keep one",
    )
    if not directed:
        _check_symmetric(index, weight, ids)


def _check_symmetric(index: Ints, weight: Floats, ids: Strings) -> None:
    size = len(ids)
    starts = np.concatenate([[0], np.cumsum(np.bincount(index[0], minlength=size))])
    # Transposing in linear time: symmetric means that rows and columns read the same.
    columns = sp.csr_array((weight, index[1], starts), shape=(size, size)).tocsc()
    if not (np.array_equal(columns.indptr, starts) and np.array_equal(columns.indices, index[1])):
        lonely = ~np.isin(edge_keys(index, size), edge_keys(index[::-1], size))
        why = "lacks its opposite direction: list both or make the graph directed"
        _refuse_edge(index, lonely, ids, why)
    why = "has another weight in the opposite direction: use one weight or a directed graph"
    _refuse_edge(index, columns.data != weight, ids, why)


def _refuse_edge(index: Ints, bad: Bools, ids: Strings, why: str) -> None:
    if bad.any():
        source, target = (str(ids[end]) for end in index[:, int(np.argmax(bad))])
        raise DataError(f"The edge from {source!r} to {target!r} {why}.")
