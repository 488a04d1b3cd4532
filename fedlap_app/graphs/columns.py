"""What feature columns look like, and what becomes of them: for whoever checks a table."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from fedlap_app.graphs.encoding import SAYS, Encoding, Rule
from fedlap_app.graphs.graph import join
from fedlap_app.graphs.kinds import CATEGORY, NUMBER, SLOTS
from fedlap_app.graphs.learned import asks, learn
from fedlap_app.graphs.moments import LEAST
from fedlap_app.graphs.subgraph import Subgraph

SHOWN = 20
_HUGE = 1_000.0
_SMALL = 1e-3


@dataclass(frozen=True)
class Column:
    """One column of all tables together.

    Attributes
    ----------
    name, kind
        As declared; a column that nobody declared is a number.
    seen
        What is special about it; empty: nothing.
    done
        What training makes of it.
    """

    name: str
    kind: str
    seen: str
    done: str

    def __str__(self) -> str:
        return f"{self.name}: {self.seen + '; ' if self.seen else ''}{self.done}"


def columns_of(parts: Sequence[Subgraph]) -> list[Column]:
    """Every column of the tables that are there.

    With fewer tables than organisations take part, means and deviations will be those of all.
    """
    if not any(asks(part) for part in parts):
        return [Column(name, NUMBER, "", SAYS[Rule.KEEP]) for name in parts[0].feature_names]
    encoding = learn(parts, least=min(LEAST, len(parts)))
    whole = parts[0] if len(parts) == 1 else join(parts)
    kinds = whole.kinds or ("",) * whole.num_features
    numbers, categories = iter(range(len(kinds))), iter(range(len(kinds)))
    return [
        _category(whole, name, next(categories), encoding)
        if kind == CATEGORY
        else _number(whole, at, next(numbers), encoding)
        for at, (name, kind) in enumerate(zip(whole.feature_names, kinds, strict=True))
    ]


def _category(whole: Subgraph, name: str, column: int, encoding: Encoding) -> Column:
    assert whole.categories is not None, "a column of the kind category has texts"
    texts = whole.categories[:, column]
    values = set(texts.tolist()) - {""}
    missing = int((texts == "").sum())
    seen = f"different texts: {len(values)}" + (f", {missing:,} missing" if missing else "")
    kept = encoding.dictionaries[column].size
    done = f"{SLOTS} columns: one for each of {kept} texts, 'other' and 'missing'"
    return Column(name, CATEGORY, seen, done)


def _number(whole: Subgraph, at: int, column: int, encoding: Encoding) -> Column:
    part = whole.features[:, [at]]
    x = (part if isinstance(part, np.ndarray) else part.toarray())[:, 0].astype(np.float64)
    done = SAYS[Rule(int(encoding.rule[column]))]
    if whole.kinds and whole.kinds[at] == NUMBER:
        done += "; a second column says where it is missing"
    return Column(whole.feature_names[at], NUMBER, _seen(x), done)


def _seen(x: NDArray[np.float64]) -> str:
    known = x[np.isfinite(x)]
    found = []
    if known.size and known.min() == known.max():
        found.append(f"constant {known[0]:g}")
    elif known.size:
        size = float(np.abs(known).max())
        if size >= _HUGE or size <= _SMALL:
            found.append(f"from {known.min():.3g} to {known.max():.3g}")
    if known.size < x.size:
        found.append(f"{x.size - known.size:,} missing")
    return ", ".join(found)


def summary_of(columns: Sequence[Column]) -> list[str]:
    """Lines for people: how many columns become what, and those with something special."""
    if not columns:
        return []
    counts = Counter(column.done for column in columns)
    lines = [f"Features: columns and what becomes of them ({len(columns):,})"]
    lines += [f"  {count:,} x {done}" for done, count in counts.most_common()]
    special = [column for column in columns if column.seen]
    lines += [f"  {column}" for column in special[:SHOWN]]
    if len(special) > SHOWN:
        lines.append(f"  and {len(special) - SHOWN:,} more with something special")
    return lines


def report_of(columns: Sequence[Column]) -> list[dict[str, str]]:
    """The same for programs: columns with something special, or all of a narrow table."""
    chosen = columns if len(columns) <= SHOWN else [column for column in columns if column.seen]
    return [asdict(column) for column in chosen]
