"""The translation page, in each language that has a file in `locales`, on the port of callers and on that of operators.

A locale is a flat JSON object. `page.html` names its entries as `$name`, the scripts as `say("name")`. `{name}` in a
text stands for a value, and an entry per plural form ends in its name (`_one`, `_other`; see `Intl.PluralRules`).
"""

import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import parse_qs

from service.documents import ENDINGS
from service.documents.opening import MAX_BYTES
from service.faces.http.answers import failure
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.routes import Route
from service.faces.page.document import HEADERS, Page, built, read

Locale = Mapping[str, str]

_LOCALES = Path(__file__).parent / "locales"
_STYLES = ("theme.css", "page.css")
_SCRIPTS = (
    *("elements.js", "locale.js", "languages.js", "server.js", "failures.js", "parts.js", "words.js", "memory.js"),
    *("address.js", "code.js", "clipboard.js", "pair.js", "text.js", "marking.js", "history.js", "files.js"),
    *("tabs.js", "page.js"),
)
_FALLBACK = "en"
_NAVIGATION = '<nav aria-label="API"><a href="v1/docs">API</a></nav>'
_MOST_BYTES = 6  # that a character takes in JSON


class Calls(enum.Enum):
    """The API that a port's page calls."""

    V1 = "v1"  # /v1, with streams and files
    OPERATORS = "operators"  # /api/translate and /status.json


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a call on a port."""

    max_characters: int
    max_body_bytes: int


class TranslationPage:
    """The page of a port: for each request the one in the reader's language."""

    def __init__(self, calls: Calls, navigation: str, limits: Limits, headers: Mapping[str, str]) -> None:
        """`navigation` is the HTML of the links in its head."""
        self._answers = {
            code: translation_page(code, calls, navigation, limits).answer({**headers, "Vary": "Accept-Language"})
            for code in locale_codes()
        }

    def answer(self, query: str, headers: Mapping[str, str]) -> HttpAnswer:
        """Return the page in the language of `?lang=`, else of the browser. Names of `headers` are in lower case."""
        wanted = [*parse_qs(query).get("lang", ()), *_accepted(headers.get("accept-language", "")), _FALLBACK]
        return next(self._answers[code] for code in wanted if code in self._answers)


class CallersPage:
    """The page on the port of callers; it needs no key, its calls do where others do."""

    def __init__(self, limits: Limits) -> None:
        # The page changes with the server's version: a browser asks each time.
        self._page = TranslationPage(Calls.V1, _NAVIGATION, limits, {"Cache-Control": "no-cache", **HEADERS})

    def routes(self) -> Sequence[Route]:
        route = partial(Route, failure=failure, queues=False)
        return (route("GET", "/", "page", self.page, needs_key=False),)

    async def page(self, request: HttpRequest) -> HttpAnswer:
        return self._page.answer(request.query, request.headers)


def translation_page(code: str, calls: Calls, navigation: str, limits: Limits) -> Page:
    locale = locale_of(code)
    takes_files = calls is Calls.V1
    settings = {
        "calls": calls.value,
        "locale": locale,
        "maxCharacters": min(limits.max_characters, limits.max_body_bytes // _MOST_BYTES),
        "endings": ENDINGS if takes_files else (),
        "maxFileBytes": MAX_BYTES,
    }
    html = Template(read("page.html")).substitute({name: escape(text) for name, text in locale.items()}, lang=code)
    scripts = [f"const SETTINGS = {_script_json(settings)};", *map(read, _SCRIPTS)]
    parts = {"navigation": navigation, "locales": _links(code, locale["page_languages"])}
    return built(html, [read(name) for name in _STYLES], scripts, parts)


def locale_codes() -> list[str]:
    return sorted(path.stem for path in _LOCALES.glob("*.json"))


def locale_of(code: str) -> Locale:
    locale: Locale = json.loads((_LOCALES / f"{code}.json").read_text(encoding="utf-8"))
    return locale


def _accepted(header: str) -> list[str]:
    """Return the languages of an Accept-Language header, without regions, best first (RFC 9110, 12.5.4)."""
    accepted = []
    for item in header.split(","):
        tag, _, weight = item.partition(";q=")
        try:
            accepted.append((float(weight or 1), tag.strip().partition("-")[0].lower()))
        except ValueError:  # of no weight that is known
            continue
    return [code for weight, code in sorted(accepted, key=lambda each: -each[0]) if weight > 0]


def _links(current: str, label: str) -> str:
    links = []
    for code in locale_codes():
        mark = ' aria-current="true"' if code == current else ""
        links.append(f'<a href="?lang={code}" lang="{code}" hreflang="{code}"{mark}>{locale_of(code)["name"]}</a>')
    return f'<nav aria-label="{escape(label)}">{"".join(links)}</nav>'


def _script_json(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
