"""HTML, read again by html5lib."""

import html5lib
from hypothesis import given
from hypothesis import strategies as st

from service.documents import open_document
from tests.unit.documents.pseudo import texts, translated, unchanged

PAGE = """<!doctype html>
<title>A page</title><style>p { color: red }</style>
<p class="big">Find <b>the keys</b><br>and <code>go()</code> &amp; go</p>
<pre>left alone</pre><p>12</p><ul><li>one<li>two</ul><p translate="no">left alone</p>
"""


def shape(page: str) -> list[str]:
    return [element.tag for element in html5lib.parse(page).iter() if isinstance(element.tag, str)]


def test_texts_between_blocks_change_and_elements_stay() -> None:
    document = open_document("a.html", PAGE.encode())
    assert texts(document) == [
        "A page",
        "Find <b>the keys</b><br>and <code>go()</code> &amp; go",
        "one",
        "two",
    ]
    assert [text.place for text in document.texts] == ["line 2", "line 3", "line 4", "line 4"]
    written = translated(document).decode()
    assert '<p class="big">FIND <b>THE KEYS</b><br>AND <code>GO()</code> &amp; GO</p>' in written
    assert shape(written) == shape(PAGE)
    assert "".join(html5lib.parse(written).itertext()).upper() == "".join(html5lib.parse(PAGE).itertext()).upper()
    assert written.count("left alone") == 2


@given(st.text("<>/bpi a=\"'!-&;x\n", max_size=60))
def test_the_same_texts_give_the_same_page(page: str) -> None:
    assert unchanged(open_document("a.htm", page.encode())) == page.encode()
