"""HTML, read again by html5lib."""

import html5lib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.documents import DocumentOptions, open_document
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
    assert texts(document) == ["A page", "Find <b>the keys</b><br>and <code>go()</code> &amp; go", "one", "two"]
    assert [text.place for text in document.texts] == ["line 2", "line 3", "line 4", "line 4"]
    written = translated(document).decode()
    assert '<p class="big">FIND <b>THE KEYS</b><br>AND <code>GO()</code> &amp; GO</p>' in written
    assert shape(written) == shape(PAGE)
    assert "".join(html5lib.parse(written).itertext()).upper() == "".join(html5lib.parse(PAGE).itertext()).upper()
    assert written.count("left alone") == 2


@given(st.text("<>/bpi a=\"'!-&;x\n", max_size=60))
def test_the_same_texts_give_the_same_page(page: str) -> None:
    assert unchanged(open_document("a.htm", page.encode())) == page.encode()


WITH_ATTRIBUTES = """<html lang="en" xml:lang='en'><title>Page</title><meta name=description content="Old keys">
<meta property="og:title" content='The "red" door'><meta name=viewport content="width=1"><body title="Open">
<p>See <img src=a alt="a door"> and <a href="x" title=Help>the <b title="my &quot;key&quot;">keys</b></a>.
<img alt='Hi, {{ name }}!'><input type=submit value=Save><input value="Left" placeholder="Your name">
<p translate=no title="left">left</p><b title="left" class=notranslate>left</b><b aria-label="<?= $left ?>"></b>
<optgroup label="Door"></optgroup><link title="left"><svg aria-label="Key"></svg></html>
"""


def test_attributes_that_a_reader_sees_are_translated_where_their_tags_go() -> None:
    options = DocumentOptions(target="de", attributes=True)
    document = open_document("a.html", WITH_ATTRIBUTES.encode(), options)
    written = translated(document).decode()
    expected = WITH_ATTRIBUTES.replace('"en"', '"de"').replace("'en'", "'de'").replace("=Help", '="HELP"')
    expected = expected.replace("=Save", '="SAVE"').replace("See", "SEE").replace("the <b", "THE <b")
    for text in ("Page", "Old keys", 'The "red" door', "Open", "a door", " and", "my &quot;key&quot;", "keys"):
        expected = expected.replace(text, text.upper().replace("&QUOT;", "&quot;"))
    for text in ("Hi, ", "Your name", "Door", "Key"):
        expected = expected.replace(text, text.upper())
    assert written == expected.replace("{{ name }}", "{{ NAME }}")  # what protects it is the translator
    assert unchanged(document).decode() == WITH_ATTRIBUTES.replace('"en"', '"de"').replace("'en'", "'de'")
    assert len(open_document("a.html", WITH_ATTRIBUTES.encode()).texts) == 2, "attributes are an option"


@pytest.mark.parametrize("tag", ["<html>", "<html lang>", "<html lang=en>", '<html lang="">', "<html lang= >"])
def test_a_page_names_its_language(tag: str) -> None:
    document = open_document("a.html", f"{tag}<p>one".encode(), DocumentOptions(target="de", attributes=True))
    page = html5lib.parse(translated(document), namespaceHTMLElements=False)
    assert page.attrib == {"lang": "de"}
