import json

import numpy as np
import pytest
from click.testing import CliRunner

import fedlap_app as fedlap
from fedlap_app.api.exports import from_exports
from fedlap_app.cli import main
from fedlap_app.errors import DataError

ACCOUNTS = "account,bank,class,balance\na1,north,x,1.5\na2,north,,2\nb1,south,y,3\nb2,south,x,4\n"
TRANSFERS = "from,to,amount\na1,a2,1\na2,b1,2.5\nb1,b2,1\n"


@pytest.fixture
def files(tmp_path):
    nodes, edges = tmp_path / "accounts.csv", tmp_path / "transfers.csv"
    nodes.write_text(ACCOUNTS)
    edges.write_text(TRANSFERS)
    return nodes, edges


def test_two_exports_become_folders_that_fit(files, tmp_path):
    out = tmp_path / "orgs"
    words = ["import", *files, "--owner", "bank", "--out", out, "--json"]
    done = CliRunner().invoke(main, list(map(str, words)))
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["organisations"] == ["north", "south"]
    north, south = fedlap.read(out)
    assert north.ids.tolist() == ["a1", "a2"]
    assert north.classes == ("x", "y")
    assert north.labels.tolist() == [0, -1]
    assert north.feature_names == ("balance",)
    assert np.allclose(south.features, [[3], [4]])
    assert north.external_ids.tolist() == ["b1"]
    assert sorted(set(north.edge_weight.tolist())) == [1.0, 2.5]


def test_columns_of_other_names_and_parquet(files, tmp_path):
    import pandas as pd

    table = pd.read_csv(files[0]).rename(columns={"class": "kind"})
    table.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="no column for the label"):
        from_exports(tmp_path / "a.parquet", files[1], {}, owners="bank")
    orgs = from_exports(tmp_path / "a.parquet", files[1], {"label": "kind"}, owners="bank")
    assert orgs.names == ("north", "south")


def test_an_edge_to_nowhere_is_named_with_its_line(files):
    files[1].write_text(TRANSFERS + "b2,zz,1\n")
    with pytest.raises(DataError, match=r"line 5: target 'zz' is no node"):
        from_exports(*files, {}, owners="bank")


def test_arrays_of_one_file(tmp_path):
    path = tmp_path / "graph.npz"
    np.savez(
        path, x=np.eye(6, dtype=np.float32), y=np.array([0, 1, 0, 1, 0, 1]),
        edge_index=np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]),
    )  # fmt: skip
    orgs = from_exports(path, None, {}, clients=2, partition="random")
    assert sum(part.num_nodes for part in orgs) == 6
    np.savez(path, x=np.eye(2))
    with pytest.raises(DataError, match="lacks edge_index, y"):
        from_exports(path, None, {})
