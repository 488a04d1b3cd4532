"""Write the pictures of reports: `make screenshots`, which names the browser.

The reports are those of a comparison and a run on generated banks; sizes are those of a desktop and
of a phone.
"""

import os
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import fedlap_app as fedlap

IMAGES = Path(__file__).parent / "images"
SIZES = {"desktop": (1280, 800, "light"), "phone": (390, 844, "dark")}


def main() -> None:
    """Train, write the reports, and take the pictures."""
    from fedlap_app.studies.compare import compare_beside

    with tempfile.TemporaryDirectory() as folder:
        orgs = fedlap.load("banks", clients=5, accounts=1000)
        run = fedlap.train(orgs, store=Path(folder) / "home", rounds=20, vectors=20)
        compare_beside(run)
        found = fedlap.compare(orgs, ["local", "fedavg", "fedlap+"], seeds=3, rounds=20, vectors=20)
        found.save(Path(folder) / "comparison")
        pages = {
            "run": run.report(),
            "comparison": fedlap.report(Path(folder) / "comparison"),
            "organisation": run.report(organisation=orgs.names[0]),
        }
        shoot(pages)


def shoot(pages: dict[str, Path]) -> None:
    """Take a picture of the top of every page at every size."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ["FEDLAP_BROWSER"], args=["--no-sandbox"]
        )
        for size, (width, height, scheme) in SIZES.items():
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=scheme,  # type: ignore[arg-type]
                offline=True,
            )
            for name, path in pages.items():
                page = context.new_page()
                page.goto(path.as_uri())
                page.wait_for_selector("html[data-drawn=yes]")
                page.screenshot(path=IMAGES / f"{name}-{size}.png")
        browser.close()


if __name__ == "__main__":
    main()
