"""The registry is the only place that asks what a method is called."""

import ast
from pathlib import Path

from fedlap_app.methods.registry import BUILT_IN

ROOT = Path(__file__).parents[2]
OTHERS = {("fedlap_app/logs.py", "fedlap")}  # a logger of that name


def compared_texts(path):
    """Texts that something is compared with, or looked for among."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        found = ()
        if isinstance(node, ast.Compare):
            found = (node.left, *node.comparators)
        elif isinstance(node, ast.MatchValue):
            found = (node.value,)
        for side in found:
            for each in ast.walk(side):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield each.value


def test_nobody_else_compares_with_the_name_of_a_method():
    found = set()
    for room in ("fedlap_app", "server_app", "client_app"):
        for path in (ROOT / room).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if any(f'"{name}"' in text for name in BUILT_IN):
                name = path.relative_to(ROOT).as_posix()
                found |= {(name, text) for text in compared_texts(path) if text in BUILT_IN}
    assert found == OTHERS
