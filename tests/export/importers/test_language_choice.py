"""The languages of a checkpoint by the codes that people write."""

import pytest

from export.importers.language_choice import chosen_language

NLLB = (
    *("eng_Latn", "deu_Latn", "fra_Latn", "zho_Hans", "zho_Hant", "por_Latn", "srp_Cyrl", "nob_Latn", "nno_Latn"),
    *("tgl_Latn", "arb_Arab", "ary_Arab", "kmr_Latn", "ckb_Arab", "hin_Deva", "urd_Arab", "spa_Latn", "cat_Latn"),
    *("glg_Latn", "nld_Latn", "afr_Latn"),
)
M2M100 = ("en", "de", "fr", "zh", "pt", "sr", "no", "tl", "ar", "hi", "ur", "es", "ca", "gl", "nl", "af")


@pytest.mark.parametrize(
    ("asked", "nllb", "m2m100"),
    [
        ("en", "eng_Latn", "en"),
        ("de-AT", "deu_Latn", "de"),
        ("eng", "eng_Latn", "en"),
        ("DEU_latn", "deu_Latn", "de"),
        ("zh", "zho_Hans", "zh"),
        ("zh-TW", "zho_Hant", None),
        ("pt-BR", "por_Latn", "pt"),
        ("sr", "srp_Cyrl", "sr"),
        ("nb", "nob_Latn", "no"),
        ("fil", "tgl_Latn", "tl"),
        ("ar", "arb_Arab", "ar"),
        ("iw", None, None),
    ],
)
def test_a_code_finds_the_model_s_own(asked: str, nllb: str | None, m2m100: str | None) -> None:
    for codes, expected in ((NLLB, nllb), (M2M100, m2m100)):
        problems: list[str] = []
        assert chosen_language(asked, codes, "--source-language", problems) == expected
        assert len(problems) == (expected is None)


@pytest.mark.parametrize(
    ("asked", "suggested"),
    [("German", "deu_Latn"), ("engl_Latn", "eng_Latn"), ("Portugese", "por_Latn"), ("sr-Latn", "srp_Cyrl")],
)
def test_an_unknown_one_is_answered_with_close_ones(asked: str, suggested: str) -> None:
    problems: list[str] = []
    assert chosen_language(asked, NLLB, "--target-language", problems) is None
    (problem,) = problems
    assert problem.startswith(
        f"--target-language is '{asked}', none of the model's {len(NLLB)} languages; did you mean"
    )
    assert suggested in problem
    assert problem.count("_") < 8, "not all of them"


def test_what_resembles_nothing_gets_examples() -> None:
    problems: list[str] = []
    assert chosen_language("xxxxxx", NLLB, "--target-language", problems) is None
    assert "did you mean a code such as afr_Latn, arb_Arab" in problems[0]
