"""Every page is one file, its policy allows what is in it and nothing else, and operators' pages have their parts."""

import base64
import hashlib
import re

import pytest

from service.faces.admin.server import operators_page, status_page
from service.faces.page.document import Calls, Page, built, translation_page

PAGES = pytest.mark.parametrize(
    "page",
    [translation_page(Calls.V1, "<nav></nav>"), operators_page(), status_page()],
    ids=["callers", "operators", "status"],
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
    assert all(link.startswith("data:") or link in ("./", "status") for link in links)
    assert "<script" not in tags
    assert "style=" not in tags  # the policy would drop it
    assert re.search(r"\bon[a-z]+=", tags) is None
    assert "@import" not in html
    assert "url(" not in html
    assert page.policy.startswith("default-src 'none'; ")
    assert "unsafe" not in page.policy


@PAGES
def test_no_comment_stands_where_a_part_belongs(page: Page) -> None:
    assert not re.search(r"<!-- \w+ -->", page.body.decode())


def test_parts_stand_where_their_names_are() -> None:
    page = built("<!-- styles --><!-- who -->!<!-- scripts -->", ["a{}"], ["b()"], {"who": "<p>you</p>"})
    assert page.body == b"<style>a{}</style>\n<p>you</p>!<script>b()</script>\n"
    answer = page.answer({"X-One": "1"})
    assert answer.headers == {"X-One": "1", "Content-Security-Policy": page.policy}


def test_a_port_tells_its_page_what_calls_it_has() -> None:
    for calls in Calls:
        assert f'<meta name="calls" content="{calls.value}">' in translation_page(calls, "").body.decode()


def test_all_parts_are_in_place_with_their_licence() -> None:
    html = status_page().body.decode()
    assert "uPlot (v1.6.32)" in html
    assert "Permission is hereby granted" in html
    assert "Charts: uPlot 1.6.32" in html  # as the page itself says


@pytest.mark.parametrize(("page", "name"), [(operators_page(), "Translate"), (status_page(), "Status")])
def test_both_pages_have_both_tabs_and_say_which_is_open(page: Page, name: str) -> None:
    html = page.body.decode()
    assert re.findall(r'<a href="([^"]+)"', html) == ["./", "status"]
    assert re.findall(r'aria-current="page">(\w+)<', html) == [name]


def test_the_page_that_translates_uses_the_operators_calls() -> None:
    assert b'<meta name="calls" content="operators">' in operators_page().body
