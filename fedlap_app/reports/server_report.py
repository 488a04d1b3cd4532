"""The server's report of one run, or of several beside each other."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from fedlap_app.methods.scores import SPLITS
from fedlap_app.reports import verdicts
from fedlap_app.reports.charts import Axis, Chart, bars, lines
from fedlap_app.reports.comparison import comparison_section
from fedlap_app.reports.curves import SPLIT_NAMES, curves, position, score
from fedlap_app.reports.elements import Figure, Section, Table, Words
from fedlap_app.reports.exposure import (
    DEGREES,
    USUAL_DEGREE,
    Target,
    advice,
    exposure_charts,
    verdict,
)
from fedlap_app.reports.page import Page
from fedlap_app.reports.planned import plan_of
from fedlap_app.reports.run_facts import RunFacts
from fedlap_app.reports.settings_table import settings_table, versions_table
from fedlap_app.reports.verdicts import clock

_MB = 1e6
# What the server calls the sealed sums before training, in words.
_PROGRAMS = {
    "krylov": "spectral basis",
    "feature-moments": "feature scales",
    "neighbour-sums": "neighbour sums",
    "row-names": "row names",
    "training": "keys of training",
}
NOTICE = (
    "The server's report: what the server knows, published totals and public sizes; nothing of a "
    "single organisation's nodes, labels or scores."
)


def server_page(runs: Sequence[RunFacts]) -> Page:
    """The page."""
    return _one(runs[0]) if len(runs) == 1 else _several(runs)


def _one(run: RunFacts) -> Page:
    plan = plan_of(run)
    sections = [Section("Learning", [*_learning(run), _stages(run)])]
    if run.comparison:
        sections.append(comparison_section(run.comparison))
    sections += [
        Section("Price", _price(run)),
        Section("What others can learn", _exposure(run)),
        Section("Settings and versions", [settings_table([run]), versions_table([run])]),
    ]
    title = f"{run.settings.method} on {source(run)}"
    return Page(title, about(run), verdicts.four(run, plan), sections, NOTICE, [run.name])


def _several(runs: Sequence[RunFacts]) -> Page:
    names = labels(runs)
    rows = [
        {**row, "run": name, "at": at}
        for name, run in zip(names, runs, strict=True)
        for at, row in enumerate(run.rounds, 1)
    ]
    across = Axis("at", "round", "d")
    charts: list[Chart | Table | Words] = [
        lines(
            f"{SPLIT_NAMES[split].capitalize()} accuracy per round",
            _best_of(names, runs, split),
            rows,
            across,
            Axis(f"{split}_accuracy", "accuracy", ".0%"),
            "run",
        )
        for split in ("val", "test")
    ]
    charts.append(
        lines("Validation loss per round", "Lower is better.", rows, across,
              Axis("val_loss", "loss"), "run")
    )  # fmt: skip
    table = Table(
        ("run", "method", "data", "test", "validation", "rounds", "MB sent by each", "seconds",
         "vectors"),
        [_line(name, run) for name, run in zip(names, runs, strict=True)],
        "Runs side by side",
    )  # fmt: skip
    compared = [comparison_section(run.comparison) for run in runs if run.comparison]
    sections = [
        Section("Runs", [table]),
        Section("Learning", charts),
        *compared,
        Section("Price", [_bytes_of_runs(names, runs)]),
        Section("What others can learn", [Words(_verdicts(names, runs))]),
        Section(
            "Settings and versions", [settings_table(runs, names), versions_table(runs, names)]
        ),
    ]
    about = f"{len(runs)} runs: {', '.join(dict.fromkeys(source(run) for run in runs))}"
    figures = _best(names, runs)
    return Page("Runs compared", about, figures, sections, NOTICE, [run.name for run in runs])


def source(run: RunFacts) -> str:
    """What was trained on, without the path of a folder."""
    data = run.settings.data
    return data.rstrip("/").rsplit("/", 1)[-1] if data else run.settings.dataset


def about(run: RunFacts) -> str:
    """A line below the title."""
    count = len(run.rounds)
    at = position(run.rounds, run.best_stage, run.best_round)
    kept = "" if at is None else f", the model of round {at} is kept"
    word = "round" if count == 1 else "rounds"
    return f"{run.count} organisations, {count} {word}{kept}, seed {run.settings.seed}"


def labels(runs: Sequence[RunFacts]) -> list[str]:
    """A short name for each run that tells it from the others."""
    short = [f"{run.settings.method}, {source(run)}, seed {run.settings.seed}" for run in runs]
    if len(set(short)) == len(short):
        return short
    return [f"{at}: {name}" for at, name in enumerate(short, 1)]


def _learning(run: RunFacts) -> list[Chart | Table | Words]:
    """Scores and losses of every round; stages follow one another."""
    says = (
        "In a deployment only the organisations know the rounds of a sealed training."
        if run.settings.sealed
        else ""
    )
    charts = curves(run.rounds, position(run.rounds, run.best_stage, run.best_round), says)
    if not charts:
        return [Words(["Scores of single rounds stay with the organisations and their reports."])]
    return [*charts]


def _stages(run: RunFacts) -> Table:
    rows = []
    for at, stage in enumerate(run.stages):
        best = stage.get("best_stage"), stage.get("best_round")
        where = position(run.rounds, *best)
        loss = run.rounds[where - 1].get("val_loss") if where else None
        accuracy = (score(stage["accuracy"][split], "accuracy") for split in SPLITS)
        kept = "" if best[1] is None else f"{best[1]} of stage {best[0]}"
        lost = "" if loss is None else score(loss, "loss")
        rows.append((at, stage.get("rounds", ""), *accuracy, lost, kept))
    header = ("stage", "rounds", *(SPLIT_NAMES[split] for split in SPLITS), "validation loss",
              "best round so far")  # fmt: skip
    return Table(header, rows, "Accuracy after every stage of self-training (stage 0: without)")


def _price(run: RunFacts) -> list[Chart | Table | Words]:
    pieces: list[Chart | Table | Words] = []
    rows = list(chain.from_iterable(_bytes(run, name) for name in run.up))
    if rows:
        total = sum(run.up.values()) / _MB
        pieces.append(
            bars("Megabytes of each organisation", f"{total:.1f} MB sent by all together.", rows,
                 Axis("mb", "MB", zero=True), Axis("organisation", "", kind="nominal"), "what")
        )  # fmt: skip
    spent = [{"phase": name, "seconds": value} for name, value in _seconds(run).items()]
    told = ", ".join(f"{name} {clock(value)}" for name, value in _seconds(run).items())
    pieces.append(
        bars("Seconds of each phase", f"{told}; {clock(sum(run.seconds.values()))} in all.", spent,
             Axis("seconds", "seconds", zero=True), Axis("phase", "", kind="nominal"), "phase")
    )  # fmt: skip
    pieces += _phases(run)
    plan = plan_of(run)
    if plan is not None:
        rows_of_plan = [
            ("round trips, the handshake included", plan.trips, plan.measured_trips),
            ("MB sent, mean", f"{plan.up / _MB:.3f}", f"{plan.measured_up / _MB:.3f}"),
            ("MB received, mean", f"{plan.down / _MB:.3f}", f"{plan.measured_down / _MB:.3f}"),
        ]
        pieces += [
            Table(("spectral basis", "plan", "measured"), rows_of_plan,
                  "The spectral basis against its plan for these public sizes"),
            Words(["Seconds depend on the machines: `fedlap plan` estimates them for this one."]),
        ]  # fmt: skip
    elif run.offline.get("reused"):
        pieces.append(
            Words(["A finished basis was reused: nothing was exchanged for it in this run."])
        )
    return pieces


def _phases(run: RunFacts) -> list[Table]:
    """What sealed sums before training took, by what they are for."""
    rows = [
        (_PROGRAMS.get(name, name), phase.get("round_trips", 0) + phase.get("handshake", 0),
         *(f"{_mean(phase.get(way, {})):.2f}" for way in ("up", "down")),
         f"{phase.get('seconds', 0.0):.1f}")
        for name, phase in run.phases.items()
    ]  # fmt: skip
    header = ("before training", "round trips", "MB sent by each", "MB received", "seconds")
    return [Table(header, rows, "Sealed sums before training")] if rows else []


def _mean(found: Mapping[str, int]) -> float:
    """Megabytes of an organisation."""
    return sum(found.values()) / max(len(found), 1) / _MB


def _bytes(run: RunFacts, name: str) -> list[dict[str, Any]]:
    before_up, before_down = run.before("up", name), run.before("down", name)
    split = {
        "before training, sent": before_up,
        "before training, received": before_down,
        "training, sent": run.up.get(name, 0) - before_up,
        "training, received": run.down.get(name, 0) - before_down,
    }
    return [{"organisation": name, "what": what, "mb": n / _MB} for what, n in split.items()]


def _seconds(run: RunFacts) -> Mapping[str, float]:
    """Seconds by phase; those of sealed sums are apart from training where both are one lap."""
    found = dict(run.seconds)
    sums = {_PROGRAMS.get(name, name): phase.get("seconds", 0.0)
            for name, phase in run.phases.items()}  # fmt: skip
    if sum(sums.values()) and "train" in found:
        rest = max(found.pop("train") - sum(sums.values()), 0.0)
        found = {"start": found.pop("gather", 0.0), **sums, **found, "training": rest}
    return found


def _exposure(run: RunFacts) -> list[Chart | Table | Words]:
    vectors, worst = run.vectors, verdicts.most_exposed(run)
    saw = Words([_saw(run)])
    if not vectors:
        return [Words(["No sums over edges were exchanged in this run."], strong=True), saw]
    if worst is None:
        return [Words([f"{vectors} vectors were exchanged; the sizes of this run are not known."]),
                saw]  # fmt: skip
    slots = run.offline["slots"]
    targets = [
        Target(f"{degree} neighbours a node", slots[worst.name],
               Target.assumed(worst.name, slots[worst.name], degree).density, "")
        for degree in DEGREES
    ]  # fmt: skip
    sizes = Table(
        ("organisation", "slots", f"AUC at {USUAL_DEGREE} neighbours", "vectors within the bound"),
        [
            (name, size, f"{Target.assumed(name, size, USUAL_DEGREE).auc(vectors):.3f}",
             Target.assumed(name, size, USUAL_DEGREE).bound)
            for name, size in slots.items() if size > 1
        ],
        "By the public size of each organisation (own nodes, rounded up)",
    )  # fmt: skip
    return [
        Words([f"{verdict(worst, vectors)}."], strong=True),
        Words([advice(worst, vectors),
               "The server does not know how many edges there are, so each curve assumes a number "
               f"of neighbours inside {worst.name}; an organisation's own report has its true "
               "density."]),
        *exposure_charts(targets, vectors),
        sizes,
        saw,
    ]  # fmt: skip


def _saw(run: RunFacts) -> str:
    sealed = run.settings.backend != "plain"
    contents = "nothing of their contents" if sealed else "their contents, as the back end is plain"
    sums = f"of sealed sums {contents}; " if run.phases else ""
    training = (
        "no model, no update and no score of an organisation"
        if run.settings.sealed
        else "models, updates and scores of every organisation, as training is plain"
    )
    return (
        f"What the server saw: {sums}of training {training}; and who takes part, sizes and times "
        "of all messages. docs/security.md has all of it."
    )


def _line(name: str, run: RunFacts) -> tuple[object, ...]:
    return (
        name, run.settings.method, source(run), score(run.test, "accuracy"),
        score(run.validation, "accuracy"), len(run.rounds), f"{_mean(run.up):.2f}",
        f"{sum(run.seconds.values()):.1f}", run.vectors,
    )  # fmt: skip


def _bytes_of_runs(names: Sequence[str], runs: Sequence[RunFacts]) -> Chart:
    rows = [
        {"run": name, "what": what, "mb": _mean(found)}
        for name, run in zip(names, runs, strict=True)
        for what, found in (("sent", run.up), ("received", run.down))
    ]
    return bars("Megabytes of an organisation, mean", "By run.", rows, Axis("mb", "MB", zero=True),
                Axis("run", "", kind="nominal"), "what")  # fmt: skip


def _best_of(names: Sequence[str], runs: Sequence[RunFacts], split: str) -> str:
    found = [
        f"{name} {score(run.scores.get('accuracy', {}).get(split), 'accuracy')}"
        for name, run in zip(names, runs, strict=True)
    ]
    return f"The models that are kept: {'; '.join(found)}."


def _verdicts(names: Sequence[str], runs: Sequence[RunFacts]) -> list[str]:
    return [
        f"{name}: {verdicts.learned(run).value}, {verdicts.learned(run).verdict}."
        for name, run in zip(names, runs, strict=True)
    ]


def _best(names: Sequence[str], runs: Sequence[RunFacts]) -> list[Figure]:
    """The first screen: the run that validates best, in its four figures."""

    def judged(run: RunFacts) -> float:
        return -1.0 if run.validation is None else run.validation

    at = max(range(len(runs)), key=lambda each: judged(runs[each]))
    run, others = runs[at], [each for number, each in enumerate(runs) if number != at]
    first, _, paid, seen = verdicts.four(run, plan_of(run))
    tests = [each.test for each in others if each.test is not None]
    gain = (
        "not known"
        if run.test is None or not tests
        else (f"{100 * (run.test - max(tests)):+.2f} points of test score")
    )
    says = f"{names[at]} validates best; this is its test score beside the best of the others"
    return [first, Figure("Against what?", gain, says), paid, seen]
