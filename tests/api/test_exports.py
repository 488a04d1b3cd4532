import json

import numpy as np
import pytest
from click.testing import CliRunner

import fedlap_app as fedlap
from fedlap_app.api.export_columns import meaning, numbers
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
    with pytest.raises(DataError, match=r"no column that is called label .* --label COLUMN"):
        from_exports(tmp_path / "a.parquet", files[1], {}, owners="bank")
    orgs, _ = from_exports(tmp_path / "a.parquet", files[1], {"label": "kind"}, owners="bank")
    assert orgs.names == ("north", "south")


def test_an_edge_to_nowhere_is_named_with_its_line(files):
    files[1].write_text(TRANSFERS + "b2,zz,1\n")
    with pytest.raises(DataError, match=r"line 5: target 'zz' is no node .*in 1 of 4 lines"):
        from_exports(*files, {}, owners="bank")
    orgs, lines = from_exports(*files, {}, owners="bank", drop_strangers=True)
    assert sum(part.inter_edges[1].size for part in orgs) == 4
    assert "left out for a target that is no node: 1" in lines[-1]


def test_arrays_of_one_file(tmp_path):
    path = tmp_path / "graph.npz"
    np.savez(
        path, x=np.eye(6, dtype=np.float32), y=np.array([0, 1, 0, 1, 0, 1]),
        edge_index=np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]),
    )  # fmt: skip
    orgs, _ = from_exports(path, None, {}, clients=2, partition="random")
    assert sum(part.num_nodes for part in orgs) == 6
    np.savez(path, x=np.eye(2))
    with pytest.raises(DataError, match="lacks y, edge_index"):
        from_exports(path, None, {})


