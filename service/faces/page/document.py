"""Pages in one file: markup, styles and scripts, with a policy that allows only these; the translation page."""

import base64
import enum
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType

from service.faces.http.answers import failure
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.routes import Route

_FOLDER = Path(__file__).parent
_STYLES = ("theme.css", "page.css")
_SCRIPTS = ("languages.js", "server.js", "words.js", "page.js")
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})

_NAVIGATION = '<nav aria-label="More"><a href="v1/docs">API</a></nav>'
HEADERS = {  # keep the pages of other sites out
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Page:
    """The HTML and the `Content-Security-Policy` that it is served with."""

    body: bytes
    policy: str

    def answer(self, headers: Mapping[str, str] = _NO_HEADERS) -> HttpAnswer:
        headers = {**headers, "Content-Security-Policy": self.policy}
        return HttpAnswer(HTTPStatus.OK, "text/html; charset=utf-8", self.body, headers)


def built(html: str, styles: Sequence[str], scripts: Sequence[str], parts: Mapping[str, str]) -> Page:
    """Build a page that loads nothing from other addresses.

    `styles` and `scripts` stand where `html` has the comments of these names; so does each of `parts`, by its name.
    """
    blocks = {
        **parts,
        "styles": "".join(f"<style>{style}</style>\n" for style in styles),
        "scripts": "".join(f"<script>{script}</script>\n" for script in scripts),
    }
    for name, block in blocks.items():
        html = html.replace(f"<!-- {name} -->", block)
    policy = (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)}; img-src data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return Page(html.encode(), policy)


class Calls(enum.Enum):
    """The calls that a port has, as the page's `<meta name="calls">` says."""

    V1 = "v1"  # /v1, with streams
    OPERATORS = "operators"  # /api/translate and /status.json


def translation_page(calls: Calls, navigation: str) -> Page:
    """Build the page; `navigation` is the HTML of the links in its head."""
    styles, scripts = ([read(name) for name in names] for names in (_STYLES, _SCRIPTS))
    parts = {"calls": f'<meta name="calls" content="{calls.value}">', "navigation": navigation}
    return built(read("page.html"), styles, scripts, parts)


def read(name: str) -> str:
    """Return a file of this folder."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def _hashes(blocks: Sequence[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(block.encode()).digest()).decode() for block in blocks)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


class TranslationPage:
    """The page; it needs no key, its calls do where others do."""

    def __init__(self) -> None:
        # The page changes with the server's version: a browser asks each time.
        self._answer = translation_page(Calls.V1, _NAVIGATION).answer({"Cache-Control": "no-cache", **HEADERS})

    def routes(self) -> Sequence[Route]:
        route = partial(Route, failure=failure, queues=False)
        return (route("GET", "/", "page", self.page, needs_key=False),)

    async def page(self, request: HttpRequest) -> HttpAnswer:
        return self._answer
