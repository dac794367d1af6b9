"""Fields and tags among the parts of a paragraph."""

from service.documents.docx_items import Item, balanced, with_fields
from service.documents.inline import Kind


def field(name: str, text: str = "") -> Item:
    return Item(Kind.ORDERED, 0, 1, f"<{name}>", text, field=name)


def word(text: str) -> Item:
    return Item(Kind.TEXT, 0, 1, f"<t>{text}", text)


OPEN, CLOSE = Item(Kind.OPEN, 0, 1, "<a>"), Item(Kind.CLOSE, 0, 1, "</a>")
LINK = (field("begin"), field("instruction", " HYPERLINK x "), field("separate"))
PAGE = (field("begin"), field("instruction", "PAGE"), field("separate"), word("7"), field("end"))


def kinds(*items: Item) -> list[Kind | None]:
    return [each.kind for each in with_fields(items)]


def test_a_link_is_a_pair_around_its_words() -> None:
    opening, inner, closing = with_fields([*LINK, word("here"), field("end")])
    assert (opening.kind, opening.raw) == (Kind.OPEN, "<begin><instruction><separate>")
    assert (inner, closing.kind) == (word("here"), Kind.CLOSE)


def test_another_field_is_one_part_with_its_result() -> None:
    [kept] = with_fields(PAGE)
    assert (kept.kind, kept.text, kept.field) == (Kind.KEPT, "7", "")
    assert kept.raw == "<begin><instruction><separate><t>7<end>"
    assert kinds(field("begin"), field("instruction", "XE a"), field("end")) == [Kind.MARK]


def test_a_field_in_a_link_is_one_of_its_parts() -> None:
    assert kinds(*LINK, *PAGE, field("end")) == [Kind.OPEN, Kind.KEPT, Kind.CLOSE]


def test_a_field_that_ends_elsewhere_is_a_border() -> None:
    assert kinds(word("a"), field("begin"), word("b")) == [Kind.TEXT, None, Kind.TEXT]
    assert kinds(field("end"), word("b")) == [None, Kind.TEXT]
    assert kinds(OPEN, field("begin"), CLOSE, field("end")) == [Kind.OPEN, None, Kind.CLOSE, None]
    assert kinds(field("begin"), Item(None, 0, 1), field("end")) == [None, None, None]


def test_a_field_with_one_in_it_that_ends_elsewhere_is_a_field() -> None:
    assert kinds(field("begin"), OPEN, field("begin"), CLOSE, field("end"), field("end")) == [Kind.MARK]
    assert kinds(*LINK, OPEN, field("begin"), CLOSE, field("end"), field("end")) == [
        *(Kind.OPEN, Kind.OPEN, None),
        *(Kind.CLOSE, None, Kind.CLOSE),
    ]


def test_tags_without_a_partner_are_borders() -> None:
    a, b, c = word("a"), word("b"), word("c")
    assert list(balanced([a, OPEN, b, CLOSE, c])) == [[a, OPEN, b, CLOSE, c]]
    assert list(balanced([a, CLOSE, b, OPEN, c])) == [[a], [b], [c]]
    assert list(balanced([OPEN, a, OPEN, b, CLOSE])) == [[], [a, OPEN, b, CLOSE]]
