"""Pages in one file: markup, styles and scripts, with a policy that allows only these."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType

from service.faces.http.application import HttpAnswer

_FOLDER = Path(__file__).parent
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})

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
    """Build a page that loads nothing; `styles`, `scripts` and `parts` replace comments of these names in `html`."""
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


def read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _hashes(blocks: Sequence[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(block.encode()).digest()).decode() for block in blocks)
    return " ".join(f"'sha256-{digest}'" for digest in digests)
