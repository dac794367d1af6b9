"""Spans of tokens by what each adds to the text."""

from service.text.token_spans import by_prefixes


def test_by_prefixes_takes_what_each_token_adds() -> None:
    assert by_prefixes(lambda ids: " ".join("abc"[i] for i in ids), [0, 2, 1]) == [(0, 1), (1, 3), (3, 5)]
    # Two bytes of one character: the first alone is a different character.
    half = {(0,): "\ufffd", (0, 1): "é", (0, 1, 2): "é!"}
    assert by_prefixes(lambda ids: half.get(tuple(ids), ""), [0, 1, 2]) == [(0, 0), (0, 1), (1, 2)]
