"""Write reports: of run folders, of comparisons, and an organisation's own."""

import os
from collections.abc import Sequence
from pathlib import Path

from fedlap_app.api.run import Run, open_run
from fedlap_app.api.stores import roots_of
from fedlap_app.errors import ConfigError, DataError
from fedlap_app.methods.registry import method_class
from fedlap_app.privacy.policy import SIMULATED, Policy, read_policy
from fedlap_app.reports import verdicts
from fedlap_app.reports.comparison import comparison_page
from fedlap_app.reports.member_facts import MemberFacts, of_folder, of_part
from fedlap_app.reports.member_report import member_page
from fedlap_app.reports.planned import plan_of
from fedlap_app.reports.run_facts import RunFacts, read_comparison
from fedlap_app.reports.server_report import server_page
from fedlap_app.store import names
from fedlap_app.store.files import write_private, write_shared

FILE = "report.html"
Source = Run | str | os.PathLike[str]


def report(
    runs: Source | Sequence[Source],
    path: str | os.PathLike[str] | None = None,
    *,
    organisation: str | None = None,
) -> Path:
    """Write one page, which needs no network, on what came of one run or of several.

    It holds what the server may know: totals, prices, public sizes, settings. With `organisation`
    it is that organisation's own report, with its scores, its nodes in the spectral plane and its
    predictions, for its eyes only.

    Parameters
    ----------
    runs
        A run, or its folder; several are compared. A folder of `fedlap compare` gives the methods.
    path
        File to write (default: report.html in the folder of the first run; of an organisation,
        report-NAME.html there).
    organisation
        Name of an organisation whose data and store are on this machine.

    Returns
    -------
    Path
        The file.
    """
    given = [runs] if isinstance(runs, Run | str | os.PathLike) else list(runs)
    if not given:
        raise ConfigError("there is no run to report on: name a run folder")
    folders = [each.folder if isinstance(each, Run) else _folder(each) for each in given]
    if organisation is not None:
        return _own(given, organisation, path)
    target = Path(path).expanduser() if path else folders[0] / FILE
    if len(folders) == 1 and not (folders[0] / names.CONFIG).is_file():
        found = read_comparison(folders[0])
        if not found:
            raise DataError(
                f"{folders[0]} is no run folder: name one that a run or `fedlap compare` has "
                "written"
            )
        page = comparison_page(found, folders[0].name)
    else:
        page = server_page([RunFacts.read(folder) for folder in folders])
    write_shared(target, page.to_html().encode())
    return target


def report_organisation(
    folder: str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    run: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] | None = None,
) -> Path:
    """Write an organisation's own report into its folder; only its owner may read the file."""
    place = _folder(folder)
    facts = of_folder(place, _folder(run) if run else None, Path(store) if store else None)
    return _write_own(facts, Path(path).expanduser() if path else place / FILE)


def verdict_lines(folder: Path) -> list[str]:
    """The first screen of a run's report for a terminal."""
    run = RunFacts.read(folder)
    return verdicts.lines(verdicts.four(run, plan_of(run)))


def _own(given: Sequence[Source], name: str, path: str | os.PathLike[str] | None) -> Path:
    if len(given) != 1:
        raise ConfigError("an organisation's report is about one run: name one")
    run = given[0] if isinstance(given[0], Run) else open_run(given[0])
    if method_class(run.settings.method).pooled:
        raise ConfigError(
            f"with the method {run.settings.method} all data were in one place: no organisation "
            "has a report of its own"
        )
    part = run.organisations[name]
    stores = [root / part.name for root in roots_of(run.settings, run.folder)]
    facts = of_part(part, run.kept_by(part), stores, policy_of(run, part.name))
    target = Path(path).expanduser() if path else run.folder / f"report-{part.name}.html"
    return _write_own(facts, target)


def policy_of(run: Run, name: str) -> Policy:
    """What an organisation of a simulation allows: the folder that it was read from says it."""
    folder = run.organisations.folders[run.organisations.names.index(name)]
    return read_policy(folder, SIMULATED) if folder else SIMULATED


def _write_own(facts: MemberFacts, target: Path) -> Path:
    write_private(target, member_page(facts).to_html().encode())
    return target


def _folder(given: str | os.PathLike[str]) -> Path:
    folder = Path(given).expanduser().absolute()
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder: name a run folder or an organisation's folder")
    return folder
