"""What has been given away so far, from the ledgers of an organisation's store."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedlap_app.errors import DataError
from fedlap_app.privacy import tally
from fedlap_app.privacy.consent import ATTACKER, FEATURES, VECTORS, WALKS, count_mark
from fedlap_app.privacy.leakage import alpha_of, kl_of, worst_case_auc
from fedlap_app.privacy.ledger import FILE, NOISE, RECEIVED, SENT, Entry, parse
from fedlap_app.store import names, places

_KINDS = (VECTORS, FEATURES, WALKS)


def job_report(path: str | Path) -> dict[str, Any]:
    """What one job has given away, or all jobs of a store.

    Parameters
    ----------
    path
        A ledger, the folder of a job, a client's store, or an organisation folder with a store.
    """
    ledgers = _find(Path(path))
    jobs = [_read(ledger) for ledger in ledgers]
    members = sorted({str(facts.get("organisation", "?")) for facts, _ in jobs})
    if len(members) > 1:
        raise DataError(f"{path} holds ledgers of {', '.join(members)}: name the store of one.")
    return {
        "organisation": members[0],
        "attacker": ATTACKER,
        "graphs": _graphs(jobs, ledgers[0]),
        "sent": _given(jobs, SENT),
        "received": _given(jobs, RECEIVED),
        "jobs": [_job(facts, entries, ledger) for (facts, entries), ledger in zip(
            jobs, ledgers, strict=True)],
    }  # fmt: skip


def _find(path: Path) -> list[Path]:
    """Ledgers that a path stands for, the oldest first."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"There is no {path}: name a {FILE}, the folder of a job, or a store.")
    if (path / FILE).is_file():
        return [path / FILE]
    for folder in (path, places.own_store(path)):
        found = sorted(
            (folder / names.JOBS).glob(f"*/{FILE}"), key=lambda each: each.stat().st_mtime_ns
        )
        if found:
            return found
    raise DataError(
        f"{path} holds no {FILE}: name one, the folder of a job below jobs/ of a store, or a store."
    )


def _read(path: Path) -> tuple[dict[str, Any], list[Entry]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as a ledger ({type(error).__name__}).") from None
    if not isinstance(found, dict):
        raise DataError(f"{path} is not a ledger: name a {FILE} that a client wrote.")
    try:
        return parse(found)
    except DataError as error:
        raise DataError(f"{path} cannot be read: {error}") from None


def _graphs(
    jobs: Sequence[tuple[dict[str, Any], list[Entry]]], ledger: Path
) -> list[dict[str, Any]]:
    """For each graph that the jobs used: columns exchanged with it, and what they tell."""
    counted = _tally(ledger)
    found: dict[str, dict[str, Any]] = {}
    for facts, _ in jobs:
        if not facts.get("graph"):
            continue
        graph = found.setdefault(
            facts["graph"],
            {"graph": facts["graph"], "nodes": int(facts["nodes"]),
             "density": float(facts["density"]),
             **{f"{_key(kind)}_of_these_jobs": 0 for kind in _KINDS}},
        )  # fmt: skip
        kind = facts["counted"] if facts.get("counted") in _KINDS else VECTORS
        graph[f"{_key(kind)}_of_these_jobs"] += facts["vectors"]
    for mark, graph in found.items():
        for kind in _KINDS:
            here = graph[f"{_key(kind)}_of_these_jobs"]
            stored = counted.exchanged(count_mark(mark, kind)) if counted else 0
            graph[_key(kind)] = max(here, stored)
        # Every column is an equation about the edges, whatever it is.
        columns = sum(graph[_key(kind)] for kind in _KINDS)
        nodes, density = graph["nodes"], graph["density"]
        graph["auc"] = worst_case_auc(columns, nodes, density)
        graph["kl"] = kl_of(alpha_of(min(columns, nodes), nodes, density))
    return list(found.values())


def _key(kind: str) -> str:
    return kind.replace(" ", "_")


def _tally(ledger: Path) -> tally.Tally | None:
    """Counts of the store that a ledger is in, if it is there and can be read."""
    root = ledger.absolute().parent.parent.parent
    if not (root / tally.FILE).is_file():
        return None
    return tally.Tally(root, durable=True)


def _given(jobs: Sequence[tuple[dict[str, Any], list[Entry]]], way: str) -> list[dict[str, Any]]:
    """Totals over all jobs of what went one way, by kind and reader."""
    totals: dict[tuple[Any, ...], dict[str, Any]] = {}
    for _, entries in jobs:
        for each in entries:
            if each.way != way:
                continue
            key = each.kind, each.readable_by, each.sum_readable_by
            total = totals.setdefault(
                key,
                {"kind": each.kind, "readable_by": list(each.readable_by),
                 "sum_readable_by": list(each.sum_readable_by), "messages": 0, "values": 0,
                 "keys": 0},
            )  # fmt: skip
            total["messages"] += each.messages
            total["values"] += each.values
            total["keys"] += len(each.key_ids)
    return list(totals.values())


def _job(facts: Mapping[str, Any], entries: Sequence[Entry], path: Path) -> dict[str, Any]:
    return {
        "ledger": str(path),
        **{key: value for key, value in facts.items() if key != "organisation"},
        "entries": [
            {"way": each.way, "kind": each.kind, "readable_by": list(each.readable_by),
             "sum_readable_by": list(each.sum_readable_by), "key_ids": list(each.key_ids),
             "messages": each.messages, "values": each.values}
            for each in entries
        ],
    }  # fmt: skip


def report_text(report: Mapping[str, Any]) -> str:
    """The report for people."""
    jobs = report["jobs"]
    lines = [f"{report['organisation']}, {len(jobs)} job{'s' if len(jobs) > 1 else ''}"]
    lines += [f"  {each['phase']} {each['job']}: {_state(each)}" for each in jobs]
    for graph in report["graphs"]:
        lines += [
            f"Graph {graph['graph'][:12]}, {graph['nodes']:,} own nodes, own edge density "
            f"{graph['density']:.2g}",
            *(
                f"  {kind} exchanged  {graph[_key(kind)]} "
                f"({graph[_key(kind) + '_of_these_jobs']} in the jobs above)"
                for kind in _KINDS
                if kind == VECTORS or graph[_key(kind)]
            ),
            f"  AUC  {graph['auc']:.4f}    KL  {graph['kl']:.4g}",
        ]
    for way in (SENT, RECEIVED):
        lines.append(f"{way:<26}{'messages':>9}{'values':>13}  readable by")
        lines += [_line(each) for each in report[way]]
    if report["graphs"]:
        lines.append(f"AUC and KL are those of {report['attacker']}.")
    return "\n".join(lines)


def _state(job: Mapping[str, Any]) -> str:
    says = str(job["state"])
    if job["phase"] == "offline":
        says += f", {job['vectors']} {job.get('counted', VECTORS)}"
    if NOISE in job:
        about = job[NOISE]
        says += (
            f", epsilon {about['epsilon']:.3g} at delta {about['delta']:g} "
            f"({about['epsilon of all runs']:.3g} with all runs of this store) for "
            f"{about['unit']}; without {about['omits']}"
        )
    return says if job.get("complete", True) else f"{says}; its ledger was lost on the way"


def _line(each: Mapping[str, Any]) -> str:
    who = " and ".join(each["readable_by"])
    if each["sum_readable_by"]:
        who += f"; the sum by {' and '.join(each['sum_readable_by'])}"
    sealed = "" if each["keys"] else " (in the clear)"
    return f"  {each['kind']:<24}{each['messages']:>9,}{each['values']:>13,}  {who}{sealed}"
