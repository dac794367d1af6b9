"""Errors in the terms of an API."""

import pytest

from service.domain.errors import InvalidRequest, Path
from service.faces.http.spelling import spell, spelling_of

NAMES = {"texts": "q", "source_language_code": "from"}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (Path("texts", 3), "q[3]"),
        (Path("source_language_code"), "from"),
        (Path("options", "texts"), "options.texts"),
        (Path("other", 1, "texts"), "other[1].texts"),
    ],
)
def test_only_the_first_part_of_a_path_is_a_field(path: Path, name: str) -> None:
    assert spelling_of(NAMES)(path) == name


def test_an_error_and_its_advice_are_in_the_terms_of_the_api() -> None:
    error = InvalidRequest("{path} is wrong", Path("texts"), advice="give source_language_code")
    spell(error, NAMES)
    assert str(error) == "q is wrong; give from."
    assert error.field == "q"


def test_names_that_an_api_shares_with_ours_stay() -> None:
    error = InvalidRequest("{path} is wrong", Path("texts"), advice="give source_language_code")
    spell(error, {})
    assert str(error) == "texts is wrong; give source_language_code."
