"""Resource names in Google's form."""

import pytest

from service.domain.errors import InvalidRequest
from service.faces.google import names as names

PARENTS = ["projects/p", "projects/1-a/locations/europe-west1", "projects/-/locations/-"]
NO_PARENTS = [
    *("", "p", "projects/", "projects/p/", "projects/p/locations/", "locations/l"),
    *("projects/p/locations/l/m", "/projects/p"),
]


@pytest.mark.parametrize("parent", PARENTS)
def test_any_project_and_location_will_do(parent: str) -> None:
    names.check_parent(parent)
    assert names.model_of(f"{parent}/models/en-de") == "en-de"
    assert names.model_of(f"{parent}/models/general/nmt") == ""
    assert names.model_of(f"{parent}/models/general/base") == "general/base"
    assert names.detection_model_of(f"{parent}/models/language-detection/default") == names.DETECTION_MODEL


@pytest.mark.parametrize("parent", NO_PARENTS)
def test_what_is_no_parent_is_refused(parent: str) -> None:
    with pytest.raises(InvalidRequest, match=r"projects/\{project\}/locations/\{location\}\.$") as raised:
        names.check_parent(parent)
    assert raised.value.field == "parent"
    with pytest.raises(InvalidRequest) as raised:
        names.model_of(f"{parent}/models/en-de")
    assert raised.value.field == "model"


def test_no_model_is_the_default_one() -> None:
    assert names.model_of("") == ""
    assert names.detection_model_of("") == names.DETECTION_MODEL


def test_a_glossary_and_its_entries() -> None:
    for parent in PARENTS[1:]:
        full = names.glossary_name(parent, "terms")
        assert full == f"{parent}/glossaries/terms"
        assert names.glossary_of(full, "name") == "terms"
        assert names.parent_of(full) == parent
        assert names.entry_of(names.entry_name(full, 7)) == (full, "7")
    assert names.glossary_name("projects/p", "terms") == "projects/p/locations/global/glossaries/terms"


@pytest.mark.parametrize("name", ["", "terms", "projects/p/glossaries/terms", "projects/p/locations/l/glossaries/a/b"])
def test_what_is_no_glossary_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match=r"glossaries/\{glossary\}") as raised:
        names.glossary_of(name, "glossary_config.glossary")
    assert raised.value.field == "glossary_config.glossary"
    with pytest.raises(InvalidRequest, match=r"glossaryEntries/\{entry\}"):
        names.entry_of(f"{name}/glossaryEntries/")
    with pytest.raises(InvalidRequest, match=r"glossaryEntries/\{entry\}"):
        names.entry_of(name)


def test_messages_stay_one_short_line() -> None:
    with pytest.raises(InvalidRequest) as raised:
        names.check_parent("projects/\n" + "x" * 1000 + "/")
    assert len(str(raised.value)) < 200
    assert "\n" not in str(raised.value)
