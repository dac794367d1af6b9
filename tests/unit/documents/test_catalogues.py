"""Catalogues of Qt and Xcode: what is translated of them, and what they then say of the translations."""

import pytest

from service.documents import DocumentOptions, Doubt, open_document
from tests.unit.documents.pseudo import capitals, texts

DOUBTS = {1: Doubt(("numbers",)), 2: Doubt((), "length")}


def message(source: str, translation: str, attributes: str = "") -> str:
    return f"<message{attributes}><source>{source}</source>{translation}</message>"


def catalog(*localizations: str) -> str:
    """Return Xcode's strings of these localizations of `k`, with their states."""
    named = (each.split(" ", 2) for each in localizations)
    units = (f'"{name}":{{"stringUnit":{{"state":"{state}","value":"{text}"}}}}' for name, state, text in named)
    return f'{{"sourceLanguage":"en","strings":{{"k":{{"localizations":{{{",".join(units)}}}}}}}}}'


def plural(language: str, one: str, other: str, state: str = "new") -> str:
    """Return a localization of Xcode's for two numbers."""
    units = (f'{{"stringUnit":{{"state":"{state}","value":"{text}"}}}}' for text in (one, other))
    return f'"{language}":{{"variations":{{"plural":{{"one":{next(units)},"other":{next(units)}}}}}}}'


NUMERUS = ' numerus="yes"'
FORMS = '<translation type="unfinished"><numerusform>{}</numerusform><numerusform>{}</numerusform></translation>'
NEW = '<translation type="unfinished"></translation>'


PLIST = (
    "<plist><dict><key>k</key><dict><key>n</key><dict><key>NSStringFormatValueTypeKey</key><string>d</string>"
    "<key>other</key><string>%d files</string></dict></dict></dict></plist>"
)


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
        ("a.xcstrings", catalog("en new a b"), catalog("en new a b", "de translated A B")),
        (
            "a.xcstrings",
            catalog("en new a b", "de-AT translated x", "de needs_review y"),
            catalog("en new a b", "de-AT translated x", "de needs_review A B"),
        ),
        ("a.xcstrings", catalog("en new a b", "de new "), catalog("en new a b", "de translated A B")),
        (  # one text is in doubt
            "a.xcstrings",
            f'{{"strings":{{"k":{{"localizations":{{{plural("en", "%d day", "%d days")}}}}}}},"sourceLanguage":"en"}}',
            f'{{"strings":{{"k":{{"localizations":{{{plural("en", "%d day", "%d days")},'
            + plural("de", "%d DAY", "%d DAYS", "translated").replace(
                'translated","value":"%d DAYS', 'needs_review","value":"%d DAYS'
            )
            + '}}},"sourceLanguage":"en"}',
        ),
        (
            "a.xcstrings",
            '{"strings":{"A %@.":{}}}',
            '{"strings":{"A %@.":{}}}'.replace(
                "{}", '{"localizations":{"de":{"stringUnit":{"state":"translated","value":"A %@."}}}}'
            ),
        ),
        ("a.ts", message("no prox&amp;y", NEW), message("no prox&amp;y", "<translation>NO PROX&amp;Y</translation>")),
        ("a.ts", message("&amp;a (s)", NEW), message("&amp;a (s)", "<translation>&amp;A (S)</translation>")),
    ],
)
def test_what_becomes_of_a_catalogue(name: str, before: str, after: str) -> None:
    frame = "<TS>{}</TS>" if name == "a.ts" else "{}"
    document = open_document(name, frame.format(before).encode(), DocumentOptions(target="de"))
    translations = [capitals(text) for text in document.texts]
    assert document.written(translations, DOUBTS).decode().replace(' language="de"', "") == frame.format(after)


@pytest.mark.parametrize(
    ("found", "target", "written"),
    [
        ('language="de_AT"', "de", 'language="de_AT"'),
        ('language="en"', "pt-BR", 'language="pt_BR"'),
        ('sourcelanguage="en"', "de", 'sourcelanguage="en" language="de"'),
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


@pytest.mark.parametrize(
    ("name", "source", "target", "note"),
    [
        (
            "a.ts",
            f"<TS>{message('%n a', NEW, NUMERUS)}</TS>",
            "pl",
            "1 message of an unusual form or length was left as it is.",
        ),
        (
            "a.xcstrings",
            '{"strings": {"a b": {"extractionState": "stale"}}}',
            "de",
            "1 string that is stale or has no text was left as it is.",
        ),
        (
            "a.xcstrings",
            '{"strings": {"fa-home": {}}}',
            "de",
            "1 value that is not text was left as it is: keys fa-home.",
        ),
        (
            "a.xcstrings",
            f'{{"strings":{{"k":{{"localizations":{{{plural("", "%d day", "%d days")}}}}}}}}}',
            "ru",
            "1 text lacks plural forms of ru, few, many: 'other' is used instead.",
        ),
        ("a.xcstrings", f'{{"strings":{{"k":{{"localizations":{{{plural("", "%d day", "%d days")}}}}}}}}}', "ja", ""),
        (
            "a.stringsdict",
            PLIST,
            "ar",
            "1 text lacks plural forms of ar, few, many, one, two, zero: 'other' is used instead.",
        ),
        ("a.stringsdict", PLIST, "zh", ""),
    ],
)
def test_what_is_left_is_told(name: str, source: str, target: str, note: str) -> None:
    notes = "".join(open_document(name, source.encode(), DocumentOptions(target=target)).notes)
    assert notes.endswith(note)
    assert bool(notes) is bool(note)
