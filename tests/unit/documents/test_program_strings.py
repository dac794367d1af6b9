"""Strings of programs: their arguments, accelerators and layout come back, whatever a translator does."""

import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.documents.accelerators import with_accelerator, without_accelerator
from service.documents.arguments import format_of, in_order
from service.documents.inline import Kind, Piece
from service.documents.layout import apart, laid_out
from service.documents.program_strings import ProgramString

ARGUMENTS = ("%s", "%d", "%%", "%-5.2f", "%2$s", "%*d", "%<PRIu64>")
MARKUP = (
    *("<b>", "</b>", "<br/>", "&amp;", "\n", "\t", "``x y``", ":kbd:`Ctrl+S`", "[b]", "[/b]"),
    *("**strong**", "--help"),
)
WORDS = ("word", " ", ", ", "  ", "...", "{n}", "{n, plural, one {", "} other {", "}}", "[", "<", ">", "\\n")
TEXTS = st.lists(st.sampled_from((*ARGUMENTS, *MARKUP, *WORDS)), max_size=12).map("".join)


def string(text: str) -> ProgramString:
    return ProgramString([Piece(Kind.TEXT, text=text)], format_of(("c-format",)))


@given(TEXTS)
def test_a_text_that_is_not_changed_comes_back_as_it_is(text: str) -> None:
    read = string(text)
    assert read.written(read.inline.text) == text
    assert read.doubt(read.inline.text, None) is None


@given(TEXTS, st.randoms(use_true_random=False))
def test_arguments_and_markup_survive_any_translator(text: str, rng: random.Random) -> None:
    read = string(text)
    told = re.findall(r"<[^<>]*>|\w+|\W", read.inline.text)
    rng.shuffle(told)
    translated = read.written("".join(told[: rng.randint(0, len(told))]))
    unnumbered = re.compile(r"(?<=[%*])\d{1,2}\$")
    for pattern in (format_of(("c-format",)).pattern, re.compile(r"</?b>|<br/>|``x y``|:kbd:|\*\*|\[/?b\]|[\n\t]")):
        found = [Counter(unnumbered.sub("", each) for each in pattern.findall(each)) for each in (text, translated)]
        assert found[0] - found[1] == Counter()


@pytest.mark.parametrize(
    ("flag", "text", "found"),
    [
        ("c-format", "%s of %-5.2f%% in %*d, %1$s, %zu, %<PRIu64>, %m", "%s|%-5.2f|%%|%*d|%1$s|%zu|%<PRIu64>|%m"),
        ("objc-format", "%@ and %1$@, %ld", "%@|%1$@|%ld"),
        ("python-format", "%(name)s, %d, %5.1f, 100%%", "%(name)s|%d|%5.1f|%%"),
        ("python-brace-format", "{} {0!r:>{width}} {name} {{x}}", "{}|{0!r:>{width}}|{name}|{{|}}"),
        ("csharp-format", "{0,-10:N2} of {1:dd MMM}", "{0,-10:N2}|{1:dd MMM}"),
        ("java-format", "{0,number,#.##} of {1,choice,0#no or {2}}", "{0,number,#.##}|{1,choice,0#no or {2}}"),
        ("java-printf-format", "%1$tY-%d, %,d", "%1$tY|%d|%,d"),
        ("ruby-format", "%<n>d of %{name}, %<m>.1f, %s", "%<n>d|%{name}|%<m>.1f|%s"),
        ("php-format", "%'*10s %05d %1$s", "%'*10s|%05d|%1$s"),
        ("perl-brace-format", "{name} and { that }", "{name}"),
        ("qt-format", "%1 of %L2, 5%", "%1|%L2"),
        ("qt-plural-format", "%n file(s)", "%n"),
        ("sh-format", "$file or ${line_number}, $5", "$file|${line_number}"),
        ("scheme-format", "~a of ~5d~%", "~a|~5d|~%"),
        ("object-pascal-format", "%s %1:d %-5.2f", "%s|%1:d|%-5.2f"),
        ("boost-format", "%1% %3$s %s", "%1%|%3$s|%s"),
        ("gcc-internal-format", "%qs at %<x%>", "%qs|%<|%>"),
        ("smalltalk-format", "%1 of %2", "%1|%2"),
        ("lua-format", "%q is %5.1f", "%q|%5.1f"),
        ("", "%s costs 5% of the 100% fee, %(name)s of %selection in %dpx", "%s|%(name)s|%d"),
    ],
)
def test_arguments_of_each_kind_are_found(flag: str, text: str, found: str) -> None:
    assert [match[0] for match in format_of((flag,)).pattern.finditer(text)] == found.split("|")


@pytest.mark.parametrize(
    ("flag", "source", "found", "written"),
    [
        ("c-format", "%s %d", (0, 1), "%s %d"),
        ("c-format", "%s %d", (1, 0), "%2$d %1$s"),
        ("c-format", "%s %% %d %m", (2, 1, 0, 3), "%2$d %% %1$s %m"),
        ("c-format", "%*d %.*s", (1, 0), "%4$.*3$s %2$*1$d"),
        ("c-format", "%2$s %1$s", (1, 0), "%1$s %2$s"),
        ("c-format", "%s %d", (1,), "%2$d"),
        ("object-pascal-format", "%s %d", (1, 0), "%1:d %0:s"),
        ("python-brace-format", "{} {:d}", (1, 0), "{1:d} {0}"),
        ("python-brace-format", "{b} {a}", (1, 0), "{a} {b}"),
        ("python-format", "%s %d", (1, 0), None),
        ("", "%s %d", (1, 0), None),
        ("scheme-format", "~a ~s", (1, 0), None),
    ],
)
def test_another_order_is_numbered_where_it_can(
    flag: str, source: str, found: tuple[int, ...], written: str | None
) -> None:
    ordered = in_order(format_of((flag,)), source.split(" "), found)
    assert (None if ordered is None else " ".join(ordered)) == written


