"""`fedlap bench`: measurements; each is a ratio or a difference taken in one run."""

import json
from pathlib import Path
from typing import Any

import click

from fedlap_app.cli.bench_tables import commands
from fedlap_app.cli.settings_options import SettingsCommand, collect, settings_options
from fedlap_app.cli.voice import counted, say, set_verbosity, terminated_like_interrupted
from fedlap_app.settings import parse_settings
from fedlap_app.spectral.solvers import SOLVERS


@click.group(epilog="Example: fedlap bench grid --dataset cora")
def bench() -> None:
    """Measure speed, traffic and accuracy on this machine."""


@bench.command(
    cls=SettingsCommand, epilog="Example: fedlap bench grid --dataset digits --clients 5"
)
@settings_options
@click.option("--repeats", type=click.IntRange(min=1), default=3, help="turns (default: 3)")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def grid(
    conf: Path | None,
    repeats: int,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one per setting
) -> None:
    """Compare a round on the in-process grid with a bare PyTorch loop.

    Without options: Cora, 10 clients, GraphSAGE, one local epoch, 20 rounds in each turn.
    """
    from fedlap_app.studies.grid_bench import bench_grid

    set_verbosity(False)
    usual = {
        "method": "fedavg",
        "dataset": "cora",
        "clients": 10,
        "model": "sage",
        "local-epochs": 1,
        "rounds": 20,
    }
    settings = parse_settings(collect(conf, options, usual))
    report = bench_grid(settings, repeats)
    if as_json:
        click.echo(json.dumps(report, indent=2))
        return
    click.echo(
        f"{report['dataset']}, {report['clients']} clients, {report['model']}, "
        f"{report['local_epochs']} local epochs, median of {counted(report['rounds'], 'round')}\n"
        f"  in-process grid     {report['grid_ms']:.1f} ms a round\n"
        f"  bare PyTorch loop   {report['bare_ms']:.1f} ms a round, the same training\n"
        f"  the grid adds       {report['overhead_ms']:.1f} ms, "
        f"{report['scoring_ms']:.1f} ms of it to score the received model"
    )


@bench.command(
    cls=SettingsCommand, epilog="Example: fedlap bench training --conf conf/best/cora.toml"
)
@settings_options
@click.option("--repeats", type=click.IntRange(min=1), default=2, help="turns (default: 2)")
@click.option(
    "--supernodes/--no-supernodes",
    default=False,
    help="on real SuperNodes of this machine, over TLS, a process a message (default: here)",
)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def training(
    conf: Path | None,
    repeats: int,
    supernodes: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one per setting
) -> None:
    """Compare sealed training with plain training: bytes, time, and where it goes.

    Without options: Cora, 10 clients, 20 rounds in each turn.
    """
    from fedlap_app.cli.run import project_folder
    from fedlap_app.deploy import supernode_bench
    from fedlap_app.studies import training_bench

    set_verbosity(False)
    usual = {"dataset": "cora", "clients": 10, "rounds": 20}
    settings = parse_settings(collect(conf, options, usual if conf is None else {}))
    if supernodes:
        with terminated_like_interrupted():  # so that no process is left behind
            report = supernode_bench.bench_supernodes(settings, repeats, project_folder())
        table = supernode_bench.table_of(report)
    else:
        report = training_bench.bench_training(settings, repeats)
        table = training_bench.table_of(report)
    click.echo(json.dumps(report, indent=2) if as_json else table)


@bench.command(
    cls=SettingsCommand,
    epilog="Example: fedlap bench offline --dataset photo --solver block-lanczos",
)
@settings_options
@click.option("--repeats", type=click.IntRange(min=1), default=3, help="turns (default: 3)")
@click.option("--check", is_flag=True, help="compare with scipy on the whole graph")
@click.option(
    "--paper/--no-paper",
    default=None,
    help="add the paper's algorithm with default TenSEAL parameters, a few steps extrapolated "
    "(default: beside ckks)",
)
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="write the rows here")
@click.option("--plot", type=click.Path(path_type=Path), help="draw them here: .png, .svg or .pdf")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def offline(
    conf: Path | None,
    repeats: int,
    check: bool,
    paper: bool | None,
    csv_file: Path | None,
    plot: Path | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one per setting
) -> None:
    """Compare solvers and back ends of the offline phase with a bare numpy loop.

    Without options: Cora, 10 random clients, 100 vectors in blocks of 10, all solvers, back ends
    and profiles of ckks; --solver, --backend and --profile choose one (and plain beside ckks). A
    run that would take more than a minute is cut after a few steps and extrapolated.
    """
    from fedlap_app.studies.offline_bench import bench_offline
    from fedlap_app.studies.offline_table import draw, table_of
    from fedlap_app.studies.planning.columns import CKKS, COLUMNS, PLAIN, column_of
    from fedlap_app.studies.report_files import check_chart, check_folder, write_csv

    set_verbosity(False)
    given = collect(conf, options)
    usual = {} if "data" in given else {"dataset": "cora", "clients": 10, "partition": "random"}
    settings = parse_settings({**usual, **given})
    columns = list(COLUMNS)
    if {"backend", "profile"} & set(given):
        columns = [PLAIN] * (settings.backend == CKKS) + [column_of(settings)]
    if csv_file is not None:
        check_folder(csv_file)
    if plot is not None:
        check_chart(plot)
    report = bench_offline(
        settings,
        [settings.solver] if "solver" in given else list(SOLVERS),
        columns,
        turns=repeats,
        check=check,
        paper=CKKS in columns if paper is None else paper,
        say=say,
    )
    if csv_file is not None:
        write_csv(report, csv_file)
    if plot is not None:
        draw(report, plot)
    click.echo(json.dumps(report, indent=2) if as_json else table_of(report))


