import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.settings import Settings, parse_settings
from fedlap_app.studies.frontier_grid import grid_of, parse_choices
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.plan import find_shape

SETTINGS = Settings(rank=50, block=10, operator="regularised")


def points(
    lists: dict[str, list[str | int]], bound: int = 31, nodes: int = 1000
) -> tuple[list[tuple[int, int, int]], list[dict[str, str]]]:
    found, skipped = grid_of(SETTINGS, lists, bound, nodes)
    return [(point.vectors, point.rank, point.block) for point in found], skipped


def test_lists_are_read_without_repetitions() -> None:
    assert parse_choices("vectors", "bound, 100,300,100") == ["bound", 100, 300]
    assert parse_choices("rank", "0,300") == [0, 300]
    assert parse_choices("keep", "smallest,magnitude") == ["smallest", "magnitude"]


@pytest.mark.parametrize(
    ("key", "text", "says"),
    [
        ("vectors", "3,x", "--grid-vectors: vectors = 'x'"),
        ("vectors", "0", "the nearest valid value is 1"),
        ("block", "1,,2", "empty place"),
        ("rank", "", "for example --grid-rank 30,100"),
        ("operator", "symm", "the nearest valid choice is 'sym'"),
        ("keep", "bound", "not one of smallest, largest, magnitude"),
    ],
)
def test_a_bad_list_is_told_in_one_sentence(key: str, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as error:
        parse_choices(key, text)
    assert "\n" not in str(error.value)


def test_settings_without_a_list_are_cut_to_the_vectors() -> None:
    found, skipped = points({"vectors": ["bound", 5, 100]})
    assert found == [(31, 31, 10), (5, 5, 5), (100, 50, 10)]
    assert skipped == []


def test_listed_values_that_do_not_fit_are_skipped_and_said() -> None:
    lists: dict[str, list[str | int]] = {
        "vectors": [20, 2000],
        "rank": [0, 30, 20],
        "block": [1, 25],
    }
    found, skipped = points(lists)
    assert found == [(20, 20, 1)]
    reasons = {each["setting"]: each["reason"] for each in skipped}
    assert len(reasons) == 2 * 2 + 3 * 2 - 1
    assert "kept than are exchanged" in reasons[name(20, 30, 1)]
    assert "a block holds" in reasons[name(20, 20, 25)]
    assert "only 1000 nodes" in reasons[name(2000, 30, 1)]


def name(vectors: int, rank: int, block: int) -> str:
    return f"regularised, smallest, {vectors} vectors, {rank} kept, block {block}"


def test_a_bound_of_no_vectors_leaves_the_others() -> None:
    found, skipped = points({"vectors": ["bound", 40]}, bound=0)
    assert [vectors for vectors, _, _ in found] == [40]
    assert skipped[0]["reason"] == "the bound leaves no vector"


@pytest.mark.parametrize("operator", ["sym", "directed"])
def test_the_vectors_exchanged_are_the_columns_of_all_block_products(operator: str) -> None:
    given = {"dataset": "digits", "clients": 3, "operator": operator, "directed": True}
    settings, shape = find_shape(parse_settings(given), None, None)
    lists: dict[str, list[str | int]] = {"vectors": ["bound"], "operator": [operator]}
    found, _ = grid_of(settings, lists, bound=40, nodes=shape.nodes)
    phase = Phase(found[0].settings(settings).offline_spec, shape)
    assert found[0].exchanged == sum(each.width for each in phase.rounds) == 40
