"""The operators' pages have their parts: links to each other, and the licence of the charts."""

import re

import pytest

from service.faces.admin.server import operators_page, status_page
from service.faces.page.document import Page


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
