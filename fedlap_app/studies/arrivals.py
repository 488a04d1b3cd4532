"""How well nodes are predicted that came after training, against a model that had them.

Some nodes of every organisation, with their edges, are withheld from training and added
afterwards. All scores are on test nodes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.api.organisations import Organisations, in_memory, named_by
from fedlap_app.api.prediction import encoding_of, predict_part
from fedlap_app.api.run import Run
from fedlap_app.api.training import train
from fedlap_app.errors import ConfigError
from fedlap_app.graphs.graph import join
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.graphs.times import read_dated, split_by_time
from fedlap_app.graphs.without import without
from fedlap_app.methods.registry import method_class
from fedlap_app.settings import Settings
from fedlap_app.spectral.extension import EXTENDED
from fedlap_app.studies.report_files import Column, lines_of
from fedlap_app.studies.variation import spread

if TYPE_CHECKING:
    import pandas as pd

SHARE = 0.1
_PERCENT = 100.0
_COLUMNS: tuple[Column, ...] = (
    ("seed", "seed", "{:>6}"),
    ("nodes", "nodes", "{:>6}"),
    ("new", "new nodes", "{:>9}"),
    ("had", "had them", "{:>8}"),
    ("alone", "f alone", "{:>7}"),
    ("averaged", "fedavg", "{:>6}"),
    ("extended", "with row", "{:>8}"),
    ("confidence", "conf.", "{:>6}"),
    ("before", "old nodes", "{:>9}"),
    ("after", "after", "{:>6}"),
    ("changed", "changed", "{:>7}"),
)
COUNTS = ("seed", "nodes")
MEANS = tuple(key for key, _, _ in _COLUMNS if key not in COUNTS)

Say = Callable[[str], None]


@dataclass(frozen=True)
class Arrivals:
    """One seed; all but counts in percent.

    Attributes
    ----------
    seed, nodes : which one it was, and test nodes that came later.
    new : accuracy on them, of the model that was trained without them.
    had : of a model that was trained with them.
    alone : of the former's feature model alone.
    averaged : of fedavg trained without them.
    extended : share of them that got a row of the basis.
    confidence : mean confidence in their predictions, to be compared with `new`.
    before, after : accuracy on the other test nodes before and after the new ones came.
    changed : share of the other nodes whose prediction changed.
    """

    seed: int
    nodes: int
    new: float
    had: float
    alone: float
    averaged: float
    extended: float
    confidence: float
    before: float
    after: float
    changed: float


def bench_arrivals(
    settings: Settings,
    seeds: Sequence[int],
    *,
    share: float = SHARE,
    by_time: bool = False,
    say: Say = lambda text: None,
) -> dict[str, Any]:
    """Withhold nodes, train, add them and predict, for every seed.

    Parameters
    ----------
    settings
        Data and training, with a method that has a feature model and a basis.
    seeds
        Each divides a benchmark anew, and draws who comes later.
    share
        Of every organisation's nodes, at least one; by time: of all labelled nodes.
    by_time
        Withhold the nodes that came last, and test on them alone.
    say
        Is told what is done.
    """
    if not 0.0 < share < 1.0:
        raise ConfigError(f"share = {share} of the nodes: give a number between 0 and 1")
    rows = []
    for seed in seeds:
        say(f"seed {seed}")
        rows.append(one_seed(replace(settings, seed=seed), share, by_time=by_time))
    return {
        "dataset": settings.data or settings.dataset,
        "method": settings.method,
        "share": share,
        "rows": [vars(row) for row in rows],
        "mean": {key: spread([getattr(row, key) for row in rows]).row(key) for key in MEANS},
    }


def one_seed(settings: Settings, share: float, *, by_time: bool = False) -> Arrivals:
    """Measure one seed."""
    parts = past_and_now(settings, share) if by_time else _at_random(settings, share)
    earlier, later = (in_memory(each, seed=settings.seed) for each in parts)
    known = {node for part in earlier for node in part.ids.tolist()}
    run, had = (train(each, preset=settings) for each in (earlier, later))
    averaged = train(earlier, "fedavg", preset=settings)
    before, after = _predicted(run, earlier), _predicted(run, later)
    alone = np.concatenate([_features_alone(run, part) for part in later])
    new = ~after.index.isin(known) & (after["split"] == "test")
    old = before["split"] == "test"
    stayed = after.loc[before.index]

    def right(frame: "pd.DataFrame", rows: Any = slice(None)) -> float:  # noqa: ANN401 - a mask
        return _share(frame.loc[rows, "predicted"] == frame.loc[rows, "label"])

    return Arrivals(
        seed=settings.seed,
        nodes=int(new.sum()),
        new=right(after, new),
        had=right(_predicted(had, later), new),
        alone=right(after.assign(predicted=alone), new),
        averaged=right(_predicted(averaged, later), new),
        extended=_share(after.loc[new, "basis"] == EXTENDED),
        confidence=_share(after.loc[new, "confidence"]),
        before=right(before, old),
        after=right(stayed, old),
        changed=_share(stayed["predicted"] != before["predicted"]),
    )


def _at_random(settings: Settings, share: float) -> tuple[list[Subgraph], list[Subgraph]]:
    """Parts without some nodes of every organisation, and with them."""
    orgs = named_by(settings)
    draw = np.random.default_rng([settings.seed, orgs[0].num_nodes])
    counts = [max(1, round(share * part.num_nodes)) for part in orgs]
    drawn = [
        draw.choice(part.ids, count, replace=False)
        for part, count in zip(orgs, counts, strict=True)
    ]
    gone = np.concatenate(drawn)
    return [without(part, gone) for part in orgs], list(orgs)


def past_and_now(settings: Settings, share: float) -> tuple[list[Subgraph], list[Subgraph]]:
    """Parts as they were before the last labelled nodes came, and as they are.

    Parameters
    ----------
    settings
        They name organisation folders whose tables have times.
    share
        Of the labelled nodes, the last ones: test nodes.
    """
    if not 0.0 < share < 1.0:
        raise ConfigError(f"share = {share} of the nodes: give a number between 0 and 1")
    if not settings.data:
        raise ConfigError("no benchmark here has times: name organisation folders with --data")
    orgs = named_by(settings)
    dated = [read_dated(Path(str(at)), part) for at, part in zip(orgs.folders, orgs, strict=True)]
    rest = (1.0 - share) / (settings.train_ratio + settings.val_ratio)
    found = split_by_time(dated, rest * settings.train_ratio, rest * settings.val_ratio)
    return found.past, found.now


def _share(values: "pd.Series") -> float:
    return _PERCENT * float(values.mean())


def _predicted(run: Run, orgs: Organisations) -> "pd.DataFrame":
    """Predictions for the nodes of all, by id."""
    import pandas as pd

    frames = [run.predict(part.name, data=part) for part in orgs]
    return pd.concat(frames).set_index("id")


def accuracy_later(run: Run, later: Organisations) -> dict[str, tuple[int, int]]:
    """Of every organisation's test nodes that came after training: right ones, and all.

    Parameters
    ----------
    run
        What was trained before.
    later
        The same organisations with the nodes that came since.
    """
    known = {node for part in run.organisations for node in part.ids.tolist()}
    together = None
    if method_class(run.settings.method).pooled:
        whole = join(list(later))
        together = dict(zip(whole.ids, predict_part(whole, run.model_file).classes, strict=True))
    found = {}
    for part in later:
        new = np.array([node not in known for node in part.ids.tolist()]) & part.test_mask
        if together is None:
            names = run.predict(part.name, data=part)["predicted"].to_numpy()
            right = names == np.array(part.classes, dtype=object)[part.labels]
        else:
            right = np.array([together[node] for node in part.ids]) == part.labels
        found[part.name] = int((right & new).sum()), int(new.sum())
    return found


def _features_alone(run: Run, part: Subgraph) -> NDArray[np.object_]:
    """What the feature model says without the structure."""
    import torch
    from torch import nn

    from fedlap_app.models.portfolio import Portfolio

    network = getattr(run.model, "features", None)
    if not isinstance(network, nn.Module):
        raise ConfigError(
            f"method = '{run.settings.method}' has no feature model beside a structure model: "
            "try method = 'fedlap+'"
        )
    model = run.kept_by(part).model
    encoding = run.encoding_of(part, model) or encoding_of(part, model)
    read = part if encoding is None else encoding.apply(part)
    inputs = method_class("fedavg").of(run.settings).inputs(read, {})
    whole = run.model.eval()
    with torch.inference_mode():
        alone = whole.without_structure if isinstance(whole, Portfolio) else network.eval()
        found = alone(inputs).argmax(dim=1).numpy()
    predicted: NDArray[np.object_] = np.array(part.classes, dtype=object)[found]
    return predicted


def table_of(report: dict[str, Any]) -> str:
    """The report as text."""
    rows = report["rows"]
    lines = lines_of(_COLUMNS, rows, _cell)
    means = {key: each[f"{key}_mean"] for key, each in report["mean"].items()}
    lines += lines_of(
        [(key, "", form) for key, _, form in _COLUMNS],
        [{"seed": "mean", "nodes": "", **means}],
        _cell,
    )[1:]
    head = (
        f"{report['dataset']}, {report['method']}: {_PERCENT * report['share']:.0f} % of the nodes "
        "came after training; test accuracy in percent"
    )
    return "\n".join([head, *lines])


def _cell(key: str, value: Any) -> str:  # noqa: ANN401 - of any column
    """A cell; without test nodes there is no accuracy."""
    if value is None or value != value:
        return "-"
    return str(value) if key in COUNTS else f"{value:.2f}"
