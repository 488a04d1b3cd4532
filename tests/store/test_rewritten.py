"""Small JSON files that are written again and again."""

import os

import pytest

from fedlap_app.errors import RunError
from fedlap_app.store.rewritten import RewrittenFile


@pytest.mark.parametrize("durable", [True, False])
def test_the_last_content_is_read(tmp_path, durable):
    file = RewrittenFile(tmp_path / "new" / "a.json", durable=durable)
    assert file.read() is None
    for text, value in (('{"a": [1, 2, 3]}', {"a": [1, 2, 3]}), ('{"a": 1}', {"a": 1})):
        file.write(text)
        assert file.read() == value
        assert RewrittenFile(file.path, durable=durable).read() == value
    assert file.path.stat().st_mode & 0o077 == 0


def test_another_process_may_have_written(tmp_path):
    first, second = (RewrittenFile(tmp_path / "a.json", durable=False) for _ in range(2))
    first.write('{"long": "content of the first one"}', {"long": "content of the first one"})
    second.write('{"b": 2}')
    assert first.read() == {"b": 2}
    (tmp_path / "a.json").unlink()
    assert first.read() is None


def test_a_damaged_file_is_refused_without_its_place(tmp_path):
    (tmp_path / "a.json").write_text("[1")
    with pytest.raises(RunError, match=r"^a\.json of the store is damaged"):
        RewrittenFile(tmp_path / "a.json", durable=True).read()


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    file = RewrittenFile(tmp_path / "a.json", durable=False)
    monkeypatch.setattr(os, "pwrite", lambda handle, content, offset: 1)
    with pytest.raises(RunError, match=r"a\.json of the store cannot be written .No space left"):
        file.write('{"a": 1}')
