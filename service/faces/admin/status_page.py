"""The status page: one file of markup, styles, charts and scripts, with a policy that allows only these."""

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path

_PAGE = Path(__file__).parent / "page"


@dataclass(frozen=True, slots=True)
class Page:
    """The HTML and the `Content-Security-Policy` that it is served with."""

    body: bytes
    policy: str


def build_page() -> Page:
    """Build the page, which loads nothing from other addresses."""
    styles = [_read("uPlot.min.css"), _read("status.css")]
    scripts = [_read("uPlot.iife.min.js"), _read("status.js")]
    html = _read("status.html")
    html = html.replace("<!-- licence -->", f"<!--\nCharts are drawn by uPlot.\n\n{_read('uPlot.LICENSE')}\n-->")
    html = html.replace("<!-- styles -->", "".join(f"<style>{style}</style>\n" for style in styles))
    html = html.replace("<!-- scripts -->", "".join(f"<script>{script}</script>\n" for script in scripts))
    policy = (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)}; img-src data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return Page(html.encode(), policy)


def _read(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")


def _hashes(blocks: list[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(block.encode()).digest()).decode() for block in blocks)
    return " ".join(f"'sha256-{digest}'" for digest in digests)
