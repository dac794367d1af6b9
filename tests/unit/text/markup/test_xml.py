"""XML in the form of HTML, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.markup import BlockTranslation, parse
from service.text.markup.xml import NotXml, TagRules, as_html, with_untranslated

NAMES = st.sampled_from(["p", "x", "title", "script", "br", "a:b", "Straße", "A", "table"])
TEXTS = st.sampled_from(["one", " two ", "&amp;", "&#233;", "&own;", "\n", "<!-- c -->", "<?pi a?>", "ä > b", "]"])
NODES = st.recursive(
    TEXTS,
    lambda inner: st.one_of(
        st.builds(lambda name, parts: f"<{name} id='1'>{''.join(parts)}</{name}>", NAMES, st.lists(inner, max_size=4)),
        st.builds(lambda name: f"<{name}/>", NAMES),
    ),
    max_leaves=20,
)


def blocks(xml: str, **rules: object) -> list[str]:
    return [each.text for each in parse(as_html(xml, TagRules(**rules)).html).blocks]  # type: ignore[arg-type]


def rendered(xml: str, **rules: object) -> str:
    """Translate into capital letters."""
    document = as_html(xml, TagRules(**rules))  # type: ignore[arg-type]
    html = parse(document.html)
    return document.restored(html.render([BlockTranslation(each.text.upper()) for each in html.blocks]))


@given(NODES, st.booleans())
def test_what_is_not_translated_is_unchanged(xml: str, finds_structure: bool) -> None:
    document = as_html(xml, TagRules({"x"}, {"p"}, {"title"}, finds_structure=finds_structure))
    assert document.restored(document.html) == xml.replace("ä > b", "ä &gt; b")


@given(NODES, st.booleans())
def test_a_translation_is_well_formed_and_has_each_tag_once(xml: str, finds_structure: bool) -> None:
    result = rendered(xml, ignored={"x"}, splitting={"p"}, finds_structure=finds_structure)
    as_html(result, TagRules())
    tags = ("<p ", "</p>", "<x ", "</x>", "<x/>", "<script ", "</script>", "<br ", "<br/>", "<A ", "&own;", "<?pi a?>")
    for tag in tags:
        assert result.count(tag) == xml.count(tag), tag


def test_elements_beside_text_are_within_a_sentence_and_others_are_not() -> None:
    xml = "<doc><title>One</title><par>Two <b>three</b> four.</par></doc>"
    assert blocks(xml) == ["One", "Two three four."]
    assert blocks("Two <b>three</b> four.") == ["Two three four."]
    assert blocks('Press <x id="1"/> to go <y></y> on') == ["Press to go on"]


def test_tags_that_split_and_tags_that_do_not() -> None:
    xml = "<doc><a>one</a><b>two</b> <c>three</c></doc>"
    assert blocks(xml) == ["one", "two", "three"]
    assert blocks(xml, joining={"b", "c"}) == ["one", "two three"]
    assert blocks(xml, finds_structure=False) == ["onetwo three"]
    assert blocks(xml, finds_structure=False, splitting={"c"}) == ["onetwo", "three"]
    assert blocks("one <c>two</c> three", splitting={"c"}) == ["one", "two", "three"]


def test_ignored_elements_are_kept_with_all_that_is_in_them() -> None:
    xml = "Press <k>this <b>key</b> &amp; that</k> now"
    assert "<k>this <b>key</b> &amp; that</k>" in rendered(xml, ignored={"k"})
    assert "NOW" in rendered(xml, ignored={"k"})
    assert rendered("<d><k>one<p>two</p></k><p>three</p></d>", ignored={"k"}, splitting={"p"}) == (
        "<d><k>one<p>two</p></k><p>THREE</p></d>"
    )
    assert rendered("<K>one</K>", ignored={"k"}) == "<K>ONE</K>"


def test_html_s_names_mean_nothing_and_a_head_stays() -> None:
    assert rendered("<d><script>one</script><pre>two</pre><link>three</link><code>four</code></d>") == (
        "<d><script>ONE</script><pre>TWO</pre><link>THREE</link><code>FOUR</code></d>"
    )
    head = '<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY own "x">]>\n<!-- <b> -->'
    assert rendered(f"{head}<a>one</a>") == f"{head}<a>ONE</a>"


def test_text_is_escaped_as_xml_knows_it() -> None:
    assert rendered("<a>r&d &lt; &#233; x&nbsp;y &apos;</a>") == "<a>R&amp;D &lt; É X&#160;Y '</a>"
    assert rendered("<a><![CDATA[a < b & <c>]]></a>") == "<a>A &lt; B &amp; &lt;C&gt;</a>"
    assert "&own;" in rendered("<a>one &own; two</a>")
    assert rendered("<a>&lt;x7&gt; &lt;!--0--&gt;</a>") == "<a>&lt;X7&gt; &lt;!--0--&gt;</a>"
    assert rendered("<d>a < b <3 <= c <</d>") == "<d>A &lt; B &lt;3 &lt;= C &lt;</d>"  # which begins no tag


@pytest.mark.parametrize(
    "xml",
    [
        "one<br>two",
        "<p>one<BR>two<hr></p>",
        "one <img src=a.png alt=x> two",
        '<d>one <img src="a" hidden> two <wbr> three</d>',
        "<a href=http://x.org/y?z target=_blank>one</a>",
        "<br><br/><br >one",
        "<p>one<p>two<ul><li>three</ul>",
        "<a href=http://x.org/?a=1&b=2/>one</a> two <x id=1/> three",
        "<source>one</source><col>two</col><x/>",  # names that XML has as its own
    ],
)
def test_html_that_is_no_xml_is_taken_as_html(xml: str) -> None:
    expected = xml
    for word in ("one", "two", "three"):
        expected = expected.replace(word, word.upper())
    assert rendered(xml) == expected


def test_what_is_not_well_formed_is_refused() -> None:
    texts = (
        "<a>x",
        "<a></b>",
        "</a>",
        "<a x=>y</a>",
        "<a></a/>",
        "<!-- x",
        "<a",
        "<1>x</1>",
        "<a b='<'/>",
        "<![CDATA[",
    )
    for text in texts:
        with pytest.raises(NotXml):
            as_html(text, TagRules())


@pytest.mark.timeout(20)
def test_depth_and_repetition_take_no_more_than_their_length() -> None:
    for xml in (
        "<a>" * 9_000 + "x" + "</a>" * 9_000,
        "<a " * 20_000,
        "<!--" * 20_000,
        "&" * 50_000,
        "<a b='" * 9_000,
    ):
        try:
            document = as_html(xml, TagRules({"b"}))
        except NotXml:
            continue
        assert len(parse(document.html).blocks) <= 1


def test_elements_of_html_that_are_not_translated() -> None:
    html, added = with_untranslated("One <X class='a'>two</X> three<br>four data-kept-0", {"x", "BR"})
    document = parse(html)
    assert [each.text for each in document.blocks] == ["One two three", "four data-kept-0"]
    result = document.render([BlockTranslation(each.text.replace("O", "Ö")) for each in document.blocks])
    assert result.replace(added, "") == "Öne <X class='a'>two</X> three<br>four data-kept-0"
