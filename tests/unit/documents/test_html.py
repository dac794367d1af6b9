"""HTML, read again by html5lib."""

import html5lib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.documents import DocumentOptions, open_document
from tests.unit.documents.pseudo import texts, translated, unchanged


def test_texts_between_blocks_and_their_places() -> None:
    page = b"<title>A page</title>\n<p class=x>Find <b>the keys</b><br>and</p>\n<ul><li>one<li>two</ul>"
    assert [(text.text, text.place) for text in open_document("a.html", page).texts] == [
        *(("A page", "line 1"), ("Find <b>the keys</b><br>and", "line 2"), ("one", "line 3"), ("two", "line 3"))
    ]


def test_values_of_attributes_are_texts_if_that_is_asked_for() -> None:
    page = b'<html lang="en"><p title="a door">see</p></html>'
    assert texts(open_document("a.html", page)) == ["see"]
    assert texts(open_document("a.html", page, DocumentOptions(attributes=True))) == ["a door", "see"]


@given(st.text("<>/bpi a=\"'!-&;x\n", max_size=60))
def test_the_same_texts_give_the_same_page(page: str) -> None:
    assert unchanged(open_document("a.htm", page.encode())) == page.encode()


@pytest.mark.parametrize("tag", ["<html>", "<html lang>", "<html lang=en>", '<html lang="">', "<html lang= >"])
def test_a_page_names_its_language(tag: str) -> None:
    document = open_document("a.html", f"{tag}<p>one".encode(), DocumentOptions(target="de", attributes=True))
    page = html5lib.parse(translated(document), namespaceHTMLElements=False)
    assert page.attrib == {"lang": "de"}
