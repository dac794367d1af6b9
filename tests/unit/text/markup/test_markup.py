"""The results for real snippets, checked by eye."""

import tracemalloc

import pytest

from service.domain.translation import AlignedSpan
from service.text.markup import BlockTranslation, parse
from service.text.spans import Span
from tests.unit.text.markup.backwards import texts


def aligned(source: str, target: str, pairs: str) -> tuple[AlignedSpan, ...]:
    """Align single words, given as "source=target ...", each at its first place in the texts."""
    spans = []
    for pair in pairs.split():
        left, right = pair.split("=")
        start, target_start = source.index(left), target.index(right)
        spans.append(AlignedSpan(start, start + len(left), target_start, target_start + len(right)))
    return tuple(spans)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("", []),
        (" \n", []),
        ("plain", ["plain"]),
        ("<p>One.</p>\n<p> Two\n  lines. </p>", ["One.", "Two lines."]),
        ("<p>Click <b>Save</b>.</p>", ["Click Save."]),
        ("<ul><li>One<li>Two</ul>", ["One", "Two"]),
        ("<table><tr><td>A <i>b</i></td><td>C</td></tr></table>", ["A b", "C"]),
        ("<button>Save</button><button>Cancel</button>", ["Save", "Cancel"]),
        ("First line<br>second <b>line<br/>third</b> line", ["First line", "second line", "third line"]),
        ("a <img alt='no'> b<!-- no --> c<wbr>d", ["a b cd"]),
        ("<title>A &amp; <b></title>", ["A & <b>"]),
        ("<select><option>One<option>Two</select>", ["One", "Two"]),
        ("1 < 2 & 3 &lt; 4 &foo; &eacute; &copy &#x110000;", ["1 < 2 & 3 < 4 &foo; é © \ufffd"]),
        ("&#" + "1" * 5000 + ";x", ["\ufffdx"]),
        ("a\0b", ["ab"]),
        ("<p>&nbsp;</p><p> <code>x</code> </p>", []),
        ("<script>a</script><style>b</style><pre>c <i>d</i></pre><textarea>e</textarea>f", ["f"]),
        ("<template>a</template><noscript>b</noscript><!-- c --><?d?><!DOCTYPE e>f", ["f"]),
        ("<script><!-- <script>a</script> b --></script>f", ["f"]),
        ("<p translate='NO'>a <b>b</b></p>f <div class='x notranslate'><p>c</div>", ["f"]),
        ("<p translate=no>unclosed<p>f", ["f"]),
        ("<span translate=no><div>a</div></span>f", ["f"]),
        ("one <b>two", ["one", "two"]),
        ("one</b> two", ["one", "two"]),
        ("<a href=x><p>one</p></a> see <a href=y>two</a> now", ["one", "see two now"]),
        ("<a href=x><p>one</p> see <a href=y>two</a> now", ["one", "see", "two", "now"]),
        ("<b>one <i>two</b> three</i> four", ["one", "two", "three", "four"]),
        ("<a href=x title='a>b'>text</a", ["text"]),
        ("text <a href='", ["text"]),
        ("<svg><title>no</title></svg>yes", ["yes"]),
    ],
)
def test_texts(html: str, expected: list[str]) -> None:
    assert texts(html) == expected
    document = parse(html)
    assert document.render([BlockTranslation(text) for text in expected]) == html


