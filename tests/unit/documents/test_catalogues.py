"""Catalogues of Qt: what is translated of a message, and what its file then says of the translation."""

import pytest

from service.documents import DocumentOptions, Doubt, open_document
from tests.unit.documents.pseudo import capitals, texts

DOUBTS = {1: Doubt(("numbers",)), 2: Doubt((), "length")}


def message(source: str, translation: str, attributes: str = "") -> str:
    return f"<message{attributes}><source>{source}</source>{translation}</message>"


NUMERUS = ' numerus="yes"'
FORMS = '<translation type="unfinished"><numerusform>{}</numerusform><numerusform>{}</numerusform></translation>'
NEW = '<translation type="unfinished"></translation>'


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("a.ts", message("a", NEW), message("a", "<translation>A</translation>")),
        (  # the second is in doubt
            "a.ts",
            message("a", NEW) + message("b", '<translation type="unfinished"/>') + message("c", "<translation/>"),
            message("a", "<translation>A</translation>")
            + message("b", '<translation type="unfinished">B</translation>')
            + message("c", '<translation type="unfinished">C</translation>'),
        ),
        (  # one form of it
            "a.ts",
            message("%n day(s)", FORMS.format("", ""), NUMERUS),
            message("%n day(s)", FORMS.format("%n DAY", "%n DAYS"), NUMERUS),
        ),
        ("a.ts", message("a", "<translation>b</translation>"), message("a", "<translation>b</translation>")),
        ("a.ts", message("&amp;a (s)", NEW), message("&amp;a (s)", "<translation>&amp;A (S)</translation>")),
    ],
)
def test_what_becomes_of_a_catalogue(name: str, before: str, after: str) -> None:
    document = open_document(name, f"<TS>{before}</TS>".encode())
    translations = [capitals(text) for text in document.texts]
    assert document.written(translations, DOUBTS).decode() == f"<TS>{after}</TS>"


@pytest.mark.parametrize(
    ("found", "target", "written"),
    [
        ('language="de_AT"', "de", 'language="de_AT"'),
        ('language="en"', "pt-BR", 'language="pt_BR"'),
        ('sourcelanguage="en"', "de", 'language="de" sourcelanguage="en"'),
    ],
)
def test_the_language_of_qts_messages_is_the_targets(found: str, target: str, written: str) -> None:
    document = open_document("a.ts", f"<TS {found}>{message('a', NEW)}</TS>".encode(), DocumentOptions(target=target))
    assert document.written(["b"]).decode().startswith(f"<TS {written}><message>")
    assert document.language == ("en" if "sourcelanguage" in found else "")


def test_finished_messages_of_qt_are_translated_again_if_that_is_asked_for() -> None:
    source = f'<TS language="fr">{message("a", "<translation>b</translation>")}</TS>'.encode()
    document = open_document("a.ts", source, DocumentOptions(target="de", has_all=True))
    assert (texts(document), document.written(["c"])) == (["a"], source.replace(b'"fr"', b'"de"').replace(b">b", b">c"))
