"""Special tokens in texts."""

from service.text.piece_tokenizers import SpecialTokens


def test_texts_are_cut_at_special_tokens() -> None:
    special = SpecialTokens({"</s>": 0, "<pad>": 9})
    assert special.split("") == ([""], [])
    assert special.split("a < b") == (["a < b"], [])
    assert special.split("</s>") == (["", ""], [0])
    assert special.split(" a</s> <pad></s>b ") == ([" a", " ", "", "b "], [0, 9, 0])


def test_the_longest_of_those_that_start_first_is_taken() -> None:
    special = SpecialTokens({"<a": 1, "<a>": 2, "a>b": 3, "(.*)": 4})
    assert special.split("<a>b") == (["", "b"], [2])
    assert special.split("a>b<a") == (["", "", ""], [3, 1])
    assert special.split("x(.*)y") == (["x", "y"], [4])
