import json
import threading

import pytest

from fedlap_app.cli.live import LivePage
from tests.cli.test_status import write

pytestmark = pytest.mark.browser


def test_the_live_page_follows_the_run(chromium, tmp_path):
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import expect

    folder = write(tmp_path / "run")
    with LivePage(folder) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        page, said = chromium.new_page(), []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(served.address)
        expect(page.locator("#state")).to_have_text("running, offline, 4 of 13 steps")
        expect(page.locator("#rows th")).to_have_text("bank-a")
        rows = [
            json.dumps({"round": n, "val_accuracy": n / 4, "test_accuracy": 0.5}) for n in (1, 2)
        ]
        (folder / "metrics.jsonl").write_text("\n".join(rows) + "\n")
        expect(page.locator("#scores")).to_have_text("Validation 50.00 %, test 50.00 %")
        found = Axe().run(page).response["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
        status = json.loads((folder / "status.json").read_text())
        ended = {"state": "finished", "phase": "finished"}
        counts = {"done": 1, "total": 1, "unit": "rounds"}
        (folder / "status.json").write_text(json.dumps({**status, **ended, "progress": counts}))
        expect(page.locator("#state")).to_have_text("finished, 1 of 1 round")
        page.close()
        served.shutdown()
        thread.join()
    assert [each for each in said if "favicon" not in each and "404" not in each] == []
