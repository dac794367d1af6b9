"""The page that translates, as each port serves it: only the calls behind it differ."""

import enum
from pathlib import Path

from service.faces.page.document import Page, built

_FOLDER = Path(__file__).parent
_STYLES = ("theme.css", "page.css")
_SCRIPTS = ("languages.js", "server.js", "words.js", "page.js")


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
