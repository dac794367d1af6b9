"""The served languages as several APIs list them: with names, and the targets of each."""

from dataclasses import dataclass

from service.models.catalogue import Catalogue
from service.text.languages import display_name


@dataclass(frozen=True, slots=True)
class ListedLanguage:
    """A language that is translated, or translated into; `targets` are sorted, and empty for a mere target."""

    code: str
    name: str
    targets: list[str]


def languages_of(catalogue: Catalogue, display_language_code: str = "en") -> list[ListedLanguage]:
    targets = catalogue.targets()
    for into in [target for each in targets.values() for target in each]:
        targets.setdefault(into, set())
    return [
        ListedLanguage(code, display_name(code, display_language_code), sorted(targets[code]))
        for code in sorted(targets)
    ]
