"""Request ids and API keys as callers send them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from service.calls.metadata import api_key_in, request_id_in


@given(st.text(min_size=1, max_size=128, alphabet=st.characters(min_codepoint=0x21, max_codepoint=0x7E)))
@settings(derandomize=True, deadline=None)
def test_a_usable_id_is_kept(given_id: str) -> None:
    assert request_id_in([("other", "x"), ("x-request-id", given_id)]) == given_id


def test_an_unusable_one_is_replaced() -> None:
    for metadata in ([], [("x-request-id", "")], [("x-request-id", "a b")], [("x-request-id", "ä")]):
        first, second = (request_id_in(metadata) for _ in range(2))
        assert len(first) == 16
        assert first != second


def test_a_key_may_come_under_three_names() -> None:
    assert api_key_in([("authorization", "Bearer  k "), ("x-api-key", "other")]) == "k"
    assert api_key_in([("authorization", "Basic k"), ("x-api-key", "other")]) == "other"
    assert api_key_in([("x-goog-api-key", "k")]) == "k"
    assert api_key_in([("authorization", b"Bearer k")]) == ""


def test_the_scheme_of_deepl_s_clients_is_known_too() -> None:
    assert api_key_in([("authorization", "DeepL-Auth-Key  k "), ("x-api-key", "other")]) == "k"
    assert api_key_in([("authorization", "deepl-auth-key k:fx")]) == "k:fx"
    assert api_key_in([("authorization", "DeepL-Auth-Keyk"), ("x-api-key", "other")]) == "other"
