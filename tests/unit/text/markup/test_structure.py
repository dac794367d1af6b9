"""Which elements and white space of a sentence go with its words: superscripts, parts of words, items of a menu."""

import pytest

from service.domain.translation import AlignedSpan
from service.text.markup import BlockTranslation, parse
from tests.unit.text.markup.backwards import texts, turned


@pytest.mark.parametrize(
    ("html", "text", "expected"),
    [
        # formulas, units and ordinals are copied as a whole
        ("H<sub>2</sub>O is wet.", "H2O is wet.", "wet is H<sub>2</sub>O."),
        ("see C<sub>6</sub>H<sub>12</sub> now", "see C6H12 now", "now C<sub>6</sub>H<sub>12</sub> see"),
        ("is 10 m<sup>2</sup> wide", "is 10 m2 wide", "wide m<sup>2</sup> 10 is"),
        ("is 5 km<sup>2</sup> wide", "is 5 km2 wide", "wide km<sup>2</sup> 5 is"),
        ("the 1<sup>st</sup> day", "the 1st day", "day 1<sup>st</sup> the"),
        ("of 10<sup>-6</sup> or so", "of 10-6 or so", "so or 10<sup>-6</sup> of"),
        ("see <sup>14</sup>C here", "see 14C here", "here <sup>14</sup>C see"),
        ("so <i>x</i><sub>1</sub> is", "so x1 is", "is <i>x</i><sub>1</sub> so"),
        ("so Na<sup>+</sup> is", "so Na+ is", "is Na<sup>+</sup> so"),
        ("so &mu;m<sup>2</sup> is", "so \u03bcm2 is", "is &mu;m<sup>2</sup> so"),
        ("to me<span>@</span>a<span>.</span>org now", "to me@a.org now", "now me<span>@</span>a<span>.</span>org to"),
        ("H<span>2</span>O is wet", "H2O is wet", "wet is H<span>2</span>O"),  # as of Word, without names of elements
        # of notes the model sees nothing
        ("a word<sup><a href=n>1</a></sup> is", "a word is", "is word<sup><a href=n>1</a></sup> a"),
        ("a word<a href=n><sup>1</sup></a> is", "a word is", "is word<a href=n><sup>1</sup></a> a"),
        ("a word<sup>1,2</sup> is", "a word is", "is word<sup>1,2</sup> a"),
        ("a word<span>[3]</span> is", "a word is", "is word<span>[3]</span> a"),
        ("a <b>word</b><sup>*</sup> is", "a word is", "is <b>word</b><sup>*</sup> a"),
        ("Open it.<sup>[1]</sup>", "Open it.", "it Open.<sup>[1]</sup>"),
        ("<p>A.<sup>[1]</sup> B.<sup>[2]</sup></p>", "A. B.", "<p>B .<sup>[1]</sup> A.<sup>[2]</sup></p>"),
        ("so House<sup>&reg;</sup> is", "so House is", "is House<sup>&reg;</sup> so"),
        ("so House<sup>TM</sup> is", "so House is", "is House<sup>TM</sup> so"),
        ("<sup>1</sup> See this", "See this", "<sup>1</sup> this See"),
        ("on water<sub>2</sub> too", "on water too", "too water<sub>2</sub> on"),
        # what is raised, but is words
        ("the <sup>new house</sup> is", "the new house is", "is <sup>house new</sup> the"),
        ("the <sub>small</sub> house", "the small house", "house <sub>small</sub> the"),
        ("the <b>5</b> houses", "the 5 houses", "houses <b>5</b> the"),
    ],
)
def test_signs_stay_with_their_words(html: str, text: str, expected: str) -> None:
    assert texts(html) == [text]
    assert turned(html) == expected


