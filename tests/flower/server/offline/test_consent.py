"""Limits of an organisation on the in-process grid, deployed and simulated."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from client_app.app import app
from fedlap_app.cli import main
from fedlap_app.errors import RunError
from fedlap_app.flower.grids.local_grid import (
    InProcessGrid,
    ProcessGrid,
    folder_configs,
    new_run_id,
)
from fedlap_app.flower.server.run import run
from fedlap_app.graphs.federation import load_federation
from fedlap_app.graphs.folder import write_folder
from fedlap_app.sums.identity import Identity
from fedlap_app.sums.job.live import forget as forget_live

from .conftest import phase

LIMITED = "bank-01"
PLAIN = 'training-backends = ["plain", "mask"]'


@pytest.fixture
def folders(settings, tmp_path):
    """Folders of three organisations."""
    found = []
    for subgraph in load_federation(settings.data_spec):
        found.append(tmp_path / "orgs" / subgraph.name)
        write_folder(subgraph, found[-1])
        open_up = ("unpadded-sums = true", "hide-topology = false", "backends = ['mask', 'ckks']")
        lines = open_up if subgraph.name != LIMITED else ()
        limit(found[-1], "trust-on-first-use = true", PLAIN, *lines, table="policy")
    return found


@pytest.fixture
def settings(settings):
    return replace(settings, trust_on_first_use=True, directed=False)


def limit(folder, *lines, table="consent"):
    with (folder / "org.toml").open("a") as file:
        file.write(f"[{table}]\n" + "\n".join(lines) + "\n")


def replace_limits(folder, *lines):
    text = (folder / "org.toml").read_text().split("[consent]")[0]
    (folder / "org.toml").write_text(text)
    limit(folder, *lines)


def of(folders, name=LIMITED):
    return next(folder for folder in folders if folder.name == name)


def deployed(settings, folders, grid=InProcessGrid):
    arguments = folder_configs(folders), settings.to_config()
    if grid is ProcessGrid:
        return ProcessGrid(*arguments, run_id=new_run_id())
    return grid(app, *arguments, run_id=new_run_id())


def count(folder):
    """Vectors that the store's file counts, over all graphs."""
    path = folder / "store" / "consent.json"
    if not path.exists():
        return 0
    graphs = json.loads(path.read_text())["graphs"]
    return sum(each["before"] + sum(each["jobs"].values()) for each in graphs.values())


def test_within_the_limits_nothing_changes(settings, folders):
    limit(
        of(folders),
        "most-vectors = 6",
        "least-pinned-partners = 0",
        "largest-auc = 1.0",
        'backends = ["ckks", "mask"]',
        'operators = ["sym"]',
        "hide-topology = true",
    )
    outcome = phase(deployed(settings, folders), settings)
    assert outcome.price.round_trips == 5
    assert [count(folder) for folder in folders] == [6, 6, 6]
    assert phase(deployed(settings, folders), settings).reused
    assert [count(folder) for folder in folders] == [6, 6, 6]


@pytest.mark.parametrize(
    ("line", "changed", "reason"),
    [
        ("most-vectors = 5", {}, "its limit most-vectors = 5 does not allow the 6 vectors"),
        ("least-pinned-partners = 1", {}, "its limit least-pinned-partners = 1 is not met"),
        ("largest-auc = 0.51", {}, "its limit largest-auc = 0.51 does not allow"),
        ('backends = ["ckks"]', {}, "its limit backends = ckks does not allow backend = 'mask'"),
        (
            'backends = ["ckks"]',
            {"backend": "ckks", "insecure_no_pads": True},
            "unpadded-sums = false does not allow insecure-no-pads",
        ),
        ('operators = ["rw", "sym"]', {"operator": "laplacian"}, "operators = rw, sym does not"),
        ("hide-topology = true", {"hide_topology": False}, "its limit hide-topology = true does"),
        ("most-vectors = 11", {"operator": "directed", "directed": True}, "set vectors to at most"),
    ],
)
@pytest.mark.parametrize("simulated", [False, True])
def test_each_limit_is_kept(settings, folders, line, changed, reason, simulated, tmp_path):
    limit(of(folders), line)
    settings = replace(settings, **changed)
    if simulated:
        settings = replace(settings, data=str(tmp_path / "orgs"))
        configs = [{"partition-id": i, "num-partitions": 3} for i in range(3)]
        grid = InProcessGrid(app, configs, settings.to_config(), run_id=new_run_id())
    else:
        grid = deployed(settings, folders)
    with pytest.raises(RunError) as caught:
        phase(grid, settings)
    assert str(caught.value).startswith(f"{LIMITED}: ")
    assert reason in str(caught.value)
    assert not any(count(folder) for folder in folders)


