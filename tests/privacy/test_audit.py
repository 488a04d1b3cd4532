import json

import numpy as np
import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.federation import load_federation
from fedlap_app.graphs.folder import write_folder
from fedlap_app.methods.registry import BUILT_IN, method_class
from fedlap_app.privacy.density import density_of, own_density
from fedlap_app.privacy.leakage import auc_of, largest_vectors
from fedlap_app.settings import parse_settings
from fedlap_app.studies.audit.audit import audit_federation, audit_organisation, one_line
from fedlap_app.studies.audit.audit_text import text_of
from fedlap_app.studies.recorder import basis_rows

SMALL = {"accounts": 300, "clients": 3, "vectors": 12, "block": 4, "operator": "sym"}


def of(**changes):
    return parse_settings({**SMALL, **{k.replace("_", "-"): v for k, v in changes.items()}})


def test_alpha_follows_from_rank_nodes_and_density_exactly():
    for rows in (None, basis_rows):
        report = audit_federation(of(), rows=rows)
        assert report["alpha_exact"] == (rows is not None)
        assert len(report["organisations"]) == 3
        for each in [report, report["whole_graph"], *report["organisations"]]:
            p = each["density"]
            mean = each["rank"] / (each["nodes"] * p * (1 - p))
            assert each["alpha_mean"] == pytest.approx(mean, rel=1e-9)
            assert each["rank"] == 12
            assert each["kl"] == pytest.approx(mean / 2, rel=1e-9)
            assert each["auc"] == pytest.approx(auc_of(mean))
            assert each["auc_both_rows"] >= each["auc"]


@pytest.mark.parametrize("method", BUILT_IN)
def test_every_method_is_audited_for_what_it_exchanges(method, tmp_path):
    settings = parse_settings({"accounts": 300, "clients": 3, "method": method})
    report = audit_federation(settings)
    parts = load_federation(settings.data_spec)
    write_folder(parts[0], tmp_path / "org")
    own = audit_organisation(tmp_path / "org", settings)
    for found in (report, own):
        assert found["vectors"] == (settings.vectors if settings.needs_basis else 0)
        assert ("auc" in found) == settings.needs_basis
        assert found["method"]["says"][:3] == [*method_class(method).reveals]
        assert (found["server"] is None) == (not settings.needed_programs)
        named = found["program"]["name"] if found["program"] else ""
        assert named == settings.asked_program("")
        assert method in text_of(found)
    if method == "fedlap":  # the names of rows tell who shares nodes, whatever is asked for
        assert report["server"]["partners"][parts[0].name] == list(parts[0].partners)


def test_the_top_level_is_about_the_most_exposed_organisation():
    settings = of()
    parts = load_federation(settings.data_spec)
    report = audit_federation(settings)
    smallest = min(parts, key=lambda part: part.num_nodes)
    assert (report["target"], report["nodes"]) == (smallest.name, smallest.num_nodes)
    graph = density_of(parts)
    assert report["density"] == graph.true_p
    expected = largest_vectors(smallest.num_nodes, graph.true_p)
    assert report["largest_vectors_p_plus_r"] == expected
    whole = report["whole_graph"]["largest_vectors_p_plus_r"]
    assert whole == largest_vectors(graph.nodes, graph.true_p) > expected


def test_the_exact_alphas_spread_around_their_mean():
    report = audit_federation(of(), rows=basis_rows)
    assert report["alpha_mean"] < report["alpha_p99"] <= report["alpha_largest"]
    assert 0.5 < report["auc_exact_alpha"] <= report["auc"]
    large = audit_federation(of(), rows=basis_rows, most_entries=100)
    assert not large["alpha_exact"]
    assert large["auc_exact_alpha"] is None


def test_the_bound_on_the_auc_is_kept():
    report = audit_federation(of(), auc_bound=0.8, counts=(1, 2, 3, 4, 5))
    fits = report["largest_vectors_auc"]
    for row in report["table"]:
        assert (row["auc"] <= 0.8) == (row["vectors"] <= fits)
    with pytest.raises(ConfigError, match=r"AUC bound of 0\.3"):
        audit_federation(of(), auc_bound=0.3)


