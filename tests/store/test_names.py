import pytest

from fedlap_app.store import names

HASH = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("kind", "fields", "name"),
    [
        (names.RESULT, {"kind": "basis", "key": HASH}, f"basis-{HASH}"),
        (names.PHASE_FILE, {"job": HASH, "what": "answered-1"}, f"offline-{HASH}-answered-1"),
        (names.SEALED_FILE, {"job": HASH, "what": "reply-odd-1"}, f"training-{HASH}-reply-odd-1"),
        (names.SEALED_FILE, {"job": HASH, "what": "home"}, f"training-{HASH}-home"),
        (names.KEYS, {"key": HASH}, f"trainings-{HASH}"),
        (names.TRAINING, {"run": "7".zfill(20)}, f"train-{7:020d}"),
        (names.MOMENTS, {"stage": "1", "number": "12"}, "moments-1-12.npz"),
        (
            names.PART,
            {"which": "own", "job": "none", "step": "3", "index": "-0"},
            "own-none-3-0",
        ),
    ],
)
def test_a_name_is_made_and_taken_apart(kind, fields, name):
    made = {key: int(value) if key == "run" else value for key, value in fields.items()}
    assert kind(**made) == name
    assert kind.read(name) == fields
    assert f"{name}x" not in kind
    assert f"x/{name}" not in kind


def test_an_unfinished_file_says_what_it_becomes():
    assert names.finished(names.unfinished("model.npz")) == "model.npz"
    assert names.finished("model.npz") == ""