def test_the_server_reads_nothing_that_follows_from_edges(settings, folders):
    limit(of(folders), "largest-auc = 0.51")
    with pytest.raises(RunError) as caught:
        phase(deployed(settings, folders), settings)
    assert not set("0123456789") & set(str(caught.value).replace(LIMITED, "").replace("0.51", ""))
    local = (of(folders) / "store" / "offline" / "consent.log").read_text()
    assert "largest-auc = 0.51 allows" in local
    assert "worst-case attacker" in local


def test_jobs_are_counted_together_and_over_restarts(settings, folders):
    limit(of(folders), "most-vectors = 13")
    phase(deployed(settings, folders), settings)
    other = replace(settings, operator="rw")
    forget_live()
    phase(deployed(other, folders), other)
    third = replace(settings, operator="laplacian", vectors=2, block=1)
    with pytest.raises(RunError, match=r"as 12 were exchanged .* set vectors to at most 1"):
        phase(deployed(third, folders), third)
    assert count(of(folders)) == 12


def test_the_rest_of_a_job_is_refused_when_the_limit_falls(settings, folders):
    class Falling(InProcessGrid):
        """The organisation lowers its limit after some messages."""

        left = 3 * 4 + 1

        def _deliver(self, message, context):
            if message.metadata.message_type == "query.offline":
                self.left -= 1
                if self.left == 0:
                    replace_limits(of(folders), "most-vectors = 4")
            return super()._deliver(message, context)

    limit(of(folders), "most-vectors = 6")
    with pytest.raises(RunError, match=f"{LIMITED}: its limit most-vectors = 4"):
        phase(deployed(settings, folders, Falling), settings)
    assert 0 < count(of(folders)) < 6
    ledger = json.loads(next(of(folders).glob("store/jobs/offline-*/ledger.json")).read_text())
    assert ledger["state"].startswith("refused: its limit most-vectors = 4")
    assert ledger["vectors"] == count(of(folders))
    replace_limits(of(folders), "most-vectors = 6")
    assert phase(deployed(settings, folders), settings).resumed
    assert count(of(folders)) == 6


def test_both_products_of_the_directed_operator_count(settings, folders):
    directed = replace(settings, operator="directed", directed=True)
    phase(deployed(directed, folders), directed)
    assert count(of(folders)) == 12
    phase(deployed(settings, folders), settings)
    graphs = json.loads((of(folders) / "store" / "consent.json").read_text())["graphs"]
    assert len(graphs) == 1
    assert count(of(folders)) == 18


def test_a_changed_graph_begins_a_new_count(settings, folders):
    from fedlap_app.graphs.folder import read_folder
    from fedlap_app.privacy.tally import Tally, graph_mark

    phase(deployed(settings, folders), settings)
    folder = of(folders)
    nodes, edges = folder / "nodes.csv", folder / "edges.csv"
    tally = Tally(folder / "store", durable=True)
    assert tally.exchanged(graph_mark(read_folder(folder))) == 6
    for path in (nodes, edges):
        head, *rest = path.read_text().splitlines()
        path.write_text("\n".join([head, *reversed(rest)]) + "\n")
    assert tally.exchanged(graph_mark(read_folder(folder))) == 6
    lines = edges.read_text().splitlines()
    inside = next(line for line in lines[1:] if not line.split(",")[2])
    edges.write_text("\n".join(line for line in lines if line != inside) + "\n")
    assert tally.exchanged(graph_mark(read_folder(folder))) == 0


