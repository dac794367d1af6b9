"""Errors are data: their wording, whatever the API, and what operators see of them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import (
    InvalidRequest,
    NotFound,
    PairNotFound,
    Path,
    Public,
    ServiceError,
    TooLong,
    TooMany,
    counted,
    dotted,
)
from service.text.languages import in_message

TEXT = Path("texts", 3)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InvalidRequest("{path} is {value}", TEXT, value=9, allowed="1 to 8"), "texts[3] is 9; allowed: 1 to 8."),
        (InvalidRequest("{path} is {value}", TEXT, value="x", allowed="a, b"), "texts[3] is 'x'; allowed: a, b."),
        (InvalidRequest("{path} is empty", TEXT, advice="give one"), "texts[3] is empty; give one."),
        (TooMany("{path} has {n} entries", TEXT, n=9, allowed="8"), "texts[3] has 9 entries; allowed: 8."),
        (
            TooLong("{path} has {n} tokens", TEXT, n=9, allowed="8", advice="cut it"),
            "texts[3] has 9 tokens; allowed: 8. Cut it.",
        ),
        (InvalidRequest("{path} and {other}", TEXT, other=Path("options", "top_k")), "texts[3] and options.top_k."),
        (InvalidRequest("a {brace} is no name"), "a {brace} is no name"),
        (InvalidRequest("it is {text}", text="{path} {0.real}"), "it is '{path} {0.real}'."),
        (NotFound("no {name} but {others}", "model", "m", name="m", others=Public("'n'")), "no 'm' but 'n'."),
        (ServiceError("as it is."), "as it is."),
    ],
)
def test_the_wording_of_errors(error: ServiceError, message: str) -> None:
    assert str(error) == message


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (Path("texts"), "texts"),
        (TEXT, "texts[3]"),
        (Path("options", "top_k"), "options.top_k"),
        (Path("terms", 1, "source"), "terms[1].source"),
        (Path(), ""),
    ],
)
def test_paths_are_spelled_as_protobuf_does(path: Path, field: str) -> None:
    assert dotted(path) == field
    assert InvalidRequest("no", path).field == field


def test_another_api_spells_paths_in_its_own_terms() -> None:
    error = InvalidRequest("{path} takes {other}", TEXT, other=Path("options"))
    error.spelling = lambda path: f"<{path[0]}>"
    assert (str(error), error.field) == ("<texts> takes <options>.", "<texts>")
    assert error.redacted == str(error)


def test_a_pair_that_is_not_there_is_an_invalid_code_where_there_are_no_pairs() -> None:
    error = PairNotFound("not into {code}", Path("target_language_code"), code="fr").as_invalid()
    assert (type(error), str(error), error.field) == (InvalidRequest, "not into 'fr'.", "target_language_code")


@given(st.text(), st.text())
def test_what_a_caller_wrote_is_left_out(first: str, second: str) -> None:
    # In letters that do not occur in the message itself.
    first, second = f"ÄÄÄÄ{first}ÄÄÄÄ", f"ÖÖÖÖ{second}"
    error = InvalidRequest("{path} of {first} has {second} left", TEXT, first=first, second=second, advice="don't")
    assert error.redacted == "texts[3] of '…' has '…' left; don't."
    assert "ÄÄÄÄ" in str(error)
    assert "ÖÖÖÖ" in str(error)
    assert len(str(error)) < 1500


@pytest.mark.parametrize("code", ["en", "zho_Hant", "pt-BR", "es-419", "zh-Hant-TW"])
def test_a_language_code_stays(code: str) -> None:
    error = InvalidRequest("not into {code}", code=in_message(code))
    assert error.redacted == str(error) == f"not into '{code}'."


@pytest.mark.parametrize("text", ["word", "a word", "en de", "Geheim", "12345678", "en-Geheimnis", "en-secret"])
def test_words_do_not(text: str) -> None:
    error: Any = InvalidRequest("language is {code}", code=in_message(text))
    assert text not in error.redacted
    assert repr(text) in str(error)


@pytest.mark.parametrize(
    ("number", "nouns", "told"),
    [
        (0, ("text",), "0 texts"),
        (1, ("text",), "1 text"),
        (2, ("text",), "2 texts"),
        (1, ("entry", "entries"), "1 entry"),
        (21, ("entry", "entries"), "21 entries"),
        (1, ("text lacks", "texts lack"), "1 text lacks"),
    ],
)
def test_a_number_agrees_with_its_noun(number: int, nouns: tuple[str, ...], told: str) -> None:
    assert counted(number, *nouns) == told
