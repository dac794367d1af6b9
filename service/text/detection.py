"""Language detection: by script where that is decisive, otherwise by py3langid's model of 138 languages."""

import functools
import math
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from service.domain.translation import DetectedLanguage
from service.text.languages import ServedLanguages, canonical, language_of, script_of

UNDETERMINED = "und"  # BCP 47's code for an unknown language

_MAX_CHARACTERS = 4_000  # only so much of a text is examined
_LEAST_CONFIDENCE = 0.001
_NO_LANGUAGE = "zxx"  # the model's label for text that is not in any language

# py3langid divides log-probabilities by the square root of the text's length in bytes, and is then less confident than
# it is right. At this share of it the mean confidence in beginnings of sentences is about the accuracy.
_TEMPERATURE = 0.7

# Scripts by ISO 15924 code -> the first words of their letters' Unicode names.
_ALPHABETS = (
    "Adlm ADLAM Arab ARABIC Armn ARMENIAN Beng BENGALI Cyrl CYRILLIC Deva DEVANAGARI Ethi ETHIOPIC Geor GEORGIAN "
    "Grek GREEK Gujr GUJARATI Guru GURMUKHI Hebr HEBREW Khmr KHMER Knda KANNADA Laoo LAO Latn LATIN Mlym "
    "MALAYALAM Mong MONGOLIAN Mtei MEETEI Mymr MYANMAR Nkoo NKO Olck OL Orya ORIYA Sinh SINHALA Syrc SYRIAC Taml "
    "TAMIL Telu TELUGU Tfng TIFINAGH Thaa THAANA Thai THAI Tibt TIBETAN"
)
_LETTERS = {code: {name} for code, name in re.findall(r"(\w{4}) (\w+)", _ALPHABETS)} | {
    "Hans": {"CJK"},
    "Hant": {"CJK"},
    "Jpan": {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"},
    "Kore": {"CJK", "HANGUL"},
}
_SCRIPTS = {"gcf": "Latn", "grc": "Grek", "hbo": "Hebr", "uzs": "Arab"}  # the model's languages that CLDR lacks
# The character sets of mainland China and Taiwan: characters in only one of them are simplified or traditional.
_CHARACTER_SETS = {"Hans": "gb2312", "Hant": "big5"}
_LOADING = threading.Lock()


class LanguageDetector:
    """Language detector. Thread-safe.

    The model, which is slow to load, is loaded for the first text whose script is not decisive, once per process.
    """

    def __init__(self, candidates: Iterable[str] | None = None) -> None:
        """Set the codes to choose from; by default all languages that the model knows."""
        self._scripts = None if candidates is None else {code: script_of(code) for code in candidates}

    def detect(self, text: str) -> tuple[DetectedLanguage, ...]:
        """Return the languages that `text` may be in, best first.

        The confidences of all candidates sum to 1; those below 0.001 are omitted. `text` must be plain: remove markup
        first. A text without letters, or in a script that no candidate uses, is `UNDETERMINED` with confidence 0.
        """
        text = text[:_MAX_CHARACTERS]
        letters = Counter(character for character in text if character.isalpha())
        fitting = _written_in(letters, _known() if self._scripts is None else self._scripts)
        shares = {fitting[0]: 1.0} if len(fitting) == 1 else _shares(text, fitting)
        detected = [DetectedLanguage(code, share) for code, share in shares.items() if share >= _LEAST_CONFIDENCE]
        # Ties go to English: most texts too short to tell, such as "OK", are in English.
        detected.sort(key=lambda each: (-each.confidence, language_of(each.language_code) != "en", each.language_code))
        return tuple(detected) or (DetectedLanguage(UNDETERMINED, 0.0),)


def _written_in(letters: Counter[str], scripts: Mapping[str, str]) -> list[str]:
    """Return the codes in `scripts` whose script has most of the letters."""
    counts: Counter[str] = Counter()
    for letter, count in letters.items():
        counts[unicodedata.name(letter, "").split(" ")[0]] += count
    known = {
        script: sum(counts[name] for name in _LETTERS[script]) - _num_of_other_set(letters, script)
        for script in scripts.values()
        if script in _LETTERS
    }
    best = max(known.values(), default=0)
    # An unknown script may be the one that fits best, or account for all letters that fit no other candidate.
    unknown = max(best, letters.total() - best)
    num_written = {code: known.get(script, unknown) for code, script in scripts.items()}
    most = max(num_written.values(), default=0)
    return [code for code, number in num_written.items() if number == most > 0]


def _num_of_other_set(letters: Counter[str], script: str) -> int:
    """Return how many of the letters are Chinese characters that the other script has and this one lacks."""
    if script not in _CHARACTER_SETS:
        return 0
    (other,) = _CHARACTER_SETS.keys() - {script}
    return sum(
        count
        for letter, count in letters.items()
        if not _has(_CHARACTER_SETS[script], letter) and _has(_CHARACTER_SETS[other], letter)
    )


def _has(character_set: str, letter: str) -> bool:
    try:
        letter.encode(character_set)
    except UnicodeEncodeError:
        return False
    return True


def _shares(text: str, candidates: list[str]) -> dict[str, float]:
    """Return the probabilities of the candidates that the model knows; codes of the same model language share its
    evenly.
    """
    label_of = {code: label for code in candidates if (label := _label(code)) is not None}
    if not label_of:
        return {}
    scores = dict(_identifier().rank(text))
    temperature = _TEMPERATURE * math.sqrt(len(text.encode("utf-8", "surrogatepass")))
    best = max(scores[label] for label in label_of.values())
    weights = {label: math.exp((scores[label] - best) / temperature) for label in set(label_of.values())}
    total = math.fsum(weights.values())
    num_codes = Counter(label_of.values())
    return {code: weights[label] / total / num_codes[label] for code, label in label_of.items()}


@functools.lru_cache(maxsize=4096)
def _label(code: str) -> str | None:
    """Return the model's label for a language; `None` if it does not know the language."""
    found = _labels().find(language_of(code))
    return found[0].code if found else None


@functools.cache
def _labels() -> ServedLanguages:
    return ServedLanguages(label for label in _identifier().labels if label != _NO_LANGUAGE)


@functools.cache
def _known() -> dict[str, str]:
    """Return the model's languages and their scripts; it does not distinguish traditional from simplified Chinese."""
    codes = [canonical(label) for label in _identifier().labels if label != _NO_LANGUAGE]
    return {code: script_of(code) or _SCRIPTS.get(code, "") for code in (*codes, "zh-Hant")}


def _identifier() -> Any:
    with _LOADING:
        return _load()


@functools.cache
def _load() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # slow to import; not needed without detection

    return LanguageIdentifier.from_model_file(MODEL_FILE)
