"""The four questions of the first screen, answered from what the server may know."""

from collections.abc import Mapping, Sequence
from typing import Any

from fedlap_app.methods.registry import ALONE
from fedlap_app.reports.elements import FAIR, GOOD, NEUTRAL, POOR, Figure
from fedlap_app.reports.exposure import USUAL_DEGREE, Target, exposure_figure
from fedlap_app.reports.planned import Planned
from fedlap_app.reports.run_facts import RunFacts

_MB = 1e6
_CLOSE, _FAR = 2.0, 5.0  # points between validation and test


def four(run: RunFacts, plan: Planned | None = None) -> list[Figure]:
    """How good, against what, at what price, what others can learn."""
    return [how_good(run), against_what(run), price(run, plan), learned(run)]


def lines(figures: Sequence[Figure]) -> list[str]:
    """The same for a terminal."""
    width = max(len(figure.question) for figure in figures)
    return [f"  {figure.question:<{width}}  {figure.value}: {figure.verdict}" for figure in figures]


def how_good(run: RunFacts) -> Figure:
    """The score on test nodes, and whether validation promised it."""
    question = "How good is the model?"
    if run.test is None:
        return Figure(question, "not known", "no score was published, or there are no test nodes")
    shown = f"{percent(run.test)} test {run.metric}"
    if run.best_round is None and run.count > 1:
        says = "each organisation keeps the round that its own nodes chose; which one stays there"
        return Figure(question, shown, says)
    if run.validation is None:
        return Figure(question, shown, "no validation nodes chose the round: it is the last one")
    apart = 100 * (run.validation - run.test)
    promised = f"validation said {percent(run.validation)}"
    if apart > _FAR:
        return Figure(question, shown, f"{promised}: expect the lower one on new nodes", POOR)
    if apart > _CLOSE:
        return Figure(question, shown, f"{promised}: somewhat less on test nodes", FAIR)
    return Figure(question, shown, f"{promised}, and the test agrees", GOOD)


def against_what(run: RunFacts) -> Figure:
    """The gain over training alone, or the best other method that was compared."""
    question = "Against what?"
    rows = {row["method"]: row.get("score_mean") for row in run.comparison.get("rows", ())}
    own = rows.get(run.settings.method)
    others = {m: s for m, s in rows.items() if m != run.settings.method and s is not None}
    if own is None or not others:
        says = "no other method was trained beside it: `fedlap run --compare` or `fedlap compare`"
        return Figure(question, "not compared", says)
    name = ALONE if ALONE in others else max(others, key=lambda each: others[each])
    gain = own - others[name]
    told = ", ".join(f"{method} {score:.2f} %" for method, score in others.items())
    seeds = " (one seed)" if run.comparison.get("one_seed") else ""
    worth = "joining helps" if gain > 0 else "joining does not help"
    if name != ALONE:
        worth = "it is ahead" if gain > 0 else "it is behind"
    tone = GOOD if gain > 0 else POOR
    best = max(others, key=lambda each: others[each])
    if gain > 0 and others[best] > own:
        worth, tone = f"{worth}, but {best} is ahead", FAIR
    return Figure(question, f"{gain:+.2f} points over {name}", f"{worth}{seeds}: {told}", tone)


def price(run: RunFacts, plan: Planned | None) -> Figure:
    """Bytes and seconds, against the plan where there is one."""
    question = "At what price?"
    up = sum(run.up.values()) / max(len(run.up), 1)
    seconds = sum(run.seconds.values())
    value = f"{up / _MB:.2f} MB sent by each"
    took = f"{clock(seconds)} in all"
    if not run.up:
        return Figure(question, clock(seconds), "nothing was exchanged", NEUTRAL)
    if plan is None or run.offline.get("reused"):
        reused = "; the basis was reused" if run.offline.get("reused") else ""
        return Figure(question, value, took + reused, NEUTRAL)
    ratio = plan.measured_up / plan.up if plan.up else 1.0
    says = (
        f"{took}; before training {plan.measured_up / _MB:.2f} MB where the plan says "
        f"{plan.up / _MB:.2f}, {plan.measured_trips} round trips of {plan.trips}"
    )
    tone = GOOD if ratio <= 1.05 and plan.measured_trips <= plan.trips else FAIR
    return Figure(question, value, says, tone)


def learned(run: RunFacts) -> Figure:
    """What the worst case learns, by the sizes that are public."""
    return exposure_figure(most_exposed(run), run.vectors)


def most_exposed(run: RunFacts, degree: float = USUAL_DEGREE) -> Target | None:
    """The organisation whose edges are easiest to find, as far as public sizes tell."""
    slots: Mapping[str, Any] = run.offline.get("slots", {})
    targets = [Target.assumed(name, size, degree) for name, size in slots.items() if size > 1]
    return max(targets, key=lambda each: each.auc(max(run.vectors, 1)), default=None)


def percent(share: float) -> str:
    """A share as people read it."""
    return f"{100 * share:.2f} %"


def clock(seconds: float) -> str:
    """A duration."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
