"""The offline phase over Flower's messages, from the first to the last."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message
from flwr.common.serde import message_to_proto

from client_app.app import app
from fedlap_app.errors import RunError
from fedlap_app.flower.grids.local_grid import (
    InProcessGrid,
    folder_configs,
    new_run_id,
    partition_configs,
)
from fedlap_app.flower.grids.member_grid import MemberGrid
from fedlap_app.flower.server.federation import gather
from fedlap_app.flower.server.offline import run_offline
from fedlap_app.flower.server.run import run
from fedlap_app.graphs.federation import load_federation
from fedlap_app.graphs.folder import write_folder
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.shape import shape_of
from fedlap_app.studies.planning.traffic import traffic_of
from fedlap_app.sums.job.bases import Bases
from fedlap_app.sums.job.row_keys import KEY_BYTES

from .conftest import bases, phase, same


def test_the_phase_is_part_of_a_run_when_asked_for(settings, make_grid, observer, own_home):
    grid = make_grid(settings)
    run(grid, settings, observer)
    folder = next((own_home / "runs").iterdir())
    assert (folder / "offline.json").exists()
    assert len(bases(settings)) == 3
    plain = replace(settings, spectral=False, training_backend="plain", standardise="none")
    grid = make_grid(plain)
    run(grid, plain, observer)
    assert not any(m.metadata.message_type == "query.offline" for m, _ in grid.seen)


def test_round_trips_and_bytes_are_counted(settings, make_grid):
    grid = make_grid(settings)
    outcome = phase(grid, settings)
    messages = [m for m, _ in grid.seen if m.metadata.message_type == "query.offline"]
    assert outcome.price.handshake == 3
    assert outcome.price.round_trips == settings.offline_spec.rounds() == 5
    assert len(messages) == 3 * (3 + 5)
    sizes = [len(message_to_proto(m).SerializeToString()) for m in messages]
    assert sum(outcome.price.down.values()) == pytest.approx(sum(sizes), rel=0.2)
    assert set(outcome.price.up) == {"bank-00", "bank-01", "bank-02"}


def test_a_later_run_reuses_the_basis(settings, make_grid):
    first = phase(make_grid(settings), settings)
    second = phase(make_grid(settings), settings)
    assert second.reused
    assert second.job == first.job
    assert second.price.round_trips == 0
    fresh = replace(settings, refresh_basis=True)
    third = phase(make_grid(fresh), fresh)
    assert not third.reused


@pytest.mark.parametrize("limit", [0.004, 0.001])
def test_large_messages_travel_in_parts(settings, make_grid, undisturbed, limit):
    small = replace(settings, message_mb=limit)
    grid = make_grid(small)
    outcome = phase(grid, small)
    assert outcome.price.round_trips > 5
    assert same(bases(small), undisturbed)
    for message, reply in grid.seen:
        if message.metadata.message_type == "query.offline":
            for content in (message.content, reply.content):
                bodies = [len(record["body"]) for record in content.values() if "body" in record]
                assert sum(bodies) <= small.message_mb * 2**20


class AlteringGrid(InProcessGrid):
    """Changes one byte of one part."""

    def _deliver(self, message, context):
        own = message.content.get("own")
        if own is not None and str(own.get("asked")).startswith("put ") and own.get("index") == 1:
            body = bytearray(own["body"])
            body[7] ^= 1
            own["body"] = bytes(body)
        return super()._deliver(message, context)


def test_an_altered_part_is_refused(settings):
    small = replace(settings, message_mb=0.001)
    grid = AlteringGrid(app, partition_configs(3), small.to_config(), run_id=new_run_id())
    with pytest.raises(RunError, match=r"Part 1 of \d+ of a message was altered"):
        phase(grid, small)


def test_nothing_secret_is_logged(settings, make_grid, caplog, own_home):
    caplog.set_level("DEBUG")
    two = replace(settings, clients=2)
    phase(make_grid(two), two)
    assert "With two members every sum has one foreign contribution" in caplog.text
    assert "follow from the seed" in caplog.text
    for store in Path(settings.store_dir).iterdir():
        kept = Bases(store / "basis")
        basis = kept.load(kept.facts()[0])
        for value in (*basis.eigenvalues, *np.array(basis.U).ravel()[:20]):
            assert f"{value:.6f}"[:8] not in caplog.text
    assert not re.search(r"\d\.\d{5,}", caplog.text)


def test_plain_warns_once(settings, make_grid, caplog):
    settings = replace(settings, backend="plain")
    phase(make_grid(settings), settings)
    assert caplog.text.count("protects nothing: the server reads") == 1


def test_edges_that_differ_stop_the_run_with_counts(settings, tmp_path):
    folders = []
    for subgraph in load_federation(settings.data_spec):
        write_folder(subgraph, tmp_path / "orgs" / subgraph.name)
        folders.append(tmp_path / "orgs" / subgraph.name)
        with (folders[-1] / "org.toml").open("a") as file:
            file.write("[policy]\ntrust-on-first-use = true\n")
    table = folders[1] / "edges.csv"
    lines = table.read_text().splitlines()
    shared = [line for line in lines if line.split(",")[2] == "bank-00"]
    lines.remove(shared[0])
    table.write_text("\n".join(lines) + "\n")
    trusting = replace(settings, trust_on_first_use=True)
    config = trusting.to_config()
    grid = InProcessGrid(app, folder_configs(folders), config, run_id=new_run_id())
    with pytest.raises(RunError, match="bank-00 and bank-01: 1 edge only at bank-00, 0 only"):
        phase(grid, trusting)
    log = (folders[0] / "store" / "offline" / "edge-mismatch.log").read_text()
    assert all(end in log for end in shared[0].split(",")[:2])


def test_real_organisations_pin_each_other(settings, tmp_path):
    folders = []
    for subgraph in load_federation(settings.data_spec):
        write_folder(subgraph, tmp_path / "orgs" / subgraph.name)
        folders.append(tmp_path / "orgs" / subgraph.name)
    config = settings.to_config()
    with pytest.raises(RunError, match="is not pinned"):
        phase(InProcessGrid(app, folder_configs(folders), config, run_id=1), settings)
    from fedlap_app.sums.identity import Identity

    marks = {f.name: Identity.load(f / "store/offline/identity").fingerprint for f in folders}
    for folder in folders:
        pins = "".join(f'{name} = "{mark}"\n' for name, mark in marks.items())
        with (folder / "org.toml").open("a") as file:
            file.write(f"[peers]\n{pins}")
    outcome = phase(InProcessGrid(app, folder_configs(folders), config, run_id=2), settings)
    assert outcome.price.round_trips == 5
    again = phase(InProcessGrid(app, folder_configs(folders), config, run_id=3), settings)
    assert again.reused


def test_handlers_of_the_phase_import_no_torch(settings, make_grid):
    make_grid(settings)
    load_federation(settings.data_spec)
    code = """
