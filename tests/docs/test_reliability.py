"""Every line of the table of faults names a test that is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_names_tests_that_exist():
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)", text))
    sources = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests/integration").glob("test_*.py")
    )
    defined = set(re.findall(r"^def (test_\w+)", sources, re.MULTILINE))
    assert len(named) >= 13
    assert named <= defined


def test_every_fault_has_a_line():
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    for name in ("test_faults.py", "test_refusals.py"):
        source = (ROOT / "tests" / "integration" / name).read_text(encoding="utf-8")
        for test in re.findall(r"^def (test_\w+)", source, re.MULTILINE):
            assert f"`{test}" in text, test
