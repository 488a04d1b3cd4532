import numpy as np
import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.graph import join
from fedlap_app.privacy.solvable import determined
from fedlap_app.settings import parse_settings
from fedlap_app.studies.attacks.curious import attack_curious, estimate_entries
from fedlap_app.studies.attacks.scores import curve_of
from fedlap_app.studies.attacks.views import form_coalition
from fedlap_app.studies.recorder import record_run
from fedlap_app.sums.job import live
from tests.spectral import reference


def recorded(**changes):
    usual = {"accounts": 240, "clients": 4, "vectors": 12, "block": 4}
    settings = parse_settings({**usual, **{k.replace("_", "-"): v for k, v in changes.items()}})
    return record_run(settings)


@pytest.mark.parametrize("operator", ["sym", "regularised", "laplacian", "adjacency"])
def test_a_view_holds_what_the_protocol_delivers(operator, own_home):
    views = recorded(operator=operator).views()
    parts = list(views.values())
    whole = join([view.subgraph for view in parts])
    options = {"self_loops": 1.0, "regulariser": None}
    matrix = reference.whole_operator(operator, whole.out_adjacency(), **options)
    Q = np.concatenate([view.Q for view in parts])
    Z = np.concatenate([view.Z for view in parts])
    unit = parts[0].operator.unit
    np.testing.assert_allclose(np.asarray(matrix @ Q), unit * Z, atol=1e-6 * unit)
    np.testing.assert_allclose(parts[0].H, (Q.T @ Z + Z.T @ Q) / 2, atol=1e-6)
    owners = dict(zip(whole.ids, range(whole.num_nodes), strict=True))
    received = np.zeros_like(Q)
    for view in parts:
        rows = [owners[each] for each in view.subgraph.external_ids]
        np.add.at(received, rows, view.operator.owed(view.Q))
    found = np.concatenate([view.received for view in parts])
    np.testing.assert_allclose(found, received, atol=1e-7)
    assert not [each for each in live._live.values() if hasattr(each.work, "solver")]
    assert not list(own_home.glob("stores/*"))


def test_a_coalition_solves_what_its_sums_determine():
    views, solved = list(recorded().views().values()), 0
    for size in (1, 3):
        team = form_coalition(views[:size])
        entries = estimate_entries(team)
        true = np.zeros_like(entries)
        for view in views[size:]:
            # Own rows as they are owed to others; every foreign node here is a boundary node.
            scale = view.operator.owe.max(axis=0).toarray().ravel()
            weight = np.asarray(
                (view.subgraph.out_adjacency()[:, view.subgraph.num_nodes :]).max(axis=1).toarray()
            ).ravel()
            factor = np.divide(scale, weight, out=np.zeros_like(scale), where=weight > 0)
            inside = np.isin(view.subgraph.ids, team.ids)
            at = np.searchsorted(team.ids, view.subgraph.ids[inside])
            true[at] = (factor[:, None] * view.Q)[inside]
        np.testing.assert_allclose(team.block @ true, team.sums, atol=1e-7)
        known = determined(team.block)
        solved += int(known.sum())
        np.testing.assert_allclose(entries[known], true[known], atol=1e-5)
    assert solved


def test_a_curious_client_is_scored_on_edges_it_has_no_part_in():
    views = list(recorded(vectors=24, block=8).views().values())
    whole = join([view.subgraph for view in views])
    team = form_coalition(views[:2])
    order = np.argsort(whole.ids)
    at = order[np.searchsorted(whole.ids, team.ids, sorter=order)]
    assert not np.isin(team.ids, np.concatenate([v.subgraph.ids for v in views[:2]])).any()
    adjacency = whole.out_adjacency()[at][:, at]
    scores, baseline = attack_curious(team, adjacency, np.random.default_rng(0))
    assert scores.edges.sum() == adjacency.nnz // 2
    assert scores.edges.size == team.ids.size * (team.ids.size - 1) // 2
    assert curve_of(scores).auc > 0.55
    assert baseline.values.max() >= 1.0


def test_the_server_sees_sealed_bytes_only():
    exchanges = recorded(backend="mask").exchanges
    sums = [each for each in exchanges if each.kind == "query.offline"]
    assert len({each.member for each in sums}) == 4
    assert all(each.answered for each in sums)
    again = recorded(backend="mask").exchanges
    assert [len(each.answered) for each in again] == [len(each.answered) for each in exchanges]


def test_directed_is_refused():
    with pytest.raises(ConfigError, match="--operator sym"):
        recorded(operator="directed", directed=True)


def test_arnoldi_keeps_no_images():
    view = next(iter(recorded(solver="arnoldi").views().values()))
    with pytest.raises(ConfigError, match="block-lanczos"):
        _ = view.received
