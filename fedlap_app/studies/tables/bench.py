"""One table or figure from its first cell to its files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fedlap_app.studies.tables.cells import cells_of, measure
from fedlap_app.studies.tables.charts import draw_all
from fedlap_app.studies.tables.experiments import Experiment
from fedlap_app.studies.tables.recipes import systems
from fedlap_app.studies.tables.report import rows_of
from fedlap_app.studies.tables.written import write_all


def bench_table(
    experiment: Experiment,
    *,
    out: Path,
    protocol: str,
    seeds: Sequence[int],
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    jobs: int = 1,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Measure a table, write its files, return its report.

    Parameters
    ----------
    experiment
        Which table, with its columns.
    out
        Folder of the files; finished cells lie in `cells` below it and are not measured again.
    protocol
        How the data is split and which round counts.
    seeds
        Of every cell.
    datasets, methods
        What is shown (default: what the experiment says).
    jobs
        Processes that train at the same time.
    say
        Is told of every cell.
    """
    shown = list(datasets) or list(experiment.datasets)
    chosen = systems(list(methods) or experiment.systems)
    cells = cells_of(experiment, protocol, shown, chosen, seeds)
    found = measure(cells, out / "cells", jobs, say)
    report = {
        "experiment": experiment.name,
        "title": experiment.title,
        "protocol": protocol,
        "seeds": len(seeds),
        "datasets": shown,
        "rows": rows_of(experiment, cells, found),
    }
    write_all(report, out)
    draw_all(report, out)
    return report
