"""Recent errors are bounded and say nothing that a customer wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import quoted
from service.observe.recent_errors import NUM_KEPT, RecentErrors


def shown(message: str) -> str:
    errors = RecentErrors()
    errors.note("id", "method", "INVALID_ARGUMENT", message)
    return errors.latest()[0].message


def test_the_last_are_kept_and_the_newest_is_first() -> None:
    errors = RecentErrors()
    for number in range(NUM_KEPT + 3):
        errors.note(str(number), "method", "INTERNAL", "message")
    assert [error.request_id for error in errors.latest()] == [str(n) for n in range(NUM_KEPT + 2, 2, -1)]


@given(st.text(), st.text())
def test_what_a_message_quotes_is_left_out(first: str, second: str) -> None:
    # In letters that the message itself has not, and too many for a language code.
    first, second = f"ÄÄÄÄ{first}ÄÄÄÄ", f"ÖÖÖÖ{second}"
    message = f"texts[3] can't be written: of {quoted(first)} there is {quoted(second)} left. Don't send it."
    assert shown(message) == "texts[3] can't be written: of '…' there is '…' left. Don't send it."


def test_without_quotes_it_would_be_there() -> None:
    assert "secret" in shown("of secret there is nothing left")  # so the test above shows something


@pytest.mark.parametrize("code", ["en", "zho_Hant", "pt-BR", "es-419", "zh-Hant-TW"])
def test_a_language_code_stays(code: str) -> None:
    assert shown(f"no model here translates into {quoted(code)}.") == f"no model here translates into '{code}'."


@pytest.mark.parametrize("text", ["word", "a word", "en de", "Geheim", "12345678", "en-Geheimnis"])
def test_words_do_not(text: str) -> None:
    assert text not in shown(f"language is {quoted(text)}.")


def test_a_message_is_bounded() -> None:
    assert len(shown("long " * 1000)) == 300
