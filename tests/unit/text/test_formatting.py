"""Final punctuation, first letters and no-break spaces that follow the source."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.formatting import preserve_formatting, with_no_breaks


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


@pytest.mark.parametrize(
    ("source", "translated", "target", "expected"),
    [
        ("${v} Is set.", "${v} ist gesetzt.", "${v}", "${v} Ist gesetzt."),
        ("%(n)s Files", "%(n)s Dateien", "%(n)s", "%(n)s Dateien"),
        ("Well done :tada:", "Gut gemacht. :tada:", ":tada:", "Gut gemacht. :tada:"),
        ("Well done. :tada:.", "Gut gemacht :tada:", ":tada:", "Gut gemacht :tada:."),
        ("Use dRagoman", "dRagoman benutzen", "dRagoman", "dRagoman benutzen"),
        ("ls -la. Shows files", "ls -la. zeigt Dateien", "ls -la.", "ls -la. Zeigt Dateien"),
        ("{name}, come here!", "Komm her, {name}!", "{name}", "Komm her, {name}!"),
        ("{name}, come here!", "{name}, Komm her", "{name}", "{name}, komm her!"),
        ("%s", "%s.", "%s", "%s."),
        ("Run ls -la.", "ls -la. ausführen.", "ls -la.", "ls -la. ausführen"),
    ],
)
def test_what_is_protected_is_no_text(source: str, translated: str, target: str, expected: str) -> None:
    def kept(text: str) -> list[tuple[int, int]]:
        return [(text.index(target), text.index(target) + len(target))]

    assert preserve_formatting(source, translated, kept(source), kept(translated)) == expected


TARGETS = (
    *("${v}", "%(n)s", "{name}", ":tada:", "dRagoman", "Term.", "ls -la.", "eBay!", "x", "X", "...", "https://a.b/"),
)
WORDS = ("word", "Word", "WORD", "é", "3", ".", "!", "…", "“", "”", " ", " ", "")
SAID = st.lists(st.tuples(st.sampled_from(TARGETS), st.just(True)) | st.tuples(st.sampled_from(WORDS), st.just(False)))


def _joined(parts: list[tuple[str, bool]]) -> tuple[str, list[tuple[int, int]]]:
    text, kept = "", []
    for part, is_kept in parts:
        if is_kept:
            kept.append((len(text), len(text) + len(part)))
        text += part
    return text, kept


@given(SAID, SAID)
def test_each_protected_part_stays_as_it_is(source: list[tuple[str, bool]], said: list[tuple[str, bool]]) -> None:
    text, kept_source = _joined(source)
    translated, kept = _joined(said)
    formatted = preserve_formatting(text, translated, kept_source, kept)
    assert [formatted[start:end] for start, end in kept] == [translated[start:end] for start, end in kept]


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("It is 10~km away.", "Es ist 10 km entfernt.", "Es ist 10~km entfernt."),
        ("It costs 5~€.", "Das kostet 5 €.", "Das kostet 5~€."),
        ("Wait 5~seconds.", "5 Sekunden warten.", "5~Sekunden warten."),
        ("It is 1,000~km.", "Es sind 1.000 km.", "Es sind 1.000~km."),
        ("See §~5, Mr.~Smith.", "Siehe § 5, Herr Smith.", "Siehe §~5, Herr~Smith."),
        ("About~us", "Über uns alle", "Über~uns~alle"),
        ("10~km and 10~km and 10 km", "10 km und 10 km und 10 km", "10~km und 10~km und 10 km"),
        ("one~two three", "eins zwei drei", "eins zwei drei"),  # nobody knows where
        ("5~km or 5 cm", "5 cm oder 5 m", "5 cm oder 5 m"),
        ("Yes~!", "Ja!", "Ja!"),
        ("no such space", "ohne", "ohne"),
    ],
)
def test_no_break_spaces(source: str, translation: str, expected: str) -> None:
    for sign in "\u00a0\u202f":
        assert with_no_breaks(source.replace("~", sign), translation) == expected.replace("~", sign)


def test_many_take_linear_time() -> None:
    source = "10\u00a0km " * 10_000
    assert with_no_breaks(source, "10 km " * 10_000).count("\u00a0") == 10_000