def test_every_number_has_its_attacker():
    report = audit_federation(of())
    for part in (report, report["whole_graph"], report["solvable"], report["server"]):
        assert part["attacker"]
    assert "worst-case attacker" in one_line(of())
    assert f"AUC {report['auc']:.3f}" in one_line(of())


def test_the_server_learns_partners_only_if_they_are_shown():
    assert audit_federation(of())["server"]["partners"] is None
    shown = audit_federation(of(hide_topology=False))["server"]["partners"]
    parts = load_federation(of().data_spec)
    assert shown == {part.name: list(part.partners) for part in parts}


def test_more_vectors_than_nodes_add_nothing():
    report = audit_federation(of(vectors=5000))
    assert report["rank"] == report["nodes"] < report["vectors"] == 5000


def test_directed_exchanges_twice_as_many():
    report = audit_federation(of(operator="directed", directed=True))
    assert report["vectors"] == 24


def test_an_organisation_needs_nothing_but_its_folder(tmp_path):
    part = load_federation(of().data_spec)[1]
    write_folder(part, tmp_path / "alone")
    settings = parse_settings({"vectors": 12})
    report = audit_organisation(tmp_path / "alone", settings)
    p = own_density(part)
    assert report["target"] == part.name
    assert report["density"] == pytest.approx(p)
    assert report["alpha_mean"] == pytest.approx(12 / (part.num_nodes * p * (1 - p)))
    assert report["partners"] == list(part.partners)
    assert "whole_graph" not in report
    assert [each["attacker"] for each in report["solvable_by_partners_at_most"]] == [
        f"the partner {name} alone" for name in part.partners
    ]
    json.dumps(report)


def test_an_organisation_uses_its_own_rows_of_a_finished_basis(tmp_path):
    from fedlap_app.studies.spectrum import run_spectrum

    settings = of(store_dir=str(tmp_path / "stores"), data=str(tmp_path / "orgs"), clients=0)
    for part in load_federation(of().data_spec):
        write_folder(part, tmp_path / "orgs" / part.name)
    run_spectrum(settings, check=False, dump=None)
    name = sorted(path.name for path in (tmp_path / "orgs").iterdir())[0]
    own = parse_settings({**settings.to_config(), "store-dir": str(tmp_path / "stores" / name)})
    report = audit_organisation(tmp_path / "orgs" / name, own)
    assert report["alpha_exact"]
    whole = audit_federation(settings, rows=basis_rows)
    row = next(each for each in whole["organisations"] if each["target"] == name)
    # The same leverages, each divided by its own p (1 - p).
    spread = [each["density"] * (1 - each["density"]) for each in (report, row)]
    for key in ("alpha_mean", "alpha_p99", "alpha_largest"):
        assert report[key] * spread[0] == pytest.approx(row[key] * spread[1], rel=1e-6)
    other = parse_settings({**own.to_config(), "vectors": 8})
    assert not audit_organisation(tmp_path / "orgs" / name, other)["alpha_exact"]


@pytest.mark.parametrize(
    ("name", "paper", "here", "p"),
    [("chameleon", 175, 150, 0.0139), ("photo", 350, 210, 0.0081), ("pubmed", 80, 46, 0.00046)],
)
def test_the_papers_bounds(fedlap_data, name, paper, here, p):
    settings = parse_settings({"dataset": name, "clients": 10, "partition": "random"})
    report = audit_federation(settings, paper_p=True)
    assert report["density"] == pytest.approx(p, rel=0.02)
    assert abs(report["largest_vectors_p_plus_r"] / paper - 1) < 0.1
    assert report["nodes"] == report["whole_graph"]["nodes"]
    assert report["whole_graph"]["largest_vectors_p_plus_r"] == here


def test_leverages_of_one_organisation_sum_to_the_rank():
    rows = basis_rows(of())
    assert set(rows) == {part.name for part in load_federation(of().data_spec)}
    assert all(np.linalg.matrix_rank(each) == 12 for each in rows.values())
