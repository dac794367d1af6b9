"""Words after whose full stop a sentence may go on, and words that begin sentences."""

import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.text.languages import language_of

_FILE = Path(__file__).with_name("abbreviations.toml")
_ALIKE = {"af": "nl", "be": "ru", "bs": "hr", "gl": "pt", "lb": "de", "mk": "bg", "mr": "hi", "ms": "id", "ne": "hi"}
_ALIKE |= {"nb": "no", "nn": "no", "sr": "hr", "yi": "he"}
_DOTTED = re.compile(r"(?:[^\W\d_]\.-?)+[^\W\d_]")  # a.m  U.S  J.-P
_VOWELLESS = re.compile("[B-DF-HJ-NP-TV-Zb-df-hj-np-tv-xz][b-df-hj-np-tv-xz]{2,4}")
_ROMAN = re.compile("[IVXLC]{2,}|[VX]")
_QUOTES = "([{\"'“”„‚‘«»‹›¿¡–—-"
_KINDS = ("before", "number", "titles", "digits", "starts", "articles")


def is_lower(word: str) -> bool:
    """Return whether a word begins with a small letter, in a script that has capital ones."""
    # Not Georgian, whose capitals begin no sentence, and not iPhone.
    return word[:1].islower() and not "\u10d0" <= word[0] <= "\u10ff" and not word[1:2].isupper()


@dataclass(frozen=True, slots=True)
class Abbreviations:
    """The abbreviations of a language, in lists that `abbreviations.toml` explains; `has_ordinals`: an ordinal number
    has a full stop; `has_no_vowels`: words may lack a vowel letter."""

    language: str
    has_ordinals: bool
    has_no_vowels: bool
    before: frozenset[str]
    number: frozenset[str]
    titles: frozenset[str]
    digits: frozenset[str]
    starts: frozenset[str]
    articles: frozenset[str]
    known: frozenset[str]
    """The abbreviations of all lists, and the last words of those of several."""

    def is_word(self, text: str, mark: str) -> bool:
        """Return whether a text surely ends with a word, so that `mark`, a single one, ends a sentence."""
        word = text.rpartition(" ")[2]
        if mark != ".":
            return word + mark not in self.known
        is_short = len(word) < 2 or (len(word) < 6 and _VOWELLESS.fullmatch(word) is not None)
        return not is_short and word.isalpha() and word.islower() and word not in self.known and word[-3:] != "str"

    def starts_sentence(self, word: str) -> bool:
        word = word.lower().replace("’", "'")
        head, apostrophe, _ = word.partition("'")
        return word in self.starts or (bool(apostrophe) and (head + apostrophe in self.starts or head in self.starts))

    def continues(self, text: str, mark: str, following: str) -> bool | None:
        """Return whether a sentence goes on after `text`, a single mark, white space and the word `following`; `None`
        without an abbreviation or an ordinal number."""
        if text[-1:].isspace() or not text:
            return None
        parts = text.split()
        word = parts[-1].lstrip(_QUOTES)
        if mark != ".":
            is_name = word + mark in self.titles
            return is_lower(following) or not self.starts_sentence(following) if is_name else None
        if word.isdigit() or _ROMAN.fullmatch(word):
            return self._is_ordinal(word, parts[-2] if len(parts) > 1 else "", following)
        names = _names(word, parts)
        is_acronym = word.isupper() and len(word) > 1 and word.isalpha()
        if not (is_acronym and following.isalpha() and not following[1:].isupper()):
            names |= {name.lower() for name in names}
        if not self.before.isdisjoint(names):
            return True
        is_numbered = not self.number.isdisjoint(names)
        is_letter = following.isupper() and len(following.rstrip(".")) == 1 and not self.starts_sentence(following)
        is_number = is_letter or following[:1].isdigit() or _ROMAN.fullmatch(following) is not None
        if is_number and (is_numbered or not self.digits.isdisjoint(names)):
            return True
        if is_numbered or self._is_title(word, names, parts):
            return following[:1].isdigit() or is_lower(following) or not self.starts_sentence(following)
        return None

    def _is_title(self, word: str, names: set[str], parts: list[str]) -> bool:
        if not self.titles.isdisjoint(names) or _DOTTED.fullmatch(word):
            return True
        before = parts[-2] if len(parts) > 1 else ""
        if len(word) == 1:
            is_pronoun = word == "I" and self.language == "en" and is_lower(before)
            is_item = before.lower().rstrip(".") in self.number
            return word.lower() != word.upper() and not (is_pronoun or is_item)
        is_unit = before[-1:].isdigit()
        is_interjection = len(set(word.lower())) < 3  # Hmm.  Shh.
        return not (self.has_no_vowels or is_unit or is_interjection) and _VOWELLESS.fullmatch(word) is not None

    def _is_ordinal(self, number: str, before: str, following: str) -> bool | None:
        if not self.has_ordinals:
            return None
        if is_lower(following):
            return True
        before = before.lower()
        if not following or self.starts_sentence(following) or before.rstrip(".") in self.number:
            return False
        return len(number) <= 2 or not number.isdigit() or before in self.articles


@functools.lru_cache(maxsize=256)
def abbreviations(language_code: str) -> Abbreviations:
    """Return those of a language; those of English for a language that is not known."""
    language = language_of(language_code).lower()
    lists = _lists()
    own = lists.get(_ALIKE.get(language, language), lists["en"])
    words = {kind: frozenset(f"{lists['all'].get(kind, '')} {own.get(kind, '')}".split()) for kind in _KINDS}
    listed = words["before"] | words["number"] | words["titles"] | words["digits"]
    known = listed | {re.split("[._-]", each)[-1] for each in listed}
    return Abbreviations(
        language=language,
        has_ordinals=own.get("has_ordinals", False),
        has_no_vowels=own.get("has_no_vowels", False),
        known=known,
        **words,
    )


@functools.cache
def open_words() -> frozenset[str]:
    """Return words of any language after which a sentence goes on, such as prepositions."""
    return frozenset(_lists()["open"]["words"].split())


@functools.cache
def _lists() -> dict[str, dict[str, Any]]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def _names(word: str, parts: list[str]) -> set[str]:
    """Return how an abbreviation may be listed: "z.B" for "z. B", "par_ex" for "par ex", and the end of a compound."""
    names = {word}
    if not word.isalpha():
        names.add(re.split("[-'’/]", word)[-1])
    elif word.endswith("str"):  # streets: Hauptstr.
        names.add("str")
    joined = word
    for part in (each.lstrip(_QUOTES) for each in reversed(parts[-3:-1])):
        if not part.endswith("."):
            names.add(f"{part}_{joined}")
            break
        joined = part + joined
        names.add(joined)
    return names
