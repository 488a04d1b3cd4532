import http.client
import json
import threading

import pytest

from fedlap_app.cli.live import LivePage
from tests.cli.test_status import write


@pytest.fixture
def page(tmp_path):
    folder = write(tmp_path / "run")
    row = {"round": 1, "val_accuracy": 0.5, "test_accuracy": 0.25, "secret": "mark"}
    (folder / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    with LivePage(folder) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def ask(page, path, host=None, method="GET"):
    port = page.server_address[1]
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path, headers={"Host": host or f"127.0.0.1:{port}"})
    answer = connection.getresponse()
    return answer, answer.read().decode()


def test_the_page_and_the_status_behind_the_token(page):
    answer, text = ask(page, f"/{page.token}/")
    assert answer.status == 200
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert page.token not in text
    for name in ("live.js", "page.css"):
        assert ask(page, f"/{page.token}/{name}")[0].status == 200
    answer, text = ask(page, f"/{page.token}/status.json")
    found = json.loads(text)
    assert (found["state"], found["progress"]["done"]) == ("running", 4)
    assert found["rounds"] == [{"train_accuracy": None, "val_accuracy": 0.5, "test_accuracy": 0.25}]
    assert not {"pid", "host", "run_folder"} & set(found)


@pytest.mark.parametrize("path", ["/", "/status.json", "/{no}/status.json", "/{token}/../x", "//"])
def test_nothing_without_the_token(page, path):
    answer, text = ask(page, path.format(no="A" * 32, token=page.token))
    assert answer.status == 404
    assert "running" not in text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil:80"])
def test_another_host_is_refused(page, host):
    assert ask(page, f"/{page.token}/status.json", host)[0].status == 404


def test_it_listens_on_the_loopback_and_changes_nothing(page):
    assert page.server_address[0] == "127.0.0.1"
    assert ask(page, f"/{page.token}/status.json", method="POST")[0].status == 501


def test_tokens_differ(page, tmp_path):
    with LivePage(page.folder) as other:
        assert other.token != page.token
        assert len(other.token) >= 32