def test_pinned_partners_count_and_trusted_ones_do_not(settings, folders):
    limited = of(folders)
    limit(limited, "least-pinned-partners = 2")
    with pytest.raises(RunError, match="it has pinned 0 of the 2 other organisations"):
        phase(deployed(settings, folders), settings)
    marks = {f.name: Identity.load(f / "store/offline/identity").fingerprint for f in folders}
    pins = [f'{name} = "{mark}"' for name, mark in marks.items() if name != LIMITED]
    limit(limited, pins[0], table="peers")
    with pytest.raises(RunError, match="it has pinned 1 of the 2"):
        phase(deployed(settings, folders), settings)
    with (limited / "org.toml").open("a") as file:
        file.write(pins[1] + "\n")
    assert phase(deployed(settings, folders), settings).price.round_trips == 5


def test_in_a_simulation_partners_count_by_name(settings, folders, tmp_path):
    limit(of(folders), "least-pinned-partners = 1")
    limit(of(folders), 'bank-00 = "not looked at"', table="peers")
    settings = replace(settings, data=str(tmp_path / "orgs"))
    configs = [{"partition-id": i, "num-partitions": 3} for i in range(3)]
    grid = InProcessGrid(app, configs, settings.to_config(), run_id=new_run_id())
    assert phase(grid, settings).price.round_trips == 5


def test_a_run_says_so_and_leaves_the_reason(settings, folders, observer, own_home):
    limit(of(folders), "most-vectors = 3")
    with pytest.raises(RunError, match="most-vectors"):
        run(deployed(settings, folders), settings, observer)
    folder = next((own_home / "runs").iterdir())
    assert (
        f"{LIMITED}: its limit most-vectors = 3"
        in json.loads((folder / "error.json").read_text())["error"]
    )
    assert not (folder / "summary.json").exists()


def test_train_ends_with_the_reason(folders, tmp_path):
    limit(of(folders), "most-vectors = 3")
    command = ["train", "--data", str(tmp_path / "orgs"), "--rounds", "1", "--store-dir"]
    done = CliRunner().invoke(main, [*command, str(tmp_path / "stores")])
    assert done.exit_code == 2
    assert f"{LIMITED}: its limit most-vectors = 3" in done.stderr


def test_learned_rows_show_who_shares_nodes(settings, folders, observer):
    limit(of(folders), "hide-topology = true")
    settings = replace(settings, method="fedlap", spectral=False, training_backend="plain")
    with pytest.raises(RunError, match=f"{LIMITED}: its limit hide-topology = true"):
        run(deployed(settings, folders), settings, observer)


def test_a_process_for_every_message_keeps_the_count(settings, folders):
    small = replace(settings, vectors=2, block=1)
    limit(of(folders), "most-vectors = 3")
    phase(deployed(small, folders, ProcessGrid), small)
    assert count(of(folders)) == 2
    fresh = replace(small, refresh_basis=True)
    with pytest.raises(RunError, match="set vectors to at most 1"):
        phase(deployed(fresh, folders, ProcessGrid), fresh)


def test_a_damaged_count_stops_the_run(settings, folders):
    limit(of(folders), "most-vectors = 100")
    phase(deployed(settings, folders), settings)
    (of(folders) / "store" / "consent.json").write_text("{")
    fresh = replace(settings, refresh_basis=True)
    with pytest.raises(RunError, match=r"bank-01: consent.json of the store is damaged"):
        phase(deployed(fresh, folders), fresh)
