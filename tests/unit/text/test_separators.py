"""What divides lines into texts."""

import pytest

from service.domain.translation import SplitSentences
from service.text.sentences import pieces

# Each with its segments, marked by braces.
DIVIDED = [
    "{Name}        {Price}   {Stock}",
    "{Filesystem}     {Size}  {Used 12}",
    "{Name:}\u00a0\u00a0\u00a0{Anna}",
    "   {Total}                    120.00",
    "{Open the door.}  {Close the window.}",
    "{Name:} ________ {Date:} ________",
    "{The cat} ____ {on the mat.}",
    "{The house} ........ 12",
    "{The house}........12",
    "{The house} . . . . . 12",
    "{The house} ... 12",
    "{Name:} ... {Date:} ....",
    "=== {The title} ===",
    "***{Important}***",
    "~~~ {Note} ~~~",
    "──── {Settings} ────",
    "----- {Original Message} -----",
    "* * * {The end} * * *",
    "- ***{Important}***",
    "[{OVER PHONE}] {Where are you?}",
    "LEO [{OVER PHONE}]: {They are here.}",
    "{Click} [{OK}] {or} [{Cancel}].",
    "[{Name:}  {Date:}]",
    "{Name}  {Price}\n{bread}  {milk}  {tea}",
    "{See} ![{A dog}](a.png) {and} [{the guide}](https://x.y/z).",
    "Re: {The door is open}",
    "{Subject:} Re: FWD: [list-name] {The door is open}",
    "AW[2]: {It is open}\nRE: {No}",
    "« {Back}",
    "{Home} » {Products} › {Chairs}",
    "{Read more}»",
    "{He said} « {yes} » {to me.}",
]
WHOLE = [
    "Well ... I do not know.",
    "I do not know...",
    "Yes.... No",
    "The end. . . . Then",
    "The man---who was old---left in class A+++ with foo___bar",
    "The word[s] are [W]hat array[i] means at [1].",
    "«Yes», »yes«, ‹yes›",
    "The pre: and more: here",
    "one - two – three",
    "The door  is open at night",
    "The  House on the hill, where we live.",
]


@pytest.mark.parametrize("text", DIVIDED)
def test_separators_are_between_segments(text: str) -> None:
    found = pieces(text.replace("{", "").replace("}", ""), "en", SplitSentences.ON)
    assert "".join(f"{{{piece.text}}}" if piece.is_segment else piece.text for piece in found) == text


@pytest.mark.parametrize("text", WHOLE)
def test_the_same_signs_in_sentences_are_no_separators(text: str) -> None:
    assert [piece.text for piece in pieces(text, "en", SplitSentences.OFF)] == [text]


def test_spaced_quotation_marks_of_french_are_no_arrows() -> None:
    assert [piece.text for piece in pieces("Il dit « oui » à tous.", "fr", SplitSentences.ON)] == [
        "Il dit « oui » à tous."
    ]
    assert len(list(pieces("Accueil » Produits", "fr", SplitSentences.ON))) == 3