@bench.command(
    cls=SettingsCommand,
    epilog="Example: fedlap bench frontier --dataset cora --grid-vectors bound,100,300 "
    "--grid-operator sym,regularised --seeds 3 --plot cora.png",
)
@settings_options
@click.option("--grid-vectors", help="list of vectors exchanged; `bound`: as many as it allows")
@click.option("--grid-rank", help="list of vectors kept; 0: all")
@click.option("--grid-block", help="list of vectors exchanged at once")
@click.option("--grid-operator", help="list of operators")
@click.option("--grid-keep", help="list of ends of the spectrum")
@click.option("--seeds", type=click.IntRange(min=1), default=1, help="seeds a setting (default: 1)")
@click.option(
    "--seed-start", type=click.IntRange(0, 2**63 - 1), default=None, help="the first seed"
)
@click.option(
    "--bound",
    type=click.IntRange(min=1),
    default=None,
    help="most vectors exchanged of the second choice (default: the paper's test stays at P + R "
    "of at most 1)",
)
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="write the rows here")
@click.option("--plot", type=click.Path(path_type=Path), help="draw them here: .png, .svg or .pdf")
@click.option(
    "--plot-auc",
    type=click.Path(path_type=Path),
    help="folder for accuracy against a bound on the AUC, as PNG and SVG",
)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def frontier(
    conf: Path | None,
    seeds: int,
    seed_start: int | None,
    bound: int | None,
    csv_file: Path | None,
    plot: Path | None,
    plot_auc: Path | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one per setting
) -> None:
    """Accuracy of fedlap+ against vectors, round trips, bytes and leakage.

    Trains with every combination of the lists --grid-... (default: the value of the setting; of
    vectors: as many as the bound allows, 100 and 300) and names the setting with the highest
    validation accuracy, in all and under a bound on the vectors exchanged. Without options: Cora,
    10 random clients.
    """
    from fedlap_app.studies.frontier import bench_frontier
    from fedlap_app.studies.frontier_grid import AXES, USUAL_VECTORS, parse_choices
    from fedlap_app.studies.frontier_table import draw, table_of
    from fedlap_app.studies.privacy_plots import draw_accuracy, prepare
    from fedlap_app.studies.report_files import check_chart, check_folder, write_csv

    set_verbosity(False)
    texts = {name: options.pop(f"grid_{name}") for name in AXES}
    lists = {name: parse_choices(name, text) for name, text in texts.items() if text is not None}
    given = collect(conf, options)
    if "vectors" not in given:
        lists.setdefault("vectors", list(USUAL_VECTORS))
    usual = {} if "data" in given else {"dataset": "cora", "clients": 10, "partition": "random"}
    settings = parse_settings({**usual, **given})
    if csv_file is not None:
        check_folder(csv_file)
    if plot is not None:
        check_chart(plot)
    if plot_auc is not None:
        prepare(plot_auc)
    first = settings.seed if seed_start is None else seed_start
    report = bench_frontier(
        settings,
        lists,
        range(first, first + seeds),
        bound=bound,
        say=say,
    )
    if csv_file is not None:
        write_csv(report, csv_file)
    if plot is not None:
        draw(report, plot)
    if plot_auc is not None:
        report["figures"] = [str(path) for path in draw_accuracy(report, plot_auc)]
    click.echo(json.dumps(report, indent=2) if as_json else table_of(report))


