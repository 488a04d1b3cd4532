"""Names that people cannot tell apart: letters of another script, and pairs of names.

A name is in one script, or in one that is written together with Latin letters, and in the usual
forms of its letters; this is what Unicode Technical Standard 39 calls highly restrictive. Two names
look alike when nothing is left that tells them apart once case, forms of letters and letters that
look like Latin ones are gone.
"""

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_TOGETHER = (
    frozenset({"LATIN", "CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"}),
    frozenset({"LATIN", "CJK", "IDEOGRAPHIC", "HANGUL"}),
    frozenset({"LATIN", "CJK", "IDEOGRAPHIC", "BOPOMOFO"}),
)
# The letters of Cyrillic, Greek and Armenian that look like Latin ones.
_LIKE_LATIN = str.maketrans(
    "асеіјорԛѕѵԝхуһԁӏАВСЕНІЈКМОРԚЅТѴԜХУԌҺӀαγικνορυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսոհցզՕՍՏ",
    "aceijopqsvwxyhdlABCEHIJKMOPQSTVWXYGhlayiknopuxABEZHIKMNOPTYXounhgqOUS",
)
# Signs and Latin letters that are taken for each other.
_LIKE_OTHERS = str.maketrans("0Il1|ıɑɡ‐‑‒–—−’‘ʼ", "olllliag------'''")


@lru_cache(maxsize=4096)
def fault_of_letters(name: str) -> str:
    """What makes the letters of a name look like others; empty: nothing."""
    if name.isascii():
        return ""
    usual = unicodedata.normalize("NFKC", name)
    if usual != unicodedata.normalize("NFC", name):
        return f"has letters in an unusual form: write {usual!r}"
    scripts = {_script(letter) for letter in name if letter.isalpha()}
    if len(scripts) > 1 and not any(scripts <= some for some in _TOGETHER):
        return (
            f"mixes letters of {' and '.join(sorted(each.capitalize() for each in scripts))}, "
            "which look alike: take those of one script"
        )
    latin = usual.translate(_LIKE_LATIN)
    if "LATIN" not in scripts and latin != name and latin.isascii():
        return f"looks like {latin!r} in Latin letters: take a name that cannot be mistaken"
    return ""


@lru_cache(maxsize=4096)
def skeleton(name: str) -> str:
    """What is left of a name without what people overlook."""
    usual = unicodedata.normalize("NFKC", name).translate(_LIKE_LATIN).translate(_LIKE_OTHERS)
    digits = (str(unicodedata.decimal(each, each)) for each in usual)
    folded = "".join(digits).casefold().translate(_LIKE_OTHERS)
    return unicodedata.normalize("NFKC", folded).replace("rn", "m").replace("vv", "w")


def alike(names: Iterable[str]) -> tuple[str, str] | None:
    """Two of the names that look alike; None: there are none."""
    seen: dict[str, str] = {}
    for name in names:
        for reduced in (skeleton(name), _folded(name)):
            other = seen.setdefault(reduced, name)
            if other != name:
                return other, name
    return None


def _folded(name: str) -> str:
    """A name without case and without variants of the same letters."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _script(letter: str) -> str:
    """The script of a letter, which its name in Unicode begins with."""
    return unicodedata.name(letter, "UNKNOWN").split()[0]
