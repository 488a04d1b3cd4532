"""Methods side by side, as `fedlap compare` found them."""

from collections.abc import Mapping
from typing import Any

from fedlap_app.methods.registry import ALONE, WHOLE_GRAPH
from fedlap_app.reports.charts import Axis, Chart, bars
from fedlap_app.reports.elements import FAIR, GOOD, POOR, Figure, Section, Table, Words
from fedlap_app.reports.exposure import ATTACKER, QUESTION
from fedlap_app.reports.page import Page

_MB = 1e6


def comparison_section(report: Mapping[str, Any]) -> Section:
    """A bar with its interval, price and exposure of every method."""
    rows = [row for row in report["rows"] if row.get("score_mean") is not None]
    drawn = [
        {
            "method": row["method"],
            "score": row["score_mean"],
            "low": row["score_mean"] if row.get("score_low") is None else row["score_low"],
            "high": row["score_mean"] if row.get("score_high") is None else row["score_high"],
        }
        for row in rows
    ]
    told = ", ".join(f"{row['method']} {row['score_mean']:.2f} %" for row in rows)
    seeds = (
        "One seed: random variation is not known."
        if report.get("one_seed")
        else ("Lines are 95 % intervals over the seeds.")
    )
    pieces: list[Chart | Table | Words] = [
        bars(f"Test {report.get('score', 'score')} of every method", f"{told}. {seeds}", drawn,
             Axis("score", "percent", zero=True), Axis("method", "", kind="nominal"), "method",
             interval=("low", "high")),
        Table(
            ("method", "test", "95 % interval", "MB sent by each", "MB received", "seconds",
             "vectors", "worst-case AUC"),
            [_price(row) for row in rows],
            "Score and price of every method",
        ),
    ]  # fmt: skip
    gains = [gain for gain in report.get("differences", []) if gain.get("gain_mean") is not None]
    if gains:
        pieces.append(
            Table(
                ("difference", "points", "95 % interval"),
                [(f"{g['method']} minus {g['minus']}", f"{g['gain_mean']:+.2f}",
                  _interval(g.get("gain_low"), g.get("gain_high"), "+.2f")) for g in gains],
                "Paired differences on the same splits",
            )
        )  # fmt: skip
    return Section("Methods side by side", pieces)


def comparison_page(report: Mapping[str, Any], name: str) -> Page:
    """A comparison that was made in one place, with every organisation."""
    sections = [comparison_section(report)]
    found = report.get("organisations", [])
    if found:
        rows = [
            {"organisation": row["organisation"], "method": method, "score": mean}
            for row in found
            for method, mean in row["means"].items()
        ]
        chart = bars(
            "Mean test score of every organisation", "By method.", rows,
            Axis("score", "percent", zero=True), Axis("organisation", "", kind="nominal"), "method",
        )  # fmt: skip
        sections.append(Section("Organisations", [chart]))
    clients = report.get("clients", "")
    about = f"{clients} organisations, partition {report.get('partition', '')}"
    title = f"Methods compared on {str(report['dataset']).rstrip('/').rsplit('/', 1)[-1]}"
    notice = "A comparison that was made in one place, by whoever holds all the data."
    return Page(title, about, _figures(report), sections, notice, [name])


def _figures(report: Mapping[str, Any]) -> list[Figure]:
    rows = {row["method"]: row for row in report["rows"] if row.get("score_mean") is not None}
    shared = {name: row for name, row in rows.items() if name not in (ALONE, WHOLE_GRAPH)} or rows
    best = max(shared.values(), key=lambda row: row["score_mean"])
    told = ", ".join(f"{name} {row['score_mean']:.2f} %" for name, row in rows.items())
    figures = [Figure("How good is the best?", f"{best['score_mean']:.2f} %",
                      f"{best['method']}; all: {told}")]  # fmt: skip
    gain = next((g for g in report.get("differences", ()) if g.get("gain_mean") is not None
                 and {g["method"], g["minus"]} == {best["method"], ALONE}), None)  # fmt: skip
    if gain is None:
        figures.append(Figure("Against what?", "not compared", "training alone is not among them"))
    else:
        sign = 1 if gain["method"] == best["method"] else -1
        ends = [sign * each for each in (gain.get("gain_low"), gain.get("gain_high"))
                if each is not None]  # fmt: skip
        points = sign * gain["gain_mean"]
        certain = bool(ends) and min(ends) > 0
        tone = GOOD if certain else FAIR if points > 0 else POOR
        says = "joining helps" if points > 0 else "joining does not help"
        says += "; the interval over seeds leaves out zero" if certain else "; it may be chance"
        figures.append(Figure("Against what?", f"{points:+.2f} points over training alone", says,
                              tone))  # fmt: skip
    sent = best.get("bytes_up_per_client", 0) / _MB
    figures.append(Figure("At what price?", f"{sent:.2f} MB sent by each",
                          f"{best.get('seconds', 0):.1f} s for a training"))  # fmt: skip
    auc = best.get("worst_case_auc")
    if auc is None:
        figures.append(Figure(QUESTION, "0 vectors", f"{best['method']} exchanges none", GOOD))
    else:
        tone = GOOD if auc <= 0.6 else FAIR if auc <= 0.75 else POOR
        says = f"{ATTACKER} on the most exposed organisation after {best['vectors']} vectors"
        figures.append(Figure(QUESTION, f"AUC {auc:.3f}", says, tone))
    return figures


def _price(row: Mapping[str, Any]) -> tuple[object, ...]:
    auc = row.get("worst_case_auc")
    return (
        row["method"], f"{row['score_mean']:.2f} %",
        _interval(row.get("score_low"), row.get("score_high"), ".2f"),
        f"{row.get('bytes_up_per_client', 0) / _MB:.2f}",
        f"{row.get('bytes_down_per_client', 0) / _MB:.2f}", f"{row.get('seconds', 0):.1f}",
        row.get("vectors", 0), "none" if auc is None else f"{auc:.3f}",
    )  # fmt: skip


def _interval(low: float | None, high: float | None, form: str) -> str:
    return "" if low is None or high is None else f"{low:{form}} to {high:{form}}"
