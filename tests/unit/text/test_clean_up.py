"""Spaces before punctuation."""

from service.text.clean_up import clean_up_spaces


def test_spaces_before_punctuation_and_contractions_go() -> None:
    assert clean_up_spaces("He is n't here , I 'm sure . Who 's ' it ?") == "He isn't here, I'm sure. Who's'it?"
    assert clean_up_spaces("nothing to do") == "nothing to do"
