"""The reference page of the HTTP API in a real browser."""

import re
from collections.abc import Iterator

import pytest

from tests.axe import findings
from tests.browser import IN_EACH_LOOK, Browser, browser, like
from tests.servers import ServerProcess


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as window:
        yield window


@pytest.fixture
def window(opened: Browser, server: ServerProcess) -> Browser:
    opened.open(f"{server.http_url}/v1/docs")
    return opened


@IN_EACH_LOOK
def test_it_fits_phones_and_the_dark_and_is_made_for_everybody(window: Browser, scheme: str, width: int) -> None:
    with like(window, scheme, width):
        ground = window.run("return getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 384) == (scheme == "dark")
        assert findings(window) == []
        assert window.run("return document.documentElement.scrollWidth") <= width
        assert window.run("return innerWidth") == width


def test_its_links_lead_somewhere(window: Browser) -> None:
    links = window.run("return [...document.querySelectorAll('a')].map((each) => each.getAttribute('href'))")
    names = {link.removeprefix("#") for link in links if link.startswith("#")}
    there = set(window.run("return [...document.querySelectorAll('[id]')].map((each) => each.id)"))
    assert "TranslateRequest" in names <= there
    assert {link for link in links if not link.startswith("#")} == {"../", "openapi.json"}


def test_a_planted_fault_is_found(window: Browser) -> None:
    window.run("document.documentElement.removeAttribute('lang')")
    assert [finding.partition(":")[0] for finding in findings(window)] == ["html-has-lang"]


# Last, because it checks everything that happened before.


def test_it_asks_nobody_else_and_has_nothing_to_complain(opened: Browser, server: ServerProcess) -> None:
    own = f"{server.http_url}/", "data:", "chrome:"
    assert {url for url in opened.requested() if not url.startswith(own)} == set()
    assert opened.console() == []
