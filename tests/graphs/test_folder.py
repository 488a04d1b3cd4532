import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs.folder import (
    federation_folders,
    organisation_folders,
    read_federation,
    read_folder,
    write_folder,
)
from tests.graphs.conftest import cut_randomly, random_graph

ORG = 'name = "bank-a"\nclasses = ["good", "bad"]\nfeatures = ["x", "y"]\n'
NODES = "id,label,split,x,y\na,good,train,1,2\nb,,,3,4\n"
EDGES = "source,target,owner,weight\na,b,,2\nb,c,bank-b,0.5\n"


@pytest.fixture
def folder(tmp_path):
    """The triangle as an organisation would write it; tests spoil one file."""
    (tmp_path / "org.toml").write_text(ORG)
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    return tmp_path


def test_a_folder_written_by_hand(folder, triangle):
    assert read_folder(folder).fingerprint() == triangle.fingerprint()


@pytest.mark.parametrize("fmt", ["csv", "parquet"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_round_trip_changes_nothing(tmp_path, fmt, directed, sparse):
    graph = random_graph(directed=directed)
    if sparse:
        graph = dataclasses.replace(graph, features=sp.csr_array(np.eye(40, 3)))
    parts = cut_randomly(graph)
    for part in parts:
        write_folder(part, tmp_path / part.name, fmt)
    again = read_federation(tmp_path, directed=directed)
    assert [part.fingerprint() for part in again] == [part.fingerprint() for part in parts]


texts = st.text(
    st.characters(min_codepoint=32, exclude_categories=("Cs", "Cc")), min_size=1, max_size=12
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    names=st.lists(texts, min_size=3, max_size=3, unique=True),
    fmt=st.sampled_from(["csv", "parquet"]),
)
def test_any_text_is_an_id(change, tmp_path, names, fmt):
    part = change(ids=np.array(names[:2]), external_ids=np.array(names[2:]))
    write_folder(part, tmp_path, fmt)
    assert read_folder(tmp_path).fingerprint() == part.fingerprint()


@pytest.mark.parametrize("fmt", ["csv", "parquet"])
def test_ids_that_look_like_something_else_survive(change, tmp_path, fmt):
    part = change(ids=np.array(["007", "NA"]), external_ids=np.array(["null"]))
    write_folder(part, tmp_path, fmt)
    again = read_folder(tmp_path)
    assert again.ids.tolist() == ["007", "NA"]
    assert again.external_ids.tolist() == ["null"]


def test_names_in_other_scripts_and_quoted_commas(change, tmp_path):
    part = change(
        name="Sparkasse Köln",
        classes=('a "quoted" class', "класс"),
        feature_names=("größe, cm", "年齢"),
        ids=np.array(["a,b", 'c"d']),
    )
    write_folder(part, tmp_path)
    assert read_folder(tmp_path).fingerprint() == part.fingerprint()


@pytest.mark.parametrize("file", ["nodes.csv", "edges.csv", "org.toml"])
def test_windows_line_ends_and_byte_order_marks(folder, file, triangle):
    path = folder / file
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_folder(folder).fingerprint() == triangle.fingerprint()


@pytest.mark.parametrize("fmt", ["csv", "parquet"])
def test_one_node_and_no_edges(change, tmp_path, fmt):
    part = change(
        ids=["a"],
        external_ids=[],
        external_owners=[],
        edge_index=np.empty((2, 0), dtype=int),
        edge_weight=[],
        features=[[1.0, 2.0]],
        labels=[-1],
        train_mask=[False],
        val_mask=[False],
        test_mask=[False],
    )
    write_folder(part, tmp_path, fmt)
    assert read_folder(tmp_path).fingerprint() == part.fingerprint()


def test_no_features_at_all(change, tmp_path):
    part = change(features=np.empty((2, 0)), feature_names=())
    write_folder(part, tmp_path)
    assert read_folder(tmp_path).fingerprint() == part.fingerprint()


def test_wide_and_reserved_features_go_to_their_own_file(change, tmp_path):
    wide = change(features=np.ones((2, 300)), feature_names=tuple(f"f{i}" for i in range(300)))
    write_folder(wide, tmp_path)
    assert (tmp_path / "features.npz").is_file()
    assert "features = 300\n" in (tmp_path / "org.toml").read_text()
    assert read_folder(tmp_path).fingerprint() == wide.fingerprint()
    reserved = change(feature_names=("id", "y"))
    write_folder(reserved, tmp_path)
    assert read_folder(tmp_path).fingerprint() == reserved.fingerprint()


def test_writing_again_in_another_format_leaves_no_old_files(triangle, tmp_path):
    write_folder(triangle, tmp_path, "csv")
    write_folder(triangle, tmp_path, "parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "edges.parquet",
        "nodes.parquet",
        "org.toml",
    ]


def test_direction_is_read_as_it_is_listed(folder):
    (folder / "edges.csv").write_text("source,target,owner\nb,a,\nc,b,bank-b\n")
    part = read_folder(folder, directed=True)
    assert part.edge_index.tolist() == [[1, 2], [0, 1]]


def test_listing_both_directions_takes_the_larger_weight(folder):
    (folder / "edges.csv").write_text(
        "source,target,owner,weight\na,b,,2\nb,a,,3\na,b,,2\na,a,,9\n"
    )
    assert read_folder(folder).edge_weight.tolist() == [3.0, 3.0]


def test_other_keys_and_columns_are_ignored(folder, triangle):
    (folder / "org.toml").write_text(ORG + "[limits]\nrounds = 3\n")
    (folder / "nodes.csv").write_text("note,id,y,label,split,x\n?,a,2,good,train,1\n?,b,4,,,3\n")
    assert read_folder(folder).fingerprint() == triangle.fingerprint()


ROW = "id,label,split,x,y\na,good,train,1,2\n"
EDGE = "source,target,owner,weight\n"
BAD = [
    ("org.toml", None, "There is no", "org.toml"),
    ("org.toml", "name = ", "not valid TOML", "org.toml"),
    ("org.toml", b"\xff\xfe\x00", "not UTF-8", "org.toml"),
    ("org.toml", 'name = "a"\nclasses = ["x"]\n', "has no 'features'", "org.toml"),
    ("org.toml", ORG.replace('"bank-a"', "3"), "organisation name 3", "org.toml"),
    ("org.toml", ORG.replace('"bank-a"', '"a/b"'), "folder name", "org.toml"),
    ("org.toml", ORG.replace('["good", "bad"]', '"good"'), "not a list", "org.toml"),
    ("org.toml", ORG.replace('["good", "bad"]', '["good", 1]'), "non-empty strings", "org.toml"),
    ("org.toml", ORG.replace('"bad"', '"good"'), "'good' twice", "org.toml"),
    ("org.toml", ORG.replace('["x", "y"]', "-1"), "neither a list", "org.toml"),
    ("org.toml", ORG.replace('["x", "y"]', "true"), "neither a list", "org.toml"),
    ("org.toml", ORG.replace('"x"', '"label"'), "cannot be called 'label'", "org.toml"),
    ("nodes.csv", None, "no nodes.csv or nodes.parquet", ""),
    ("nodes.csv", "", "is empty", "nodes.csv"),
    ("nodes.csv", b"\x80\x81\x00\x01", "not UTF-8", "nodes.csv"),
    ("nodes.csv", b"\x01\x02\x00\x03\n\x05", "no column 'id'", "nodes.csv"),
    ("nodes.csv", "id,label,split,x,y\n", "lists no node", "nodes.csv"),
    ("nodes.csv", "id,split,x,y\na,,1,2\n", "no column 'label'", "nodes.csv"),
    ("nodes.csv", "id;label;split;x;y\na;;;1;2\n", "separate columns by commas", "nodes.csv"),
    ("nodes.csv", "id,label,split,x\na,,,1\n", "no column 'y'", "nodes.csv"),
    ("nodes.csv", "id,id,label,split,x,y\na,a,,,1,2\n", "two columns 'id'", "nodes.csv"),
    ("nodes.csv", ROW + "b,,,3\n", "has 4 columns", "line 3"),
    ("nodes.csv", ROW + '"b,,,3,4\n', "not valid CSV", "line 3"),
    ("nodes.csv", ROW + "a,,,3,4\n", "'a' is already in line 2", "line 3"),
    ("nodes.csv", ROW + ",,,3,4\n", "id is empty", "line 3"),
    ("nodes.csv", ROW + "b,ugly,,3,4\n", "label 'ugly'", "line 3"),
    ("nodes.csv", ROW + "b,good,dev,3,4\n", "unknown split 'dev'", "line 3"),
    ("nodes.csv", ROW + "b,,test,3,4\n", "in a split but has no label", "line 3"),
    ("nodes.csv", ROW + "b,,,three,4\n", "x = 'three' is not a number", "line 3"),
    ("nodes.csv", ROW + "b,,,,4\n", "x = '' is not a number", "line 3"),
    ("nodes.csv", ROW + "b,,,nan,4\n", "'x' is missing, infinite", "line 3"),
    ("nodes.csv", ROW + "b,,,3,inf\n", "'y' is missing, infinite", "line 3"),
    ("nodes.csv", ROW + "b,,,3,1e99\n", "too large", "line 3"),
    ("nodes.csv", ROW + f"{'b' * 300},,,3,4\n", "at most 256", "line 3"),
    ("nodes.csv", ROW + "b\x07,,,3,4\n", "control character", ""),
    ("edges.csv", None, "no edges.csv or edges.parquet", ""),
    ("edges.csv", "", "is empty", "edges.csv"),
    ("edges.csv", "source,target\na,b\n", "no column 'owner'", "edges.csv"),
    ("edges.csv", EDGE + "a,b,,2\na,z,,1\n", "'z' is not in the table of nodes", "line 3"),
    ("edges.csv", EDGE + "z,a,,1\n", "'z' is not in the table of nodes", "line 2"),
    ("edges.csv", EDGE + "y,z,bank-b,1\n", "neither 'y' nor 'z'", "line 2"),
    ("edges.csv", EDGE + "a,b,bank-b,1\n", "leave the owner empty", "line 2"),
    ("edges.csv", EDGE + "a,c,bank-a,1\n", "names itself as the owner", "line 2"),
    ("edges.csv", EDGE + "a,c,a/b,1\n", "folder name", ""),
    ("edges.csv", EDGE + "a,,bank-b,1\n", "target is empty", "line 2"),
    ("edges.csv", EDGE + "a,c,bank-b,1\nb,c,bank-c,1\n", "both 'bank-b' and 'bank-c'", "edges.csv"),
    ("edges.csv", EDGE + "a,b,,0\n", "weight 0 is not a positive", "line 2"),
    ("edges.csv", EDGE + "a,b,,-1\n", "weight -1 is not a positive", "line 2"),
    ("edges.csv", EDGE + "a,b,,nan\n", "weight nan is not a positive", "line 2"),
    ("edges.csv", EDGE + "a,b,,heavy\n", "weight = 'heavy' is not a number", "line 2"),
    ("edges.csv", EDGE + "a,b,,1\na,b,,2\n", "with the weights 1 and 2", "edges.csv"),
]


@pytest.mark.parametrize(("file", "content", "message", "where"), BAD)
def test_each_mistake_is_one_sentence(folder, file, content, message, where):
    if content is None:
        (folder / file).unlink()
    elif isinstance(content, bytes):
        (folder / file).write_bytes(content)
    else:
        (folder / file).write_text(content)
    with pytest.raises(DataError) as caught:
        read_folder(folder)
    sentence = str(caught.value)
    assert message in sentence
    assert where in sentence
    assert str(folder) in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_two_tables_of_one_kind_are_refused(folder):
    (folder / "nodes.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"both nodes\.csv and nodes\.parquet"):
        read_folder(folder)


def test_a_number_of_features_needs_their_file(folder):
    (folder / "org.toml").write_text(ORG.replace('["x", "y"]', "2"))
    with pytest.raises(DataError, match="no column 'f0'"):
        read_folder(folder)


def test_a_folder_that_is_not_there(tmp_path):
    for read in (read_folder, read_federation, organisation_folders):
        with pytest.raises(DataError, match="There is no folder"):
            read(tmp_path / "nothing")


def test_an_unknown_format_is_refused(triangle, tmp_path):
    with pytest.raises(ConfigError, match="csv or parquet"):
        write_folder(triangle, tmp_path, "xlsx")


def test_folders_come_in_the_order_of_the_names(change, tmp_path):
    for name, place in (("zeta", "1"), ("alpha", "2"), ("mid", "3")):
        write_folder(change(name=name), tmp_path / place)
    (tmp_path / "notes").mkdir()
    assert [path.name for path in federation_folders(tmp_path)] == ["2", "3", "1"]
    assert [part.name for part in read_federation(tmp_path)] == ["alpha", "mid", "zeta"]


def test_two_folders_of_one_name_are_refused(triangle, tmp_path):
    write_folder(triangle, tmp_path / "1")
    write_folder(triangle, tmp_path / "2")
    with pytest.raises(DataError, match="both call themselves 'bank-a'"):
        federation_folders(tmp_path)


def test_one_folder_is_not_a_federation(folder, tmp_path_factory):
    with pytest.raises(DataError, match="is one organisation folder"):
        federation_folders(folder)
    with pytest.raises(DataError, match="holds no organisation folders"):
        federation_folders(tmp_path_factory.mktemp("empty"))


def test_a_folder_that_cannot_be_written(triangle, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        write_folder(triangle, tmp_path / "file")