@pytest.mark.parametrize(
    ("html", "translation", "pairs", "expected"),
    [
        (
            'Click <b>Save</b> to <a href="x?a=1&amp;b=2">continue</a>.',
            "Klicken Sie auf Speichern, um fortzufahren.",
            "Click=Klicken Save=Speichern to=um continue=fortzufahren .=.",
            'Klicken Sie auf <b>Speichern</b>, um <a href="x?a=1&amp;b=2">fortzufahren</a>.',
        ),
        (
            "<p>\n  Hello <B>world</B>!\n</p>",
            "Hallo Welt!",
            "Hello=Hallo world=Welt !=!",
            "<p>\n  Hallo <B>Welt</B>!\n</p>",
        ),
        ("<a href=x>All of it.</a>", "¡Todo!", "", "<a href=x>¡Todo!</a>"),
        ("<b><i>a</i> b</b> c", "A B C", "a=A b=B c=C", "<b><i>A</i> B</b> C"),
        # a sentence turned around
        (
            "The <b>red house</b> is here",
            "Hier ist das rote Haus",
            "The=das red=rote house=Haus is=ist here=Hier",
            "Hier ist das <b>rote Haus</b>",
        ),
        # scattered words: where most are
        (
            "<i>do not want</i> that",
            "x will nicht y z w that q do",
            "do=do not=nicht want=will that=that",
            "x <i>will nicht</i> y z w that q do",
        ),
        # numbers and names align with themselves, against the alignment
        (
            "Pay <b>42</b> to <i>Bob</i> now",
            "Nun 42 an Bob zahlen",
            "42=Nun Bob=zahlen",
            "Nun <b>42</b> an <i>Bob</i> zahlen",
        ),
        # siblings keep their order; one that comes too late takes a neighbour
        ("<b>42</b> cats and <i>Bob</i>", "Bob und 42 Katzen", "", "Bob und <b>42</b> <i>Katzen</i>"),
        # empty elements and marks stay with their word
        ("see <a id=x></a>here now", "jetzt sieh hier", "see=sieh here=hier now=jetzt", "jetzt sieh <a id=x></a>hier"),
        ("press <img src=x> here", "hier drücken", "press=drücken here=hier", "<img src=x> hier drücken"),
        (
            "a <b>word</b><i>&nbsp;</i>more",
            "ein Wort mehr",
            "a=ein word=Wort more=mehr",
            "ein <b>Wort</b><i>&nbsp;</i>mehr",
        ),
        ("word<sup></sup> last", "letztes Wort", "word=Wort last=letztes", "letztes Wort<sup></sup>"),
        # text is escaped, and a no-break space stays readable
        ("a <i>b</i>", "1\u00a0< 2 & <b>", "a=1 b=b", "1&nbsp;&lt; 2 &amp; &lt;<i>b</i>&gt;"),
        # protected text comes back as written
        (
            "Run <code>a &amp;&amp; b &#x3e; c</code> now",
            "Jetzt bitte a && b > c starten",
            "",
            "Jetzt bitte <code>a &amp;&amp; b &#x3e; c</code> starten",
        ),
        ("at <code>x = 1</code>", "bei x = 1undsoweiter", "", "bei <code>x = 1</code>undsoweiter"),
        ("<b>one</b> two", "eins-zwei", "", "<b>eins-zwei</b>"),
        ("<b>一</b>二", "三四", "一=三 二=四", "<b>三</b>四"),
        # too few words: none is empty, and a word in two elements reads as before
        ("<b>one</b> or <i>two</i> <u>three</u>", "eins zwei", "one=eins three=zwei", "<b>ein</b><i>s</i> <u>zwei</u>"),
        ("<b>one</b> two", "", "", "<b></b>"),
        ("<b>one</b> two", " - ", "", " <b>-</b> "),
    ],
)
def test_tags_go_to_their_words(html: str, translation: str, pairs: str, expected: str) -> None:
    document = parse(html)
    (block,) = document.blocks
    assert document.render([BlockTranslation(translation, aligned(block.text, translation, pairs))]) == expected


