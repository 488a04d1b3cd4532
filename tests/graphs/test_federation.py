import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fedlap_app
from fedlap_app.errors import ConfigError, DataError, FedLapError
from fedlap_app.graphs import federation
from fedlap_app.graphs.agreement import check_federation
from fedlap_app.graphs.federation import DataSpec, load_federation, load_member
from fedlap_app.graphs.graph import join
from fedlap_app.store import places

ROOT = Path(fedlap_app.__file__).parents[1]
SMALL = DataSpec(accounts=200, clients=3)


@pytest.mark.parametrize("partition", ["auto", "random", "louvain", "kmeans"])
@pytest.mark.parametrize("directed", [False, True])
def test_parts_fit_together(partition, directed):
    parts = load_federation(dataclasses.replace(SMALL, partition=partition, directed=directed))
    assert check_federation(parts) == []
    assert [part.name for part in parts] == sorted(part.name for part in parts)
    whole = join(parts)
    assert whole.num_nodes == 200
    assert [int(mask.sum()) for mask in (whole.train_mask, whole.val_mask, whole.test_mask)] == [
        20,
        20,
        160,
    ]


def test_a_member_is_its_part_of_the_federation():
    parts = load_federation(SMALL)
    for index, part in enumerate(parts):
        assert load_member(SMALL, index).fingerprint() == part.fingerprint()


def test_the_second_load_reads_the_cache(monkeypatch):
    first = load_member(SMALL, 1).fingerprint()
    monkeypatch.setattr(federation, "build_federation", lambda spec: 1 / 0)
    assert load_member(SMALL, 1).fingerprint() == first


def test_a_damaged_entry_is_built_again():
    first = [part.fingerprint() for part in load_federation(SMALL)]
    files = sorted((places.cache_dir() / "federations").glob("*/*.graph"))
    assert len(files) == 3
    files[0].write_bytes(b"junk")
    files[1].unlink()
    assert [part.fingerprint() for part in load_federation(SMALL)] == first


def test_a_fresh_process_imports_neither_torch_nor_pandas():
    code = (
        "import sys; from fedlap_app.graphs.federation import *;"
        "load_member(DataSpec(accounts=200, clients=3), 0);"
        "sys.exit(bool({'torch', 'pandas', 'sklearn', 'networkx'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0


def test_processes_that_start_together_get_the_same():
    code = (
        "from fedlap_app.graphs.federation import *;"
        "print(load_member(DataSpec(accounts=300, clients=2), 0).fingerprint())"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for _ in range(4)
    ]
    answers = {process.communicate()[0] for process in running}
    assert answers == {load_member(DataSpec(accounts=300, clients=2), 0).fingerprint() + "\n"}


def test_the_key_is_what_matters_for_the_data_set():
    assert DataSpec("digits").key() == DataSpec("digits", accounts=999).key()
    assert DataSpec("digits").key() == DataSpec("digits", partition="random").key()
    assert DataSpec("banks").key() == DataSpec("banks", partition="owner", neighbours=3).key()
    different = [
        DataSpec("digits"),
        DataSpec("digits", neighbours=3),
        DataSpec("digits", seed=1),
        DataSpec("digits", clients=4),
        DataSpec("digits", directed=True),
        DataSpec("digits", partition="louvain"),
        DataSpec("digits", train_ratio=0.05),
        DataSpec("banks"),
        DataSpec("banks", accounts=999),
    ]
    assert len({spec.key() for spec in different}) == len(different)


def test_the_split_does_not_depend_on_the_partition():
    one = join(load_federation(dataclasses.replace(SMALL, partition="owner")))
    two = join(load_federation(dataclasses.replace(SMALL, partition="random")))
    assert set(one.ids[one.train_mask]) == set(two.ids[two.train_mask])


def test_an_organisation_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match="take 0 to 2"):
        load_member(SMALL, 3)


@pytest.mark.parametrize(
    "fields",
    [
        {"dataset": "bankz"},
        {"clients": 0},
        {"clients": 2.5},
        {"clients": True},
        {"seed": -1},
        {"neighbours": 0},
        {"accounts": 3},
        {"clients": 3000},
        {"partition": "metis"},
        {"dataset": "digits", "partition": "owner"},
        {"train_ratio": 0},
        {"test_ratio": 0.9},
    ],
)
def test_bad_specs_are_refused_at_once(fields):
    with pytest.raises(FedLapError):
        DataSpec(**fields)


def test_more_organisations_than_nodes_are_refused():
    with pytest.raises(DataError, match="1797 nodes cannot be divided among 1798"):
        load_federation(DataSpec("digits", clients=1798))


def test_names_keep_their_order_beyond_a_hundred():
    names = [part.name for part in load_federation(DataSpec(accounts=300, clients=120))]
    assert names[0] == "bank-000"
    assert names == sorted(names)
    assert np.unique(names).size == 120