@bench.command(
    cls=SettingsCommand,
    epilog="Example: fedlap bench arrivals --dataset cora --clients 10 --partition louvain",
)
@settings_options
@click.option("--share", type=float, default=0.1, help="of the nodes that come later (default: .1)")
@click.option(
    "--split",
    type=click.Choice(["random", "time"]),
    default="random",
    help="who comes later: nodes drawn at random, or those that came last (default: random)",
)
@click.option("--seeds", type=click.IntRange(min=1), default=5, help="seeds (default: 5)")
@click.option(
    "--seed-start", type=click.IntRange(0, 2**63 - 1), default=None, help="the first seed"
)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def arrivals(
    conf: Path | None,
    share: float,
    split: str,
    seeds: int,
    seed_start: int | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one per setting
) -> None:
    """Accuracy on nodes that came after training.

    Withholds nodes of every organisation, with their edges, from training, adds them, and
    predicts: beside a model that had them, the feature model alone, and fedavg. With --split time
    the columns `time` of --data say who came last. Without options: banks, 5 clients.
    """
    from fedlap_app.studies.arrivals import bench_arrivals, table_of

    set_verbosity(False)
    given = collect(conf, options)
    usual = {} if {"data", "dataset"} & set(given) else {"dataset": "banks", "clients": 5}
    settings = parse_settings({**usual, **given})
    first = settings.seed if seed_start is None else seed_start
    report = bench_arrivals(
        settings, range(first, first + seeds), share=share, by_time=split == "time", say=say
    )
    click.echo(json.dumps(report, indent=2) if as_json else table_of(report))


@bench.command(
    cls=SettingsCommand,
    epilog="Example: fedlap bench update --conf conf/best/cora.toml --clients 10 --vectors 300",
)
@settings_options
@click.option("--shares", default="1,5,20", help="lists of percent of the edges (default: 1,5,20)")
@click.option(
    "--members",
    is_flag=True,
    help="in place of edges: after an organisation joined, and after one left",
)
@click.option("--seeds", type=click.IntRange(min=1), default=5, help="seeds (default: 5)")
@click.option(
    "--seed-start", type=click.IntRange(0, 2**63 - 1), default=None, help="the first seed"
)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def update(
    conf: Path | None,
    shares: str,
    members: bool,
    seeds: int,
    seed_start: int | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one per setting
) -> None:
    """A basis from an old one against a cold start, after a share of the edges or a member changed.

    Round trips, vectors and bytes; test accuracy of the old model at once and of a fresh one.
    Without options: banks, 5 clients.
    """
    from fedlap_app.errors import ConfigError
    from fedlap_app.studies.updates import MEMBERS, bench_updates, table_of

    set_verbosity(False)
    try:
        found = [float(each) / 100 for each in shares.split(",")]
    except ValueError:
        raise ConfigError(
            f"--shares '{shares}' is no list of percent: try --shares 1,5,20"
        ) from None
    given = collect(conf, options)
    usual = {} if {"data", "dataset"} & set(given) else {"dataset": "banks", "clients": 5}
    settings = parse_settings({**usual, **given})
    first = settings.seed if seed_start is None else seed_start
    chosen, changes = ([], MEMBERS) if members else (found, ())
    report = bench_updates(settings, chosen, range(first, first + seeds), members=changes, say=say)
    click.echo(json.dumps(report, indent=2) if as_json else table_of(report))


@bench.command(epilog="Example: fedlap bench load --organisations 100,1000")
@click.option("--organisations", default="10,100,1000", show_default=True, help="list of numbers")
@click.option("--nodes", type=click.IntRange(1), default=100_000, show_default=True)
@click.option("--columns", type=click.IntRange(1), default=10, show_default=True, help="of a step")
@click.option("--parameters", type=click.IntRange(2), default=250_000, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def load(organisations: str, nodes: int, columns: int, parameters: int, as_json: bool) -> None:
    """What the server's sums take with many organisations, on a graph of one size.

    Messages of a step before training and of a sealed round, made up and as long as real ones, go
    through the server's code: seconds, megabytes that came, and the most memory held at once.
    """
    from fedlap_app.errors import ConfigError
    from fedlap_app.studies.load_bench import Load, bench_load, table_of

    set_verbosity(False)
    try:
        counts = [int(each) for each in organisations.split(",")]
    except ValueError:
        raise ConfigError(
            f"--organisations '{organisations}' is no list of numbers: try 100,1000"
        ) from None
    what = Load(nodes, columns, parameters)
    rows = bench_load(what, counts, say)
    click.echo(json.dumps(rows, indent=2) if as_json else table_of(what, rows))


for each in commands():
    bench.add_command(each)
