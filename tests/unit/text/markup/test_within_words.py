"""Elements within a word are around the same part of its translation; white space stays where it was."""

import pytest

from service.domain.translation import AlignedSpan
from service.text.markup import BlockTranslation, parse
from tests.unit.text.markup.backwards import turned


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
