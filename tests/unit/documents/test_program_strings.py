"""Strings of programs: what is in them comes back, whatever a translator does."""

import random
import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from service.documents.arguments import format_of
from service.documents.inline import Kind, Piece
from service.documents.program_strings import ProgramString

ARGUMENTS = ("%s", "%d", "%%", "%-5.2f", "%2$s", "%*d", "%<PRIu64>")
MARKUP = (
    "<b>",
    "</b>",
    "<br/>",
    "&amp;",
    "\n",
    "\t",
    "``x y``",
    ":kbd:`Ctrl+S`",
    "[b]",
    "[/b]",
    "**strong**",
    "--help",
)
WORDS = ("word", " ", ", ", "  ", "...", "{n}", "{n, plural, one {", "} other {", "}}", "[", "<", ">", "\\n")
TEXTS = st.lists(st.sampled_from((*ARGUMENTS, *MARKUP, *WORDS)), max_size=12).map("".join)


def string(text: str) -> ProgramString:
    return ProgramString([Piece(Kind.TEXT, text=text)], format_of(("c-format",)))


@given(TEXTS)
def test_a_text_that_is_not_changed_comes_back_as_it_is(text: str) -> None:
    read = string(text)
    assert read.written(read.inline.text) == text
    assert read.is_ordered(read.inline.text)


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