@pytest.mark.parametrize(
    ("html", "text", "expected"),
    [
        # where a text begins or ends, and at a word, the model sees nothing of them
        ("<a href=x>#</a> One two", "One two", "<a href=x>#</a> two One"),
        ("One two.<a>↩\ufe0e</a> <a>↩<sup>2</sup></a>", "One two.", "two One.<a>↩\ufe0e</a> <a>↩<sup>2</sup></a>"),
        ("One two<a> &para;</a>", "One two", "two One<a> &para;</a>"),
        ("<b>«</b> One <i>two</i>", "One two", "<b>«</b> <i>two</i> One"),
        ("One<abbr>*</abbr> two", "One two", "two One<abbr>*</abbr>"),
        ("One <i>two</i><a>¶</a> three", "One two three", "three <i>two</i><a>¶</a> One"),
        ("(<i>→</i>) One", "(→) One", "One ) <i>→</i> ("),
        # between words they are kept, for their place
        ("press <b>×</b> now", "press × now", "now <b>×</b> press"),
        ("1999<b>–</b>2005 was", "1999–2005 was", "was 2005 <b>–</b> 1999"),
        ("<kbd>A</kbd><b>+</b><kbd>B</kbd> is", "A+B is", "is <kbd>A</kbd><b>+</b><kbd>B</kbd>"),
        ("one<i> / </i>two", "one / two", "two<i> / </i>one"),
        # what is in sentences is not a sign
        ("One <b>(</b>two<b>)</b>!", "One (two)!", "<b>(</b>two<b>)</b> One!"),
        ("so <s>@</s><b>user</b> is", "so @user is", "is <s>@</s><b>user</b> so"),
        ("see <b>#</b>two", "see #two", "<b>#</b>two see"),
        # numbers of notes that are not raised, and of headings and items
        ("One.<a href='#n'>1</a> Two.", "One. Two.", "Two .<a href='#n'>1</a> One."),
        ("One <a role=doc-noteref href=n>iv</a> two", "One iv two", "two <a role=doc-noteref href=n>iv</a> One"),
        ("see (<a href='#e'>1</a>) here", "see (1) here", "here (<a href='#e'>1</a>) see"),
        ("<span>2.2. </span>One two", "One two", "<span>2.2. </span>two One"),
        ("<b class=secno>A</b> One two", "One two", "<b class=secno>A</b> two One"),
        ("<b>5</b> houses here", "5 houses here", "here houses <b>5</b>"),
        # elements of a space are in the place of one
        ("<i>one</i><b> </b>two three", "one two three", "three two <i>one</i><b> </b>"),
        ("one<u>&nbsp;&nbsp;</u>two three", "one two three", "three<u>&nbsp;&nbsp;</u>two one"),
        ("one<b>&#8203;</b>two three", "onetwo three", "three one<b>&#8203;</b>two"),
    ],
)
def test_elements_of_a_sign_stay_as_they_are(html: str, text: str, expected: str) -> None:
    assert texts(html) == [text]
    assert turned(html) == expected


@pytest.mark.parametrize(
    "html",
    [
        "<a>Home</a> <a>Contact us</a>",
        "Home <b>|</b> Contact us",
        "<i>•</i> Home<i> • </i>Contact us",
        "<p><a>Home</a> | <a>Contact us</a></p>",
        "<a>Home</a> &gt; <a>Contact us</a>",
        "<b>Home</b> · <i>Contact us</i>",
        "<a>Home</a>, <a>Contact us</a>",
        "<a>Home</a>&nbsp;/&nbsp;<a>Contact us</a>",
        "<span>Home</span><span>Contact us</span>",
        "<span>Home</span><!-- c --><img><span>Contact us</span>",
        "<span><a>Home</a></span> <span><a>Contact us</a></span>",
        "<div><em><a>Home</a> <a>Contact us</a></em></div>",
        "<a><i></i> Home</a> <a><i></i> Contact us</a>",
        "<a>Home</a><span>|</span><a>Contact us</a>",
        "<code>left</code> <b>Home</b> <b>Contact us</b>",
        "<b>Home</b>\n<i>Contact us</i><br>",
        "<label><input type=radio> Home</label> <label><input type=radio> Contact us</label>",
        "<input type=checkbox> Home <input type=checkbox> Contact us",
    ],
)
def test_entries_of_a_menu_are_texts_of_their_own(html: str) -> None:
    assert [text for text in texts(html) if any(map(str.isalpha, text))] == ["Home", "Contact us"]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<a>Home</a> or <a>Contact</a>", ["Home or Contact"]),
        ("<b>Hello</b>, <i>world</i>!", ["Hello, world!"]),
        ("<span>It is </span><b>open</b><span>. Close it.</span>", ["It is open. Close it."]),
        ("<span>The door is</span> <span>open.</span>", ["The door is open."]),
        ("<b>T</b><span>he door is open.</span>", ["The door is open."]),
        ("<b>Note</b><sup>1</sup>", ["Note"]),
        ("<ruby>a</ruby><ruby>b</ruby>", ["ab"]),
        ("Tags: <a>News</a> <a>Sport</a>", ["Tags:", "News", "Sport"]),
        ("© 2024 <a>Terms</a> <a>Help</a>", ["© 2024", "Terms", "Help"]),
    ],
)
def test_parts_of_a_sentence_are_not(html: str, expected: list[str]) -> None:
    assert texts(html) == expected


