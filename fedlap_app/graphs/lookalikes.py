"""Names that people cannot tell apart: letters of another script, and pairs of names.

A name is in one script, or in one that is written together with Latin letters, and in the usual
forms of its letters; this is what Unicode Technical Standard 39 calls highly restrictive. Scripts
are those in everyday use, and what is neither letter nor digit is one of a few signs. Two names
look alike when nothing is left that tells them apart once case, forms of letters, marks on them and
letters that look like Latin ones are gone.
"""

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_TOGETHER = (
    frozenset({"LATIN", "CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"}),
    frozenset({"LATIN", "CJK", "IDEOGRAPHIC", "HANGUL"}),
    frozenset({"LATIN", "CJK", "IDEOGRAPHIC", "BOPOMOFO"}),
)
# Scripts in everyday use; Cherokee or Lisu, for instance, have letters that are Latin ones to look
# at, and hardly anybody whose name it is.
_USUAL = frozenset().union(*_TOGETHER) | {
    "GREEK", "CYRILLIC", "ARMENIAN", "GEORGIAN", "HEBREW", "ARABIC", "THAANA", "ETHIOPIC",
    "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU", "KANNADA",
    "MALAYALAM", "SINHALA", "THAI", "LAO", "TIBETAN", "MYANMAR", "KHMER",
}  # fmt: skip
# Code points of letters, of scripts that have more than everyday letters: no phonetic ones, no
# small capitals and no parts of syllables.
_LETTERS = {
    "LATIN": (
        *range(0xC0, 0x138), *range(0x139, 0x180), 0x18F, 0x259, 0x1A0, 0x1A1, 0x1AF, 0x1B0,
        *range(0x1CD, 0x1DD), 0x1E6, 0x1E7, *range(0x218, 0x21C), *range(0x1E00, 0x1EFA),
    ),
    "GREEK": (*range(0x386, 0x3CF), *range(0x1F00, 0x2000)),
    "CYRILLIC": range(0x400, 0x530),
    "HANGUL": range(0xAC00, 0xD7A4),
}  # fmt: skip
_SIGNS = frozenset("\u2019\u2013\u2014\u00b7\u30fb\u201c\u201d\u201e\u00ab\u00bb")
# Marks of letters that have no code point with it; the longest letters in use have two.
_COMBINED = frozenset(map(chr, range(0x300, 0x332)))
_MOST_MARKS = 2
# The letters of Cyrillic, Greek and Armenian that look like Latin ones.
_LIKE_LATIN = str.maketrans(
    "асеіјорԛѕѵԝхуһԁӏАВСЕНІЈКМОРԚЅТѴԜХУԌҺӀαγικνορυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսոհցզՕՍՏ",
    "aceijopqsvwxyhdlABCEHIJKMOPQSTVWXYGhlayiknopuxABEZHIKMNOPTYXounhgqOUS",
)
# Signs and letters that are taken for each other, of Latin and of Chinese and Japanese.
_LIKE_OTHERS = str.maketrans(
    "0Il1|ıɑɡøØłŁđĐħĦŧŦ‐‑‒–—−’‘ʼー一丨ロエニカタトハチヘ",
    "olllliagoOlLdDhHtT------'''--l口工二力夕卜八千へ",
)


@lru_cache(maxsize=4096)
def fault_of_letters(name: str) -> str:
    """What makes the letters of a name look like others; empty: nothing."""
    if name.isascii():
        return ""
    usual = unicodedata.normalize("NFKC", name)
    if usual != unicodedata.normalize("NFC", name):
        return f"has letters in an unusual form: write {usual!r}"
    scripts = {_script(letter) for letter in usual if letter.isalpha()}
    if len(scripts) > 1 and not any(scripts <= some for some in _TOGETHER):
        return (
            f"mixes letters of {' and '.join(sorted(each.capitalize() for each in scripts))}, "
            "which look alike: take those of one script"
        )
    if odd := _unusual(usual):
        what = unicodedata.name(odd, "a sign without a name").lower()
        return f"has {odd!r} ({what}), which can be mistaken: take usual letters and 0 to 9"
    latin = usual.translate(_LIKE_LATIN)
    if "LATIN" not in scripts and latin != name and latin.isascii():
        return f"looks like {latin!r} in Latin letters: take a name that cannot be mistaken"
    return ""


def _unusual(name: str) -> str:
    """The first letter, mark or sign of a name that is none of everyday use; empty: none is."""
    script, marks = "", 0
    for letter in name:
        if not unicodedata.category(letter).startswith("M"):
            script, marks = _script(letter), 0
        marks += unicodedata.category(letter).startswith("M")
        if marks > _MOST_MARKS or not _is_usual(letter, script):
            return letter
    return ""


def _is_usual(letter: str, script: str) -> bool:
    """Whether a letter, or a mark on one of a script, is of everyday use."""
    if letter.isascii():
        return True
    if unicodedata.category(letter).startswith("M"):
        return letter in _COMBINED if script in _LETTERS else _script(letter) == script
    if not letter.isalpha():
        return letter in _SIGNS
    return script in _USUAL and (script not in _LETTERS or ord(letter) in _LETTERS[script])


@lru_cache(maxsize=4096)
def skeleton(name: str) -> str:
    """What is left of a name without what people overlook."""
    usual = unicodedata.normalize("NFKC", name).translate(_LIKE_LATIN).translate(_LIKE_OTHERS)
    digits = (str(unicodedata.decimal(each, each)) for each in usual)
    folded = "".join(digits).casefold().translate(_LIKE_OTHERS)
    bare = (each for each in unicodedata.normalize("NFKD", folded) if each not in _COMBINED)
    whole = unicodedata.normalize("NFKC", "".join(bare)).translate(_LIKE_LATIN)
    return " ".join(whole.translate(_LIKE_OTHERS).replace("rn", "m").replace("vv", "w").split())


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
