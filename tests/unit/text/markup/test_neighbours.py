"""Elements beside each other that are all of a paragraph are texts of their own; parts of a sentence are not."""

import pytest

from tests.unit.text.markup.backwards import texts


@pytest.mark.parametrize(
    "html",
    [
        "<a>Home</a> <a>Contact us</a>",
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
