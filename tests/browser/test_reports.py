import pytest

pytestmark = pytest.mark.browser
KINDS = ("run", "runs", "comparison", "organisation")
LEAST = {"run": 5, "runs": 4, "comparison": 2, "organisation": 7}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_all_charts_are_drawn_and_the_console_is_silent(opened, kind, size):
    page = opened(kind, size, "light" if size == "desktop" else "dark")
    assert page.said == []
    charts = page.locator("[data-chart]").count()
    assert charts >= LEAST[kind]
    assert page.locator("[data-chart] svg").count() == charts
    marks = "[data-chart] .role-mark path, [data-chart] .role-mark rect"
    assert page.locator(marks).count() >= charts
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_can_be_used_within_two_seconds(opened, pages, kind):
    page = opened(kind)
    assert page.evaluate("performance.getEntriesByType('navigation')[0].domInteractive") < 2000
    assert pages[kind].stat().st_size < 3_000_000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened, kind, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = opened(kind, scheme=scheme)
    for details in page.locator("details").all():
        details.evaluate("each => { each.open = true }")
    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found] == []


def test_filters_work_by_keyboard_alone(opened):
    from playwright.sync_api import expect

    page = opened("run")
    box = page.locator("input[data-filter]").first
    name = box.get_attribute("data-filter")
    lines = page.locator(f"[data-chart='{name}'] .mark-line path")
    before = lines.count()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.filter") == name:
            break
    page.keyboard.press("Space")
    expect(lines).to_have_count(before - 1)
    page.keyboard.press("Space")
    expect(lines).to_have_count(before)


def test_tables_open_by_keyboard_and_hold_the_numbers(opened):
    page = opened("comparison")
    summary = page.locator("summary").first
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator("details[open] td").count() >= 3


def test_a_printed_page_shows_its_charts(opened):
    page = opened("run")
    page.emulate_media(media="print")
    assert page.locator("[data-chart] svg").first.is_visible()
    assert not page.locator("nav").is_visible()
    assert len(page.pdf()) > 20_000
