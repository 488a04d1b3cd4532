"""Settings and versions of runs as tables."""

from collections.abc import Sequence

from fedlap_app.reports.elements import Table
from fedlap_app.reports.run_facts import PLACES, RunFacts


def settings_table(runs: Sequence[RunFacts], names: Sequence[str] = ("value",)) -> Table:
    """Every setting; of several runs those that differ come first."""
    found = [run.settings.to_config() for run in runs]
    keys = [key for key in found[0] if key not in PLACES]
    differ = [key for key in keys if len({str(each.get(key)) for each in found}) > 1]
    rows = [
        (key, *(_shown(each.get(key)) for each in found))
        for key in [*differ, *(key for key in keys if key not in differ)]
    ]
    return Table(("setting", *names), rows, "All settings", folded=True)


def versions_table(runs: Sequence[RunFacts], names: Sequence[str] = ("version",)) -> Table:
    """Versions of what decides a result."""
    packages = dict.fromkeys(package for run in runs for package in run.versions)
    rows = [(each, *(run.versions.get(each, "") for run in runs)) for each in packages]
    return Table(("package", *names), rows, "Versions", folded=True)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if value != "" else "(empty)"