@pytest.mark.parametrize(
    ("html", "translation", "expected"),
    [
        # one protected element with its tags, wherever it goes
        (
            "Use <code>a</code> or <kbd>b</kbd>, please",
            "Bitte b oder a benutzen",
            "Bitte <kbd>b</kbd> oder <code>a</code> benutzen",
        ),
        ("Log in to <code>terminals.</code>", "terminals. Anmeldung", "<code>terminals.</code> Anmeldung"),
        ("a <code>x</code><var>y</var> b", "B xy A", "B <code>x</code><var>y</var> A"),
        ("a <code>x</code> <code>x</code> b", "B x A x", "B <code>x</code> A <code>x</code>"),
        (
            'Run <code class="a"><i>a</i>&amp;<b>b</b>&#x3e;<img src=x></code> now',
            "Nun a&b> los",
            'Nun <code class="a"><i>a</i>&amp;<b>b</b>&#x3e;<img src=x></code> los',
        ),
        ("See <code> a\n b </code>now", "Nun siehe a b", "Nun siehe <code> a\n b </code>"),
        ("See <code>a<br>b</code> now", "Nun a b sehen", "Nun <code>a<br>b</code> sehen"),
        ("word <code></code> two <kbd> </kbd>end", "eins zwei ende", "eins <code></code> zwei <kbd> </kbd>ende"),
        # with elements that contain nothing else
        (
            "See <a href=x><code>x</code></a> and <a href=y><b><code>y</code></b></a> too",
            "Auch y und x sehen",
            "Auch <a href=y><b><code>y</code></b></a> und <a href=x><code>x</code></a> sehen",
        ),
        (
            "See <a href=x>the <code>x</code> page</a> now",
            "Nun die x Seite sehen",
            "Nun <a href=x>die <code>x</code> Seite</a> sehen",
        ),
        ("See <a href=x translate=no>Big &lt;App&gt;</a> now", "Nun Big <App> los", None),
        # no nested links
        (
            "<a href=x>a b c d e f g h i j</a> <a href=y><code>y</code></a> k",
            "A B C D E y F G H I J k",
            "<a href=y><code>y</code></a> <a href=x>A B C D E  F G H I J</a> k",
        ),
        ("Click <code>x</code> now", "Nun", "Nun <code>x</code>"),
    ],
)
def test_what_is_not_translated_is_one_thing_with_its_tags(html: str, translation: str, expected: str | None) -> None:
    document = parse(html)
    (block,) = document.blocks
    links = []
    done = 0
    for start, end in block.protected:
        place = translation.find(block.text[start:end], done if block.text.count(block.text[start:end]) > 1 else 0)
        if place >= 0:
            done = place + end - start
            links.append(AlignedSpan(start, end, place, done))
    if "a b c" in html:
        links += aligned(block.text, translation, " ".join(f"{letter}={letter.upper()}" for letter in "abcdefghij"))
    elif "the " in html:
        links += aligned(block.text, translation, "See=sehen the=die page=Seite now=Nun")
    rendered = document.render([BlockTranslation(translation, tuple(links))])
    assert rendered == (expected or "Nun <a href=x translate=no>Big &lt;App&gt;</a> los")


def test_a_line_break_cuts_the_text_and_not_the_element() -> None:
    document = parse("Say <b>hello<br>dear</b> friend")
    assert [block.text for block in document.blocks] == ["Say hello", "dear friend"]
    translated = document.render([BlockTranslation("Sag hallo"), BlockTranslation("lieber Freund")])
    assert translated == "Sag <b>hallo<br>lieber</b> Freund"


def test_protected_texts() -> None:
    (block,) = parse(
        "Press <kbd>Ctrl</kbd> in <span translate=no>Big <b>App</b></span>, <i class=notranslate>x</i>"
    ).blocks
    assert [block.text[span.start : span.end] for span in block.protected] == ["Ctrl", "Big App", "x"]
    assert block.protected[0] == Span(6, 10)


@pytest.mark.parametrize(
    ("html", "needs"),
    [
        ("<b>all of it</b>", False),
        ("<img><i><b>all</b></i>", False),
        ("a <b>b</b>", True),
        ("a <img> b", True),
        ("a b", False),
    ],
)
def test_only_tags_within_the_text_need_an_alignment(html: str, needs: bool) -> None:
    (block,) = parse(html).blocks
    assert block.needs_alignment == needs


def test_a_translation_for_each_block() -> None:
    with pytest.raises(ValueError, match="zip"):
        parse("<p>a<p>b").render([BlockTranslation("x")])


def test_elements_in_each_other_take_linear_memory() -> None:
    depth = 2_000
    html = "a " + "<code>" * depth + "x" + "</code>" * depth
    tracemalloc.start()
    parse(html)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 500 * len(html)  # copies of each element's content would be 1,000 times that long
