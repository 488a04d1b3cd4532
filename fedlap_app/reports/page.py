"""A page in one file: style, charts and the library that draws them, with no network."""

import gzip
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files

from fedlap_app.errors import ConfigError
from fedlap_app.reports.elements import Figure, Section, figure_html, section_html

LIBRARY = "vega.js.gz"
# Nothing is loaded and nothing is sent; only what stands in the page runs, and no text as code.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


@dataclass(frozen=True)
class Page:
    """What a page says.

    Attributes
    ----------
    title, about
        Its title, and a line below.
    figures
        First screen.
    sections
        The rest.
    notice
        Who may see it.
    """

    title: str
    about: str
    figures: Sequence[Figure]
    sections: Sequence[Section]
    notice: str
    foot: Sequence[str] = field(default=())

    def to_html(self) -> str:
        """The whole file."""
        cards = "\n".join(map(figure_html, self.figures))
        sections = "\n".join(section_html(each, at) for at, each in enumerate(self.sections))
        links = "".join(
            f'<li><a href="#section-{at}">{escape(each.title)}</a></li>'
            for at, each in enumerate(self.sections)
        )
        foot = "".join(f"<p>{escape(line)}</p>" for line in self.foot)
        return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(self.title)}</title>
<style>{_asset("page.css")}</style>
</head>
<body>
<a class="skip" href="#content">To the content</a>
<header><p class="notice">{escape(self.notice)}</p><h1>{escape(self.title)}</h1>
<p>{escape(self.about)}</p></header>
<main id="content">
<dl class="figures">{cards}</dl>
<nav aria-label="Sections"><ul>{links}</ul></nav>
{sections}
</main>
<footer>{foot}</footer>
<script>{_library()}</script>
<script>{_asset("page.js")}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return (files("fedlap_app.reports") / name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script, as `docs/vega.py` bundles them."""
    try:
        packed = (files("fedlap_app.reports") / LIBRARY).read_bytes()
    except OSError:
        raise ConfigError(
            f"this installation lacks {LIBRARY}, without which no report can be drawn: install "
            "the package, or run `fedlap report` where it is installed"
        ) from None
    return gzip.decompress(packed).decode().replace("</script", "<\\/script")
