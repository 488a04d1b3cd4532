import json

from fedlap_app.reports.charts import Axis, bars, lines
from fedlap_app.reports.curves import curves, position
from fedlap_app.reports.elements import Figure, Section, Table, Words, table_html
from fedlap_app.reports.page import Page

EVIL = "</script><img src=x onerror=alert(1)>&\"'"


def test_no_text_becomes_markup_or_code():
    rows = [{"at": 1, "value": 2.0, "who": EVIL}, {"at": 2, "value": 3.0, "who": "b"}]
    chart = lines(EVIL, EVIL, rows, Axis("at", EVIL), Axis("value", EVIL), "who")
    page = Page(
        EVIL, EVIL, [Figure(EVIL, EVIL, EVIL)],
        [Section(EVIL, [chart, Table([EVIL], [[EVIL]], EVIL), Words([EVIL])])], EVIL, [EVIL],
    ).to_html()  # fmt: skip
    assert page.count("</script>") == 3  # of the chart, the library and the page itself
    assert "<img src=x" not in page
    assert json.loads(chart.to_json())["data"]["values"][0]["who"] == EVIL


def test_a_chart_leaves_out_what_is_no_number():
    rows = [{"at": 1, "value": float("nan"), "who": "a"}, {"at": 2, "value": 3.0, "who": "a"}]
    chart = lines("t", "s", rows, Axis("at", "x"), Axis("value", "y"), "who")
    assert chart.rows == [("a", 2, "3")]


def test_an_axis_without_a_title_has_a_header_in_the_table():
    rows = [{"organisation": "bank-a", "mb": 1.5, "what": "sent"}]
    names = Axis("organisation", "", kind="nominal")
    chart = bars("t", "s", rows, Axis("mb", "MB", zero=True), names, "what")
    assert chart.header == ("what", "organisation", "MB")


def test_a_column_that_says_nothing_is_left_out_and_numbers_stand_below_each_other():
    html = table_html(Table(("run", "test", "interval"), [("a", "9.5 %", ""), ("b", "none", "")]))
    assert "interval" not in html
    assert html.count('class="number"') == 3


def test_commands_in_a_sentence_are_marked_and_nothing_else_becomes_markup():
    page = Page("t", "a", [], [Section("s", [Words(["`fedlap <b>` and `"])])], "n").to_html()
    assert "<p><code>fedlap &lt;b&gt;</code> and `</p>" in page


def test_the_kept_round_is_counted_over_all_stages_and_marked():
    rows = [{"stage": s, "round": r, "val_accuracy": 0.5} for s in (0, 1) for r in (1, 2, 3)]
    assert position(rows, 1, 2) == 5
    assert position(rows, 2, 1) is None
    (chart,) = curves(rows, 5, "")
    assert [row["round"] for row in chart.spec["data"]["values"] if row["kept"]] == [5]
    assert '"stage 1 begins"' in chart.to_json()
    assert "of round 5 (dots): training no nodes, validation 50.00 %" in chart.says
