"""Every page is one file, its policy allows what is in it and nothing else, and operators' pages have their parts."""

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from service.domain.translation import Flag
from service.faces.admin.server import operators_page, status_page
from service.faces.http.application import HttpAnswer
from service.faces.page import translation
from service.faces.page.document import Page, built
from service.faces.page.translation import (
    CallersPage,
    Calls,
    Limits,
    TranslationPage,
    locale_codes,
    locale_of,
    translation_page,
)

LIMITS = Limits(max_characters=100_000, max_body_bytes=2**20)
PAGES = pytest.mark.parametrize(
    "page",
    [
        *(translation_page(code, Calls.V1, "<nav></nav>", LIMITS) for code in locale_codes()),
        translation_page("en", Calls.OPERATORS, "", LIMITS),
        status_page(),
    ],
    ids=[*locale_codes(), "operators", "status"],
)


@PAGES
def test_every_block_is_allowed_by_its_hash(page: Page) -> None:
    for kind in ("script", "style"):
        blocks = re.findall(f"<{kind}>(.*?)</{kind}>", page.body.decode(), re.DOTALL)
        digests = [base64.b64encode(hashlib.sha256(block.encode()).digest()).decode() for block in blocks]
        (directive,) = re.findall(f"{kind}-src ([^;]*)", page.policy)
        assert directive == " ".join(f"'sha256-{digest}'" for digest in digests)
        assert len(blocks) >= 2


@PAGES
def test_nothing_is_loaded_from_anywhere(page: Page) -> None:
    html = page.body.decode()
    tags = re.sub("<(script|style)>.*?</\\1>|<!--.*?-->", "", html, flags=re.DOTALL)
    links = re.findall(r'(?:src|href|action)="([^"]*)"', tags)
    assert all(link.startswith(("data:", "?lang=")) or link in ("./", "status") for link in links)
    assert "<script" not in tags
    assert "style=" not in tags  # the policy would drop it
    assert re.search(r"\bon[a-z]+=", tags) is None
    assert "@import" not in html
    assert "url(" not in html
    assert page.policy.startswith("default-src 'none'; ")
    assert "unsafe" not in page.policy


@PAGES
def test_nothing_stands_where_a_part_belongs(page: Page) -> None:
    html = re.sub("<script>.*?</script>", "", page.body.decode(), flags=re.DOTALL)
    assert not re.search(r"<!-- \w+ -->|\$[a-z]", html)


def test_parts_stand_where_their_names_are() -> None:
    page = built("<!-- styles --><!-- who -->!<!-- scripts -->", ["a{}"], ["b()"], {"who": "<p>you</p>"})
    assert page.body == b"<style>a{}</style>\n<p>you</p>!<script>b()</script>\n"
    answer = page.answer({"X-One": "1"})
    assert answer.headers == {"X-One": "1", "Content-Security-Policy": page.policy}


def settings_of(page: Page) -> dict[str, object]:
    (settings,) = re.findall("<script>const SETTINGS = (.*);</script>", page.body.decode())
    found: dict[str, object] = json.loads(settings)
    return found


def test_a_port_tells_its_page_what_it_takes() -> None:
    callers, operators = (settings_of(translation_page("en", calls, "", LIMITS)) for calls in Calls)
    assert (callers["calls"], operators["calls"]) == ("v1", "operators")
    assert ".docx" in str(callers["endings"])
    assert operators["endings"] == []
    assert callers["maxCharacters"] == 100_000
    small = settings_of(translation_page("en", Calls.V1, "", Limits(100_000, 6000)))
    assert small["maxCharacters"] == 1000  # a body has room for no more


def test_all_parts_are_in_place_with_their_licence() -> None:
    html = status_page().body.decode()
    assert "uPlot (v1.6.32)" in html
    assert "Permission is hereby granted" in html
    assert "Charts: uPlot 1.6.32" in html  # as the page itself says


def operators(query: str = "", **headers: str) -> HttpAnswer:
    return operators_page(LIMITS).answer(query, headers)


@pytest.mark.parametrize(("html", "name"), [(operators().body, "Translate"), (status_page().body, "Status")])
def test_both_pages_of_operators_have_both_tabs_and_say_which_is_open(html: bytes, name: str) -> None:
    (navigation,) = re.findall('<nav aria-label="Pages">.*?</nav>', html.decode())
    assert re.findall(r'<a href="([^"]+)"', navigation) == ["./", "status"]
    assert re.findall(r'aria-current="page">(\w+)<', navigation) == [name]


# --- languages of the page


def language_of(answer: HttpAnswer) -> str:
    (code,) = re.findall('<html lang="(.*?)"', answer.body.decode())
    return str(code)


@pytest.mark.parametrize(
    ("accepted", "code"),
    [
        ("", "en"),
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("HI-in", "hi"),
        ("fr, hi;q=0.3, de;q=0.5", "de"),
        ("de;q=0, hi;q=0.1", "hi"),
        ("fr, *;q=0.5", "en"),
        ("de;q=many, en", "en"),
    ],
)
def test_a_reader_gets_the_page_in_the_language_that_the_browser_asks_for(accepted: str, code: str) -> None:
    page = TranslationPage(Calls.V1, "", LIMITS, {})
    answer = page.answer("", {"accept-language": accepted})
    assert language_of(answer) == code
    assert answer.headers["Vary"] == "Accept-Language"
    assert language_of(page.answer("lang=hi", {"accept-language": accepted})) == "hi"
    assert language_of(page.answer("lang=xx&lang=../../etc", {"accept-language": accepted})) == code


def test_callers_need_no_key_for_the_page() -> None:
    (route,) = CallersPage(LIMITS).routes()
    assert not route.needs_key


_PLURALS = re.compile("_(zero|one|two|few|many|other)$")


@pytest.mark.parametrize("code", locale_codes())
def test_every_language_has_every_text_with_the_same_values(code: str) -> None:
    def values(text: str) -> set[str]:
        return set(re.findall(r"\{(\w+)\}", text))

    ours, theirs = locale_of("en"), locale_of(code)
    assert {_PLURALS.sub("", name) for name in theirs} == {_PLURALS.sub("", name) for name in ours}
    assert {name for name in theirs if not theirs[name].strip()} == set()
    differing = {name for name in theirs if values(theirs[name]) - values(ours.get(name, ours.get(other(name), "")))}
    assert differing == set()
    assert theirs["dir"] in ("ltr", "rtl")


def other(name: str) -> str:
    return _PLURALS.sub("_other", name)


def test_scripts_and_markup_use_every_text_and_no_other() -> None:
    page = translation_page("en", Calls.V1, "", LIMITS)
    scripts = "".join(re.findall("<script>(.*?)</script>", page.body.decode(), re.DOTALL)[1:])
    html = (Path(translation.__file__).parent / "page.html").read_text(encoding="utf-8")
    named = set(re.findall(r"\$(\w+)", html)) - {"lang"}
    quoted = set(re.findall(r'"([a-z]+(?:_[a-z]+)*)"', scripts))
    flags = {f"flag_{flag.value}" for flag in Flag} | {"flag_cut"}
    names = {_PLURALS.sub("", name) for name in locale_of("en")} - {"name", "page_languages"}
    assert names - named - quoted - flags == set()
    assert flags <= names
    said = set(re.findall(r'say\("(\w+)"|name: "(\w+)"|#tool\("(\w+)"', scripts))
    assert {next(filter(None, each)) for each in said} <= names
