"""An audit as text for a person: every number below the attacker that it is about."""

from collections.abc import Mapping
from typing import Any

_COLUMNS = (
    ("vectors", "M", 5, "d"),
    ("alpha_mean", "alpha", 9, ".3g"),
    ("kl", "KL", 9, ".3g"),
    ("auc", "AUC", 7, ".4f"),
    ("auc_both_rows", "AUC 2 rows", 10, ".4f"),
    ("tpr_at_fpr_0.01", "TPR@1e-2", 8, ".4f"),
    ("tpr_at_fpr_0.001", "TPR@1e-3", 8, ".4f"),
    ("best_f1", "F1", 7, ".4f"),
    ("best_p_plus_r", "P+R", 7, ".4f"),
)
"""Key of a row of the table, title, width and form."""


def text_of(report: Mapping[str, Any]) -> str:
    """The whole report."""
    parts = (
        f"{report['partition']} partition, {report['clients']} organisations, "
        if "clients" in report
        else ""
    )
    vectors = f"{report['operator']}, {report['vectors']} vectors exchanged"
    exchanged = (
        vectors if report["vectors"] else f"{report['method']['name']}, no vectors exchanged"
    )
    lines = [f"{report['data']}, {parts}{exchanged}, {report['backend']}"]
    if report["vectors"]:
        lines += [f"n and p: {report['reading']}", "", *_worst_case(report)]
        if "whole_graph" in report:
            lines += ["", *_whole(report["whole_graph"])]
        lines += ["", *_solvable(report)]
    if report["program"]:
        lines += ["", *_program(report["program"])]
    lines += ["", *_method(report)]
    if report["server"]:
        lines += ["", *_server(report["server"])]
    lines += [f"figure: {path}" for path in report.get("figures", [])]
    return "\n".join(lines)


def _worst_case(report: Mapping[str, Any]) -> list[str]:
    exact = "exact" if report["alpha_exact"] else "the paper's approximation"
    most = "most exposed " if len(report["organisations"]) > 1 else ""
    lines = [
        f"Attacker: {report['attacker']}.",
        f"  {most}target  {report['target']}: {report['nodes']} nodes, "
        f"density {report['density']:.3g}, rank {report['rank']}",
        f"  alpha, {exact}  mean {report['alpha_mean']:.4g}, 99th percentile "
        f"{report['alpha_p99']:.4g}, largest {report['alpha_largest']:.4g}",
        f"  KL  {report['kl']:.4g} nats",
        f"  AUC  {report['auc']:.4f}" + _exact(report, "auc_exact_alpha"),
        f"  TPR  {report['tpr_at_fpr_0.01']:.4f} at FPR 1e-2, "
        f"{report['tpr_at_fpr_0.001']:.4f} at FPR 1e-3",
        f"  best F1  {report['best_f1']:.4f};  best P + R (recall 0.05 to 0.95)  "
        f"{report['best_p_plus_r']:.4f}" + _exact(report, "best_p_plus_r_exact_alpha"),
        f"  largest M with P + R at most 1  {report['largest_vectors_p_plus_r']}",
        f"  largest M with AUC at most {report['auc_bound']:g}  {report['largest_vectors_auc']}",
        f"Attacker: {report['attacker_both_rows']}.",
        f"  AUC  {report['auc_both_rows']:.4f}",
        "",
        "Over the vectors exchanged, M (the worst case; `2 rows`: with both rows of an edge):",
        " ".join(f"{title:>{width}}" for _, title, width, _ in _COLUMNS),
    ]
    for row in report["table"]:
        lines.append(" ".join(f"{row[key]:>{width}{form}}" for key, _, width, form in _COLUMNS))
    return lines


def _exact(report: Mapping[str, Any], key: str) -> str:
    exact = report[key]
    return "" if exact is None else f" by the mean alpha, {exact:.4f} over the exact ones"


def _whole(whole: Mapping[str, Any]) -> list[str]:
    return [
        f"The same attacker with the whole graph as its target ({whole['nodes']} nodes, density "
        f"{whole['density']:.3g}):",
        f"  AUC  {whole['auc']:.4f};  KL  {whole['kl']:.4g};  largest M with P + R at most 1  "
        f"{whole['largest_vectors_p_plus_r']}, with AUC at most {whole['auc_bound']:g}  "
        f"{whole['largest_vectors_auc']}",
    ]


def _solvable(report: Mapping[str, Any]) -> list[str]:
    solved = report["solvable"]
    lines = [
        f"Attacker: {solved['attacker']}. Entries of foreign neighbours that it computes exactly:"
    ]
    for each in solved["clients"]:
        lines.append(
            f"  {each['client']:<16} {each['solved']:>6} of {each['foreign']:<6} "
            f"{100 * each['share']:6.1f} %"
        )
    if len(solved["clients"]) > 1:
        lines.append(f"  {'all':<16} {'':>16} {100 * solved['share']:6.1f} %")
    bounds = report.get("solvable_by_partners_at_most", [])
    if bounds:
        lines.append("What partners compute exactly of this organisation's boundary, at most:")
    for each in bounds:
        lines.append(
            f"  {each['attacker']:<32} {each['solved']:>6} of {each['foreign']:<6} "
            f"{100 * each['share']:6.1f} %"
        )
    return lines


def _program(revealed: Mapping[str, Any]) -> list[str]:
    lines = [f"What the program {revealed['name']} tells honest organisations and the server:"]
    lines += [f"  {sentence}" for sentence in revealed["says"]]
    for name, count in revealed.get("left_out", {}).items():
        lines.append(f"    {name:<14} {count} nodes without a foreign sum")
    return lines


def _method(report: Mapping[str, Any]) -> list[str]:
    method = report["method"]
    lines = [f"  {sentence}" for sentence in method["says"] if sentence]
    return [f"What training with {method['name']} shows:", *lines]


def _server(view: Mapping[str, Any]) -> list[str]:
    lines = [
        f"Attacker: {view['attacker']}. It sees",
        f"  of contents  {view['contents']}",
        f"  the number of columns  {view['vectors']}"
        + (f", in {view['round_trips']} round trips" if "round_trips" in view else ""),
        f"  times  {view['timing']}",
        f"  sizes  slots ({view['slots_are']}) and bytes of each organisation",
    ]
    for name, facts in view["organisations"].items():
        sent = f", {facts['bytes_sent'] / 1e6:.2f} MB sent" if "bytes_sent" in facts else ""
        lines.append(f"    {name:<14} {facts['slots']} slots{sent}")
    if view["partners"] is None:
        lines.append("  who borders whom  not: hide-topology is on")
    else:
        for name, partners in view["partners"].items():
            lines.append(f"  who borders {name}  {', '.join(partners) or 'nobody'}")
    return lines
