import json

from fedlap_app.reports.charts import Axis, lines
from fedlap_app.reports.elements import Figure, Section, Table, Words
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
