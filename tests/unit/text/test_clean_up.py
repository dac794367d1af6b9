"""Spaces before punctuation."""

from hypothesis import given, settings
from hypothesis import strategies as st

from service.text.clean_up import clean_up_spaces, settled


def test_spaces_before_punctuation_and_contractions_go() -> None:
    assert clean_up_spaces("He is n't here , I 'm sure . Who 's ' it ?") == "He isn't here, I'm sure. Who's'it?"
    assert clean_up_spaces("nothing to do") == "nothing to do"


@given(
    st.lists(st.sampled_from([" ", " ", "'", ".", "n", "t", "n't", "'s", "'ve", "m", "r", "e", "x", ",", " ' "])),
    st.data(),
)
@settings(derandomize=True, deadline=None, max_examples=400)
def test_what_is_settled_stays_whatever_follows(symbols: list[str], data: st.DataObject) -> None:
    text, cut = "".join(symbols), data.draw(st.integers(0, len(symbols)))
    begun = settled("".join(symbols[:cut]))
    assert clean_up_spaces(text).startswith(clean_up_spaces(begun))


def test_only_what_may_lose_its_space_is_held_back() -> None:
    assert settled("It is") == "It is"
    assert settled("does n'") == "does"
    assert settled("does n '") == "does"
    assert settled("it ") == "it"
