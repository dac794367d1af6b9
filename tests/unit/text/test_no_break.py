"""No-break spaces of a source are where the same words meet in its translation."""

import pytest

from service.text.formatting import with_no_breaks


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
    source = "10\u00a0km " * 20_000
    assert with_no_breaks(source, "10 km " * 20_000).count("\u00a0") == 20_000
