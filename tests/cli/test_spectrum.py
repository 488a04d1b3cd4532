import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.graphs.federation import load_federation
from fedlap_app.graphs.folder import write_folder
from fedlap_app.graphs.graph import join
from fedlap_app.settings import Settings
from tests.spectral import reference

SMALL = ("--dataset", "banks", "--accounts", "240", "--clients", "3", "--vectors", "12")
KEYS = {
    "round_trips",
    "handshake_round_trips",
    "orthogonality",
    "residual_max",
    "capture",
    "bytes_up_per_client",
    "bytes_down_per_client",
    "values_per_client",
    "bytes_per_value_up",
    "seconds",
    "seconds_secure",
}


def spectrum(*arguments, code=0):
    result = CliRunner().invoke(main, ["spectrum", *arguments])
    assert result.exit_code == code, result.output
    return result


def report(*arguments):
    return json.loads(spectrum(*arguments, "--json").stdout)


def test_the_report_has_every_number():
    found = report(*SMALL, "--block", "4", "--check")
    assert set(found) >= KEYS
    assert found["round_trips"] == 3 + 1 + 2
    assert found["handshake_round_trips"] == 3
    assert found["orthogonality"] < 1e-9
    assert 0 < found["capture"] <= 1
    assert found["bytes_per_value_up"] == pytest.approx(
        found["bytes_up_per_client"] / found["values_per_client"]
    )


def test_values_are_rows_times_columns_times_recipients():
    found = report(*SMALL, "--operator", "sym", "--block", "4")
    sizes = [s.num_nodes for s in load_federation(_settings().data_spec)]
    blocks = 12 * sum(sum(sizes) - size for size in sizes) / 3
    # Totals, then per step m (last + b) + b (b + 1) / 2, then three triangles of 12.
    small = 144 + 10 + (4 * 8 + 10) + (8 * 8 + 10) + 3 * 78
    assert found["values_per_client"] == pytest.approx(blocks + small)


def test_dumped_rows_are_eigenvectors_of_the_whole_graph(tmp_path):
    result = spectrum(*SMALL, "--block", "6", "--operator", "regularised", "--rank", "3",
                      "--vectors", "120", "--dump", str(tmp_path))  # fmt: skip
    assert "possible in one process only" in result.stderr
    parts = load_federation(_settings().data_spec)
    whole = join(parts)
    rows = {}
    for part in parts:
        with np.load(tmp_path / f"{part.name}.npz") as file:
            rows |= dict(zip(file["ids"].tolist(), file["U"], strict=True))
            values = file["eigenvalues"]
    U = np.array([rows[node] for node in whole.ids.tolist()])
    L = reference.whole_operator("regularised", whole.out_adjacency())
    assert U.shape[1] == 3
    assert np.abs(L @ U - U * values).max() < 1e-6


def _settings():
    return replace(Settings(), accounts=240, clients=3)


def test_every_solver_and_back_end_agree():
    found = [
        report(*SMALL, "--solver", solver, "--backend", backend, "--block", "1", "--check")
        for solver in ("block-lanczos", "dcgs2", "arnoldi")
        for backend in ("mask", "plain")
    ]
    captures = [each["capture"] for each in found]
    assert max(captures) - min(captures) < 1e-6
    assert found[-1]["round_trips"] == 1 + sum(step + 2 for step in range(1, 13)) + 1 + 2


def test_the_same_seed_gives_the_same_numbers():
    first, again, other = (
        report(*SMALL, "--check", "--seed", seed, "--backend", "mask")["capture"]
        for seed in ("3", "3", "4")
    )
    assert first == again != other


def test_ciphertexts_are_new_in_every_run_and_the_numbers_the_same_up_to_their_noise():
    exact, first, again = (
        report(*SMALL, "--check", "--backend", backend) for backend in ("mask", "ckks", "ckks")
    )
    for found in (first, again):
        assert found["capture"] == pytest.approx(exact["capture"], abs=1e-6)
        assert found["round_trips"] == exact["round_trips"]
        assert found["orthogonality"] < 1e-6


def test_stores_are_deleted_unless_named(own_home, tmp_path):
    report(*SMALL)
    assert not list(own_home.glob("spectrum-*"))
    named = ("--store-dir", str(tmp_path / "stores"))
    assert not report(*SMALL, *named)["reused"]
    second = report(*SMALL, *named)
    assert second["reused"]
    assert second["round_trips"] == 0


def test_organisation_folders(tmp_path):
    for part in load_federation(_settings().data_spec):
        write_folder(part, tmp_path / part.name)
    from_folders = report("--data", str(tmp_path), "--vectors", "12", "--check")
    assert from_folders["clients"] == 3
    assert from_folders["orthogonality"] < 1e-6


@pytest.mark.parametrize("operator", ["laplacian", "adjacency", "rw", "directed"])
@pytest.mark.parametrize("backend", ["mask", "ckks"])
def test_operators(operator, backend):
    keep = "smallest" if operator in ("laplacian", "rw") else "magnitude"
    found = report(*SMALL, "--operator", operator, "--keep", keep, "--vectors", "239", "--rank",
                   "5", "--check", "--backend", backend)  # fmt: skip
    assert found["capture"] == pytest.approx(1.0, abs=1e-6)
    assert found["residual_max"] < (1e-5 if backend == "mask" else 1e-2)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--rank", "200"), "rank = 200 is more than vectors = 12"),
        (("--solver", "lanczos"), "nearest valid choice is 'block-lanczos'"),
        (("--backend", "paillier"), "is not one of mask, plain"),
        (("--vectors", "0"), "nearest valid value is 1"),
    ],
)
def test_bad_input_gives_one_sentence(arguments, sentence):
    assert sentence in spectrum(*SMALL, *arguments, code=2).stderr


def test_text_for_people():
    text = spectrum(*SMALL, "--check").stdout
    assert "round trips" in text
    assert "capture" in text


@pytest.mark.slow
@pytest.mark.parametrize("dataset", ["cora", "chameleon"])
def test_benchmarks_keep_their_promises(fedlap_data, dataset):
    arguments = ("--dataset", dataset, "--clients", "10", "--partition", "random", "--check")
    mask, plain, ckks = (
        report(*arguments, "--backend", backend) for backend in ("mask", "plain", "ckks")
    )
    assert mask["round_trips"] <= 13
    assert mask["orthogonality"] <= 1e-9
    assert mask["bytes_per_value_up"] <= 8.5
    assert mask["capture"] == pytest.approx(plain["capture"], abs=1e-6)
    assert ckks["round_trips"] <= 13
    assert ckks["orthogonality"] <= 1e-6
    assert ckks["bytes_per_value_up"] <= {"cora": 25, "chameleon": 28}[dataset]
    assert ckks["bytes_up_per_client"] <= 7e6
    assert ckks["capture"] == pytest.approx(mask["capture"], abs=0.01)