import sys
from client_app.app import app
from fedlap_app.settings import parse_settings
from fedlap_app.flower.server.federation import gather
from fedlap_app.flower.grids.local_grid import InProcessGrid, partition_configs
from fedlap_app.flower.grids.member_grid import MemberGrid
from fedlap_app.flower.server.offline import run_offline
config = {config}
grid = MemberGrid(InProcessGrid(app, partition_configs(3), config))
settings = parse_settings(config)
run_offline(grid, gather(grid, settings), settings)
heavy = {{"torch", "torch_geometric", "tenseal", "pandas"}} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run(
        [sys.executable, "-c", code.format(config=settings.to_config())],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-500:]


def test_a_message_that_no_server_of_this_app_made_is_refused(settings, make_grid):
    from flwr.app import ConfigRecord, RecordDict

    grid = MemberGrid(make_grid(settings))
    message = Message(
        content=RecordDict({"own": ConfigRecord({"asked": "sums"})}),
        dst_node_id=101,
        message_type="query.offline",
    )
    with pytest.raises(RunError, match="no part 'common'"):
        grid.send_and_receive([message], timeout=5)


def test_ciphertexts_give_the_same_basis_up_to_their_noise(settings, make_grid, undisturbed):
    sealed = replace(settings, backend="ckks", message_mb=0.02)
    phase(make_grid(sealed), sealed)
    ours, exact = (np.vstack([*found.values()]) for found in (bases(sealed), undisturbed))
    assert np.linalg.norm(ours @ ours.T - exact @ exact.T, 2) < 1e-6


@pytest.mark.parametrize("backend", ["mask", "ckks"])
def test_a_plan_says_what_names_of_rows_take(settings, make_grid, backend):
    settings = replace(settings, method="fedlap", spectral=False, backend=backend)
    grid = MemberGrid(make_grid(settings))
    outcome = run_offline(grid, gather(grid, settings), settings, "row-names")
    shape = shape_of(load_federation(settings.data_spec))
    traffic = traffic_of(Phase(settings.offline_spec, shape, settings.seed), settings.message_mb)
    assert (traffic.round_trips, traffic.handshake) == (0, 3) == (0, outcome.price.handshake)
    assert traffic.up == outcome.price.up
    assert traffic.down == outcome.price.down
    held = {part.name: part.nodes + part.external for part in shape.parts}
    assert {name: len(told) // KEY_BYTES for name, told in outcome.told.items()} == held
