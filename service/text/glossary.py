"""Glossaries: what terms must become."""

from dataclasses import dataclass

from service.translation import Term


@dataclass(frozen=True, slots=True)
class Glossary:
    """The terms of one language pair."""

    name: str
    source_language_code: str
    target_language_code: str
    terms: tuple[Term, ...]
