"""Accelerators: where one is, and where it goes."""

import pytest

from service.documents.accelerators import with_accelerator, without_accelerator
from service.documents.inline import Kind, Piece


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
        ("Save &as...", "另存为...", "另存为(&A)..."),
        ("&Edit", "संपादन", "&संपादन"),
        ("&Open", "...", "..."),
    ],
)
def test_a_sign_is_before_a_letter_of_the_translation(source: str, translation: str, written: str) -> None:
    [piece], accelerator = without_accelerator([Piece(Kind.TEXT, text=source)])
    assert accelerator is not None
    assert len(piece.text) == len(source) - 1
    [piece] = with_accelerator([Piece(Kind.TEXT, text=translation)], accelerator)
    assert piece.text == written


@pytest.mark.parametrize(
    "text",
    [
        *("AT&T", "R&D", "a & b", "&&", "?a=1&b=2", "&amp;", "Procter&Gamble", "x&y=2", "drag&drop"),
        *("set user_name now", "__init__", "_()", "a_b_c", "~/bin", "~5 min", "&Cut or &Paste"),
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
