"""Reports of real runs, and a browser that opens them; without one these tests are skipped."""

import os

import pytest

import fedlap_app as fedlap

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
QUICK = {"rounds": 8, "self_training": 0, "vectors": 20}


@pytest.fixture(scope="session")
def chromium():
    """The browser that `make browser` names."""
    path = os.environ.get("FEDLAP_BROWSER")
    if not path:
        pytest.skip("a browser opens the reports under `make browser`, which names it")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def pages(chromium, tmp_path_factory):
    """A report of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    orgs = fedlap.load("banks", clients=3, accounts=400)
    run = fedlap.train(orgs, **QUICK)
    other = fedlap.train(orgs, "fedavg", rounds=8, self_training=0)
    found = fedlap.compare(orgs, ["local", "fedavg", "fedlap+"], seeds=2, rounds=8, self_training=0)
    found.save(folder / "comparison")
    return {
        "run": run.report(folder / "run.html"),
        "runs": fedlap.report([run, other], folder / "runs.html"),
        "comparison": fedlap.report(folder / "comparison"),
        "organisation": run.report(folder / "own.html", organisation=orgs.names[0]),
    }


@pytest.fixture
def opened(chromium, pages):
    """Open a page without network, and collect what the console says."""
    contexts = []

    def open_(kind, size="desktop", scheme="light"):
        width, height = SIZES[size]
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.said = []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.goto(pages[kind].as_uri())
        page.wait_for_selector("html[data-drawn=yes]", timeout=20_000)
        return page

    yield open_
    for context in contexts:
        context.close()
