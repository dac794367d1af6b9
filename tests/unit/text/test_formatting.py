"""Final punctuation and first letters that follow the source."""

import pytest

from service.text.formatting import preserve_formatting


@pytest.mark.parametrize(
    ("source", "translated", "expected"),
    [
        ("hello there", "Hallo da.", "hallo da"),
        ("Hello there.", "hallo da", "Hallo da."),
        ("Hello!", "Hallo.", "Hallo!"),
        ("Really?!", "Wirklich", "Wirklich?!"),
        ("Wait…", "Warte...", "Warte..."),
        ("Hello.", "你好。", "你好。"),
        ("What?", "Τι;", "Τι;"),
        ("He said “no”", "„Nein“, sagte er.", "„Nein“, sagte er"),
        ('He said "no."', "Er sagte „nein.“", "Er sagte „nein.“"),
        ('He said "no"', "Er sagte „nein.“", "Er sagte „nein“"),
        ("USA today", "USA heute", "USA heute"),
        ("us", "USA", "USA"),
        ("“quoted” word", "„Zitiertes“ Wort", "„zitiertes“ Wort"),
        ("the end", "ß", "ß"),
        ("The end", "ßx", "ßx"),
        ("words", "3 Wörter", "3 Wörter"),
        ("你好", "Hello", "Hello"),
        ("3.", "Drei", "Drei"),
        ("Word", "", ""),
        ("", "Wort.", "Wort."),
        ("Done. ", "Fertig", "Fertig."),
    ],
)
def test_form_follows_the_source(source: str, translated: str, expected: str) -> None:
    assert preserve_formatting(source, translated) == expected
