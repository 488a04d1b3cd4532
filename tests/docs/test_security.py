"""Every page names tests that exist, and every attack has a line in the table."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
NAME = re.compile(r"`(?:tests/)?((?:\w+/)*)(test_\w+)(\.py)?[^`]*`")


@pytest.fixture(scope="module")
def defined():
    sources = "\n".join(path.read_text(encoding="utf-8") for path in TESTS)
    return set(re.findall(r"^ *def (test_\w+)", sources, re.MULTILINE))


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_every_test_that_a_page_names_exists(page, defined):
    files = {path.relative_to(ROOT / "tests").as_posix() for path in TESTS}
    names = {path.name for path in TESTS}
    for folder, name, is_file in NAME.findall(page.read_text(encoding="utf-8")):
        if folder:
            assert f"{folder}{name}.py" in files
        elif is_file:
            assert f"{name}.py" in names
        else:
            assert name in defined


def test_every_attack_has_a_line():
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    start = text.index("## What a dishonest party tries")
    table = text[start : text.index("\n## ", start + 1)]
    for path in sorted((ROOT / "tests" / "adversary").glob("test_*.py")):
        assert f"`{path.name}`" in table, path.name