@pytest.mark.parametrize(
    ("source", "translation", "written"),
    [
        ("E&xit", "Beenden", "&Beenden"),
        ("St&art", "Start", "St&art"),
        ("Save &As...", "Alles sichern als...", "&Alles sichern als..."),
        ("Search && &replace", "Suchen && ersetzen", "Suchen && e&rsetzen"),
        ("Tom & &Jerry", "Tom & Jerry", "Tom & &Jerry"),
        ("&1 file", "1 Datei", "&1 Datei"),
        ("_File", "Datei", "_Datei"),
        ("Pre_ferences", "Einstellungen", "_Einstellungen"),
        ("(_Advanced)", "(Erweitert)", "(_Erweitert)"),
        ("~Help", "Hilfe", "~Hilfe"),
        ("&&Open file", "Offene Datei", "&&Offene Datei"),
        ("&Find {file}", "Suche {file} früh", "Suche {file} &früh"),
        ("Save &as...", "另存为...", "另存为(&A)..."),
        ("&Edit", "संपादन", "&संपादन"),
        ("&Open", "...", "..."),
    ],
)
def test_a_sign_is_before_a_letter_of_the_translation(source: str, translation: str, written: str) -> None:
    [piece], accelerator = without_accelerator([Piece(Kind.TEXT, text=source)])
    assert accelerator is not None
    assert len(piece.text) == len(source) - len(accelerator.sign)
    [piece] = with_accelerator([Piece(Kind.TEXT, text=translation)], accelerator)
    assert piece.text == written


@pytest.mark.parametrize(
    "text",
    [
        *("AT&T", "R&D", "a & b", "&&", "?a=1&b=2", "&amp;", "Procter&Gamble", "x&y=2", "drag&drop"),
        *("set user_name now", "__init__", "_()", "a_b_c", "_well_ done", "~/bin", "~5 min", "&Cut or &Paste"),
        "a sentence of so many words that it is no label of a button &or menu",
    ],
)
def test_a_sign_in_something_else_is_none(text: str) -> None:
    pieces = [Piece(Kind.TEXT, text=text)]
    assert without_accelerator(pieces) == (pieces, None)


def test_only_text_has_accelerators() -> None:
    pieces = [Piece(Kind.KEPT, "%s", "%s"), Piece(Kind.TEXT, text=" _Undo")]
    every, accelerator = without_accelerator(pieces)
    assert accelerator is not None
    assert with_accelerator([Piece(Kind.KEPT, "undo", "undo"), *every], accelerator)[-1].text == " _Undo"


CODE = Piece(Kind.MARK, "<x/>")


def parts(pieces: list[Piece]) -> list[str]:
    found = (each.text if each.kind is Kind.TEXT else f"{each.kind.value}:{each.raw}" for each in pieces)
    return list(filter(None, found))


@pytest.mark.parametrize(
    ("pieces", "found"),
    [
        (["one\ntwo  three"], ["one\ntwo  three"]),
        (["one\ttwo\nthree"], ["one", "break:\t", "two", "break:\n", "three"]),
        (["one \n  two  three ", CODE], ["one", "break: \n  ", "two", "break:  ", "three ", "mark:<x/>"]),
        (["In {n, plural, other {# files}}"], ["In {n, plural, other {# files}}"]),
        (
            ["Find {n, plural, =0 {no {kind} file} other {", CODE, " files}} now"],
            [
                *("Find ", "break:{n, plural, =0 {", "no {kind} file", "break:} other {"),
                *("mark:<x/>", " files", "break:}}", " now"),
            ],
        ),
        (
            ["{g, select, a {x {n, plural, other {y", CODE, "}}} other {}}"],
            [
                *("break:{g, select, a {", "x ", "break:{n, plural, other {", "y", "mark:<x/>", "break:}}"),
                *("break:} other {", "break:}}"),
            ],
        ),
        (["{n, plural, one {", CODE, "} "], ["{n, plural, one {", "mark:<x/>", "} "]),
        (["} {name} {", CODE], ["} {name} {", "mark:<x/>"]),
    ],
)
def test_nothing_moves_across_what_separates(pieces: list[str | Piece], found: list[str]) -> None:
    assert parts(laid_out([Piece(Kind.TEXT, text=each) if isinstance(each, str) else each for each in pieces])) == found


def pairs(*texts: str) -> list[Piece]:
    """Return a pair around each text that is no sign."""
    pieces: list[Piece] = []
    for text in texts:
        is_word = text[:1].isalpha()
        pieces += [Piece(Kind.OPEN, "<a>")] * is_word + [Piece(Kind.TEXT, text=text)]
        pieces += [Piece(Kind.CLOSE, "</a>")] * is_word
    return pieces


@pytest.mark.parametrize(
    ("texts", "breaks"),
    [
        (("Home", " | ", "Contact"), [" | "]),
        (("Save", "Cancel", " "), [""]),
        (("A", " ", "B", "C"), [" ", ""]),
        (("Home",), []),
        (("Home", " 1 "), []),
        (("Home", "- and so on -", "Contact"), []),
    ],
)
def test_elements_that_are_all_there_is_are_texts_of_their_own(texts: tuple[str, ...], breaks: list[str]) -> None:
    found = apart(pairs(*texts), lambda _: True, lambda piece: Piece(Kind.BREAK, piece.text if piece else ""))
    assert [piece.raw for piece in found if piece.kind is Kind.BREAK] == breaks
    assert apart(pairs(*texts), lambda _: False, lambda _: CODE) == pairs(*texts)