SHEET = """Konto-Nr;Institut;Klasse;Saldo (EUR);Seit;Land;Währung;IBAN;Alter
007;Bank/3;Händler;1.898,20 €;08.12.2014;NA;EUR;DE1;41
008;Crédit Ü;;-12,50 €;;;EUR;DE2;
1001;Crédit Ü;Privat;;01.02.1970;FR;EUR;DE3;1.020
"""
NAMES = {"id": "Konto-Nr", "label": "Klasse", "source": "Von", "target": "An", "weight": "Betrag"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_a_spreadsheet_of_another_country(tmp_path, encoding):
    (tmp_path / "n.csv").write_text(SHEET.replace("\n", "\r\n"), encoding=encoding)
    (tmp_path / "e.csv").write_text(
        "Von;An;Betrag;Datum\n007;008;1,5;1\n007;008;2,25;2\n1001;007;1.000,00;3\n008;007;4;4\n",
        encoding=encoding,
    )
    orgs, lines = from_exports(tmp_path / "n.csv", tmp_path / "e.csv", NAMES, owners="Institut")
    assert orgs.names == ("Bank-3", "Crédit Ü")
    bank, other = orgs
    assert bank.ids.tolist() == ["007"]
    assert other.ids.tolist() == ["008", "1001"]
    assert bank.classes == ("Händler", "Privat")
    # The larger of both directions, each the sum of its lines.
    assert sorted(set(bank.edge_weight.tolist())) == [4.0, 1000.0]
    assert bank.feature_names[:2] == ("Saldo (EUR)", "Seit")
    assert bank.features[0, 0] == pytest.approx(1898.2)
    assert bank.features[0, 1] == 16412  # days since 1970
    assert np.isnan(other.features[0, 1])
    assert other.features[1, 1] == 31
    assert bank.feature_names[2] == "Land"
    assert bank.categories[0, 0] == "NA"  # Namibia
    assert other.features[1, bank.feature_names.index("Alter")] == 1020
    assert "Währung" not in bank.feature_names
    assert "the same text 'EUR' in every row" in lines[1]


def test_names_of_columns_are_found_without_their_capitals(tmp_path):
    (tmp_path / "n.csv").write_text("Account ID,Bank,CLASS,v\na,x,1,2\nb,x,10,3\nc,y,-1,4\n")
    (tmp_path / "e.csv").write_text("FROM,TO\na,b\na,c\na,b\n")
    orgs, _ = from_exports(tmp_path / "n.csv", tmp_path / "e.csv", {}, owners="Bank")
    assert orgs["x"].classes == ("1", "10")
    assert orgs["y"].labels.tolist() == [-1]
    assert set(orgs["x"].edge_weight.tolist()) == {1.0}


@pytest.mark.parametrize("text", ["a1 a2 1\n# more\n", "a1,a2,1\n", "# all\na1\ta2\t1\n"])
def test_a_bare_list_of_edges(files, text):
    files[1].write_text(text.replace("# more\n", "a1 b1 2\n"))
    orgs, _ = from_exports(*files, {}, owners="bank")
    ids, part = np.concatenate([orgs[0].ids, orgs[0].external_ids]), orgs[0]
    edges = {tuple(ids[list(pair)].tolist()) for pair in part.edge_index.T}
    assert ("a1", "a2") in edges
    assert (("a1", "b1") in edges) == ("more" in text)


@pytest.mark.parametrize("weight", ["-3", "0", "dear"])
def test_a_weight_that_is_none_is_named_with_its_line(files, weight):
    files[1].write_text(TRANSFERS + f"b2,a1,{weight}\n")
    with pytest.raises(DataError, match=rf"line 5: the weight '{weight}' .* --weight ''"):
        from_exports(*files, {}, owners="bank")
    orgs, _ = from_exports(*files, {"weight": ""}, owners="bank")
    assert set(orgs[0].edge_weight.tolist()) == {1.0}


@pytest.mark.parametrize(
    ("cells", "comma", "expected"),
    [
        (["1,234.50", "7"], False, [1234.5, 7]),
        (["1.234,50", "7"], True, [1234.5, 7]),
        (["1.234", "12.500"], True, [1234, 12500]),
        (["1.234", "12.500"], False, [1.234, 12.5]),
        (["0.125", ".5"], True, [0.125, 0.5]),
        (["EUR 1'000", "-2 000 €"], False, [1000, -2000]),
        (["TRUE", "false", "n/a"], False, [1, 0, np.nan]),
        (["1,2,3", "4"], False, None),
        (["inf", "1"], False, None),
    ],
)
def test_numbers_as_people_write_them(cells, comma, expected):
    import pandas as pd

    found = numbers(pd.Series(cells), comma=comma)
    if expected is None:
        assert found is None
    else:
        np.testing.assert_array_equal(found.to_numpy(), expected)


@pytest.mark.parametrize(
    ("cells", "days"),
    [
        (["1970-01-02", "1970-01-01 12:00"], [1, 0.5]),
        (["31.12.1969", "01.02.1970"], [-1, 31]),
        (["01/31/1970", "01/02/1970"], [30, 1]),
        (["31/01/1970", "01/02/1970"], [30, 31]),
        (["01/02/1970", "02/01/1970"], None),  # which is the month?
    ],
)
def test_dates_are_days_where_they_are_certain(cells, days):
    import pandas as pd

    found = meaning(pd.Series(cells), comma=False)
    if days is None:
        assert "text" in found.words
    else:
        assert found.column.tolist() == days


def test_text_may_look_like_a_number(files):
    orgs, _ = from_exports(*files, {}, owners="bank", categories=["balance"])
    assert orgs[0].kinds == ("category",)
    assert orgs[0].categories.tolist() == [["1.5"], ["2"]]


def test_a_graph_that_torch_saved(tmp_path):
    import torch
    from torch_geometric.data import Data

    data = Data(x=torch.eye(4), y=torch.tensor([0, 1, 0, -1]), bank=["p", "p", "q", "q"],
                edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))  # fmt: skip
    path = tmp_path / "graph.pt"
    for saved in (data, (data.to_dict(), None), data.to_dict()):
        torch.save(saved, path)
        orgs, _ = from_exports(path, None, {}, owners="bank")
        assert orgs.names == ("p", "q")
        assert orgs["q"].labels.tolist() == [0, -1]


class _Evil:
    def __reduce__(self):
        return (open, (str(self), "w"))


def test_a_saved_graph_runs_no_code(tmp_path):
    import torch

    torch.save({"x": _Evil()}, tmp_path / "graph.pt")
    with pytest.raises(DataError, match="more than a torch_geometric Data"):
        from_exports(tmp_path / "graph.pt", None, {})
    (tmp_path / "graph.pt").write_bytes(b"PK short")
    with pytest.raises(DataError, match="cannot be read"):
        from_exports(tmp_path / "graph.pt", None, {})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04 a sheet", "a workbook"),
        (b"id,label\n1,2,3\n4,5,6\n", "more cells than its first line has names"),
        (b"", "No columns"),
    ],
)
def test_what_is_no_table_is_refused(files, content, said):
    files[0].write_bytes(content)
    with pytest.raises(DataError, match=said):
        from_exports(*files, {})