def render(html: str, translation: str) -> str:
    """Return the rendered translation, whose words are in the source's order, separated by spaces."""
    document = parse(html)
    (block,) = document.blocks
    links, start, target_start = [], 0, 0
    for word, target in zip(block.text.split(" "), translation.split(" "), strict=True):
        links.append(AlignedSpan(start, start + len(word), target_start, target_start + len(target)))
        start, target_start = start + len(word) + 1, target_start + len(target) + 1
    return document.render([BlockTranslation(translation, tuple(links))])


@pytest.mark.parametrize(
    ("html", "translation", "expected"),
    [
        ("<b>H</b>ello world", "Hallo Welt", "<b>H</b>allo Welt"),
        ("an un<em>believ</em>able tale", "eine unglaubliche Sage", "eine un<em>glaubl</em>iche Sage"),
        ("the dog<b>s</b> are", "die Hunde sind", "die Hund<b>e</b> sind"),
        ("a super<wbr>market here", "ein Supermarkt hier", "ein Super<wbr>markt hier"),
        ("a <i>super</i><b>market</b> here", "ein Laden hier", "ein <i>Lade</i><b>n</b> hier"),
        ("<b>T</b><span>he house</span> is", "Das Haus ist", "<b>D</b><span>as Haus</span> ist"),
        ("the <i>old be</i>lievable", "die alte glaubliche", "die <i>alte gl</i>aubliche"),
        ("see U<b>a-b</b>c now", "sieh Xa-bc nun", "sieh X<b>a-b</b>c nun"),
        ("a <b>cat</b>tle", "ein cae\u0301t", "ein <b>cae\u0301</b>t"),  # not between a letter and its accent
        ("<i>x</i>y <b>z</b>", "a b", "<i>a</i> <b>b</b>"),
    ],
)
def test_tags_are_around_the_same_letters(html: str, translation: str, expected: str) -> None:
    assert render(html, translation) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p><img> <img> one two.</p>", "<p><img> <img> two one.</p>"),
        ("<img> <input> <a>one two</a>", "<img> <input> <a>two one</a>"),
        ("&nbsp;\u3000one two&nbsp;", "&nbsp;\u3000two one&nbsp;"),
        ("one <!-- c --> two three", "three <!-- c --> two one"),
        ("one <img> <img> two", "<img> <img> two one"),
        ("see <b>one </b>two", "two <b>one </b>see"),
        ("one <br> two three <br/> ", "one <br> three two <br/> "),
        ("<span translate=no>@a</span> <a>two</a> three", "three <a>two</a> <span translate=no>@a</span>"),
        ("one two <img>!", "two one <img>!"),
        ("one <a> two </a> three", "three <a>two</a> one"),
    ],
)
def test_white_space_stays_where_it_was(html: str, expected: str) -> None:
    assert turned(html) == expected
