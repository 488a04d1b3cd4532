from fedlap_app.settings import parse_settings
from fedlap_app.studies import offline_bench
from fedlap_app.studies.offline_bench import bench_offline

SMALL = {"dataset": "banks", "accounts": 240, "clients": 3, "vectors": 8, "block": 4}


def test_every_solver_and_back_end_has_a_row_and_ratios():
    settings = parse_settings(SMALL)
    solvers = ["block-lanczos", "dcgs2"]
    report = bench_offline(settings, solvers, ["plain", "mask"], turns=1, check=True)
    rows = {(row["solver"], row["backend"]): row for row in report["rows"]}
    assert [row["backend"] for row in report["rows"][:4]] == ["bare", "textbook", "plain", "mask"]
    assert rows["block-lanczos", "mask"]["round_trips"] == 5
    assert rows["dcgs2", "mask"]["round_trips"] == 2 * 8 + 3
    for solver in solvers:
        captures = {rows[solver, name]["capture"] for name in ("bare", "plain", "mask")}
        assert max(captures) - min(captures) < 1e-6
    assert all(row["cpu_seconds"] > 0 for row in report["rows"])
    assert {bar["solver"] for bar in report["bars"]} == set(solvers)


def test_a_long_run_is_cut_short_and_said_so(monkeypatch):
    monkeypatch.setattr(offline_bench, "LONGEST", 0.0)
    monkeypatch.setattr(offline_bench, "MANY_ROUNDS", 100)
    monkeypatch.setattr(offline_bench, "FEW_VECTORS", 4)
    settings = parse_settings({**SMALL, "clients": 2, "vectors": 30})
    report = bench_offline(settings, ["arnoldi"], ["plain"], turns=1)
    row = report["rows"][-1]
    assert row["extrapolated"]
    # 1 + sum of l + 2, the totals, and two at the end.
    assert row["round_trips"] == 1 + sum(step + 2 for step in range(1, 31)) + 3
    few = 1 + sum(step + 2 for step in range(1, 5)) + 3
    assert row["cpu_seconds"] > row["cpu_seconds_iteration"] > 0
    assert row["round_trips"] > 10 * few
    assert row["capture"] is None
