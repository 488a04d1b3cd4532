"""`fedlap attack`: real attacks on a run that was recorded in this process."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from fedlap_app.cli.settings_options import SettingsCommand, settings_from, settings_options
from fedlap_app.cli.voice import say, set_verbosity


@click.command(
    cls=SettingsCommand,
    epilog="Example: fedlap attack --dataset pubmed --clients 10 --partition random "
    "--attack worst --plot figures",
)
@settings_options
@click.option(
    "--attack",
    "names",
    default="worst,client,coalition,server",
    help="list of worst, client, coalition, server (default: all)",
)
@click.option("--target", default="", help="organisation under the worst case (default: smallest)")
@click.option("--attacker", default="", help="the curious client (default: the first)")
@click.option(
    "--coalition", type=click.IntRange(min=0), default=0, help="clients together (default: half)"
)
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=40,
    help="runs that the server's classifier is trained on, and as many more to test (default: 40)",
)
@click.option(
    "--plot", type=click.Path(path_type=Path), help="folder for the figures, as PNG and SVG"
)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def attack(
    conf: Path | None,
    names: str,
    target: str,
    attacker: str,
    coalition: int,
    runs: int,
    plot: Path | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one per setting
) -> None:
    """Attack a recorded run and say how many edges are found.

    (worst) the paper's worst case, against the whole graph and against one organisation; (client)
    a curious client with its own rows, its sums and H; (coalition) several of them; (server) a
    classifier on what the server sees.
    """
    from fedlap_app.studies.attack_bench import Choice, run_attacks
    from fedlap_app.studies.privacy_plots import draw_attacks, prepare

    settings = settings_from(conf, options)
    set_verbosity(False)
    if plot is not None:
        prepare(plot)
    chosen = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    choice = Choice(chosen, target, attacker, coalition, runs)
    report = run_attacks(settings, choice, say)
    if plot is not None:
        report["figures"] = [str(path) for path in draw_attacks(report, plot)]
    click.echo(json.dumps(report, indent=2) if as_json else _text(report))


def _text(report: Mapping[str, Any]) -> str:
    vectors = f", {report['vectors']} vectors exchanged" if "vectors" in report else ""
    lines = [
        f"{report['data']}, {report['partition']} partition, {report['operator']}, "
        f"{report['backend']}{vectors}; in brackets 95 % bootstrap intervals"
    ]
    for found in report["attacks"]:
        lines += ["", f"Attacker: {found['attacker']}"]
        lines += _server(found) if found["name"] == "server" else _on_edges(found)
    lines += [f"figure: {path}" for path in report.get("figures", [])]
    return "\n".join(lines)


def _on_edges(found: Mapping[str, Any]) -> list[str]:
    who = f" ({', '.join(found['members'])})" if "members" in found else ""
    size = f", {found['nodes']} nodes" if "nodes" in found else ""
    lines = [
        f"  target  {found['target']}{size}{who}: {found['edges']} edges, {found['others']} others",
        f"  attack     {_numbers(found)}",
    ]
    if "theory" in found:
        theory = found["theory"]
        lines += [
            f"  theory     AUC {theory['auc']:.4f} ({theory['auc_exact_alpha']:.4f} with exact "
            f"alpha), TPR {theory['tpr_at_fpr_0.01']:.4f} at FPR 1e-2, "
            f"{theory['tpr_at_fpr_0.001']:.4f} at 1e-3",
            f"  both rows  {_numbers(found['both_rows'])}; theory AUC "
            f"{found['both_rows']['auc_theory']:.4f}",
        ]
    if "baseline" in found:
        lines.append(f"  no message {_numbers(found['baseline'])}")
    return lines


def _server(found: Mapping[str, Any]) -> list[str]:
    lines = [
        f"  {found['runs']} runs to learn from, {found['runs_tested']} to be asked about, "
        f"{found['vectors']} vectors each"
    ]
    for name in ("contents", "timing"):
        each = found[name]
        chance = "at chance" if each["at_chance"] else "NOT at chance"
        lines.append(f"  {name:<10} AUC {each['auc']:.3f} {_interval(each, 'auc')}: {chance}")
    return lines


def _numbers(found: Mapping[str, Any]) -> str:
    return (
        f"AUC {found['auc']:.4f} {_interval(found, 'auc')}, "
        f"TPR {found['tpr_at_fpr_0.01']:.4f} {_interval(found, 'tpr_at_fpr_0.01')} at FPR 1e-2, "
        f"{found['tpr_at_fpr_0.001']:.4f} {_interval(found, 'tpr_at_fpr_0.001')} at 1e-3"
    )


def _interval(found: Mapping[str, Any], key: str) -> str:
    low, high = found[f"{key}_interval"]
    return f"[{low:.4f}, {high:.4f}]"
