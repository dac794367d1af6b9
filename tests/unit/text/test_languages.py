"""Language codes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.text.languages import is_well_formed, match_language, same_language


@pytest.mark.parametrize("code", ["en", "de", "pt-BR", "zh-Hant-TW", "eng_Latn", "sr-Latn", "de-CH-1996"])
def test_codes_are_well_formed(code: str) -> None:
    assert is_well_formed(code)


@pytest.mark.parametrize(
    "code", ["", "e", "12", "en-", "-en", "en--us", "d!", "en us", "en\n", "a" * 9, "é", "en-" + "a-" * 40]
)
def test_what_is_no_code_is_not(code: str) -> None:
    assert not is_well_formed(code)


def test_case_and_underscore_make_no_difference() -> None:
    assert same_language("PT_br", "pt-BR")
    assert not same_language("pt", "pt-BR")
    assert match_language("EN", ["de", "en"]) == "en"
    assert match_language("ENG-latn", ["deu_Latn", "eng_Latn"]) == "eng_Latn"
    assert match_language("fr", ["de", "en"]) is None


@given(st.from_regex(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8}){0,2}", fullmatch=True))
@settings(derandomize=True, max_examples=50, deadline=None)
def test_a_code_matches_itself_however_it_is_written(code: str) -> None:
    assert is_well_formed(code)
    for variant in (code.upper(), code.lower(), code.swapcase(), code.replace("-", "_")):
        assert match_language(variant, ["qqq", code]) == code
