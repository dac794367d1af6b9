"""Language detection: by script where that is decisive, otherwise by py3langid's model of 138 languages."""

import functools
import io
import lzma
import math
import re
import threading
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from service.domain.translation import DetectedLanguage
from service.text.languages import ServedLanguages, canonical, language_of, num_readers, script_of

UNDETERMINED = "und"  # BCP 47's code for an unknown language

_MAX_CHARACTERS = 4_000  # only so much of a text is examined
_LATIN = "Latn"
_LATIN_SHARE = 0.25  # of a Latin letter's weight where a source has another script: names and terms are in Latin ones
_NO_LANGUAGE = "zxx"  # the model's label for text that is not in any language

# py3langid divides log-probabilities by the square root of the text's length in bytes, and is then less confident than
# it is right. At this share of it the mean confidence in beginnings of sentences is about the accuracy.
_TEMPERATURE = 0.8

# Numbers of readers are taken to be within these. A language that more people read is not more often what a text is in
# that looks like it: Marathi, say, which 83 million read, beside Hindi.
_FEWEST_READERS, _MOST_READERS = 10_000, 100_000_000

# Scripts by ISO 15924 code -> the first words of their letters' Unicode names.
_ALPHABETS = (
    "Adlm ADLAM Arab ARABIC Armn ARMENIAN Beng BENGALI Cyrl CYRILLIC Deva DEVANAGARI Ethi ETHIOPIC Geor GEORGIAN "
    "Grek GREEK Gujr GUJARATI Guru GURMUKHI Hebr HEBREW Khmr KHMER Knda KANNADA Laoo LAO Latn LATIN Mlym "
    "MALAYALAM Mong MONGOLIAN Mtei MEETEI Mymr MYANMAR Nkoo NKO Olck OL Orya ORIYA Sinh SINHALA Syrc SYRIAC Taml "
    "TAMIL Telu TELUGU Tfng TIFINAGH Thaa THAANA Thai THAI Tibt TIBETAN"
)
_LETTERS = {code: {name} for code, name in re.findall(r"(\w{4}) (\w+)", _ALPHABETS)} | {
    "Hani": {"CJK"},
    "Hans": {"CJK"},
    "Hant": {"CJK"},
    "Jpan": {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"},
    "Kore": {"CJK", "HANGUL"},
}
_SCRIPTS = {"gcf": "Latn", "grc": "Grek", "hbo": "Hebr", "uzs": "Arab"}  # where CLDR has none, or one of antiquity
# The character sets of mainland China and Taiwan: characters in only one of them are simplified or traditional.
_CHARACTER_SETS = {"Hans": "gb2312", "Hant": "big5"}
_CHINESE = {"Hans": "Hani", "Hant": "Hani"}
_AUTOMATON = ("nextmove", "nextmove_row")  # arrays of the model's file
_LOADING = threading.Lock()


class LanguageDetector:
    """Detects languages.

    Thread-safe. The model, which is slow to load, is loaded once, when it is first needed. All its languages are
    candidates, by the number of their readers; one that is served counts as if very many read it.
    """

    def __init__(self, served: Iterable[str] = ()) -> None:
        """Set the codes that are served, which are answered as they are given here."""
        own = {code: script_of(code) for code in served}
        # Where one Chinese script is served, texts in the other are in that language, too.
        merged = _CHINESE if len(_CHINESE.keys() & own.values()) == 1 else {}

        def kind(code: str, script: str) -> tuple[str | None, str]:
            return _label(code), merged.get(script, script)

        kinds = {kind(code, script) for code, script in own.items()}
        others = {code: script for code, script in _known().items() if kind(code, script) not in kinds}
        self._labels = _labels_by_script({code: merged.get(script, script) for code, script in (others | own).items()})
        self._priors = {code: math.sqrt(_counted_readers(code)) for code in others}
        self._priors |= dict.fromkeys(own, math.sqrt(_MOST_READERS))

    def detect(self, text: str) -> tuple[DetectedLanguage, ...]:
        """Return the languages that `text`, which must be plain, may be in, best first.

        The confidences of all candidates sum to 1; those below 0.001 are omitted. If none exceeds all others together,
        as in a text without letters, the answer is `UNDETERMINED` alone, with confidence 0.
        """
        text = text[:_MAX_CHARACTERS]
        fitting = _fitting(text, self._labels)
        shares = dict.fromkeys(fitting, 1.0) if len(fitting) == 1 else _shares(text, fitting, self._priors)
        of_labels: Counter[str | None] = Counter()  # of a language, whatever the number of its codes
        for code, share in shares.items():
            of_labels[fitting[code]] += share  # type: ignore[assignment]
        if max(of_labels.values(), default=0.0) <= 0.5:
            return (DetectedLanguage(UNDETERMINED, 0.0),)
        detected = [DetectedLanguage(code, share) for code, share in shares.items() if share >= 0.001]
        return tuple(sorted(detected, key=lambda each: (-each.confidence, each.language_code)))


class SourceDetector:
    """Detector of the languages of texts that are to be translated into one language. Thread-safe.

    The source languages, the target, and all other languages of the model are candidates. A source is as probable a
    priori as the target, and as all other languages together, which share equally. So a text is in another language if
    their mean likelihood exceeds the summed one of sources and target: evidence of 136 to 1 for one of them, as many as
    there are. Otherwise the likeliest of sources and target is chosen; a source, if the text does not tell.
    """

    def __init__(self, sources: Iterable[str], target: str) -> None:
        """Set the codes of the languages that are translated into `target`, which may itself be one of them."""
        self._sources = list(sources)
        served = {code: script_of(code) for code in self._sources}
        labels = {_label(code) for code in served}
        own = _label(target), script_of(target)
        if own not in {(_label(code), script) for code, script in served.items()}:
            # Else texts of the target are translated, too, by a model that corrects them, say.
            served[canonical("-".join(filter(None, (language_of(target), own[1]))))] = own[1]
        others = {
            code: script
            for code, script in _known().items()
            if _label(code) not in labels and (_label(code), script) != own
        }
        self._others = frozenset(others)
        self._num_others = len({_label(code) for code in others})
        self._latin_share = _LATIN_SHARE if set(served.values()) - {_LATIN} else 1.0
        scripts = others | served
        if own[1] not in _CHARACTER_SETS and not _CHARACTER_SETS.keys() <= set(served.values()):
            # Neither of the Chinese scripts has to be told from the other one.
            scripts = {code: _CHINESE.get(script, script) for code, script in scripts.items()}
        self._labels = _labels_by_script(scripts)

    def detect(self, text: str) -> str:
        """Return the code of a source, of the target without its region, or of another language of a plain `text`.

        It is `UNDETERMINED` without letters, or in a script of no known language.
        """
        text = text[:_MAX_CHARACTERS]
        fitting = _fitting(text, self._labels, self._latin_share)
        if len(fitting) == 1:
            return next(iter(fitting))
        shares = _shares(text, fitting)
        if not shares:
            return UNDETERMINED
        served = {code: share for code, share in shares.items() if code not in self._others}
        of_served = math.fsum(served.values())
        if 1.0 - of_served > self._num_others * of_served:
            # A source that the model does not know may be what looks like another language.
            unknown = [code for code in self._sources if code in fitting and fitting[code] is None]
            return unknown[0] if len(unknown) == 1 else max(shares, key=shares.__getitem__)
        return max(served, key=lambda code: (served[code], code in self._sources, language_of(code) == "en"))


@functools.lru_cache(maxsize=64)
def source_detector(sources: Sequence[str], target: str) -> SourceDetector:
    return SourceDetector(sources, target)


@functools.lru_cache(maxsize=8)
def language_detector(served: Sequence[str]) -> LanguageDetector:
    return LanguageDetector(served)


def _labels_by_script(scripts: Mapping[str, str]) -> dict[str, dict[str, str | None]]:
    labels: dict[str, dict[str, str | None]] = {script: {} for script in scripts.values()}
    for code, script in scripts.items():
        labels[script][code] = _label(code)
    return labels


def _fitting(
    text: str, labels: Mapping[str, Mapping[str, str | None]], latin_share: float = 1.0
) -> dict[str, str | None]:
    """Return the codes, and their labels, of the scripts that most of the letters are in."""
    fitting: dict[str, str | None] = {}
    for script in _scripts_of(text, labels.keys(), latin_share):
        fitting |= labels[script]
    return fitting


def _scripts_of(text: str, scripts: Iterable[str], latin_share: float = 1.0) -> set[str]:
    """Return those of `scripts` that most of the letters are in; each Latin one counts `latin_share`."""
    letters = Counter(character for character in text if character.isalpha())
    counts: Counter[str] = Counter()
    for letter, count in letters.items():
        counts[unicodedata.name(letter, "").split(" ")[0]] += count
    num_written = {
        script: float(_num_written(letters, counts, script))
        for script in scripts
        if script in _LETTERS and not _LETTERS[script].isdisjoint(counts)
    }
    if _LATIN in num_written:
        num_written[_LATIN] *= latin_share
    best = max(num_written.values(), default=0)
    # An unknown script may be the one that fits best, or account for all letters that fit no other candidate.
    unknown = max(best, letters.total() - best)
    num_written |= {script: unknown for script in scripts if script not in _LETTERS}
    most = max(num_written.values(), default=0)
    return {script for script, number in num_written.items() if number == most > 0}


def _num_written(letters: Counter[str], counts: Counter[str], script: str) -> int:
    return sum([counts[name] for name in _LETTERS[script]]) - _num_of_other_set(letters, script)


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


def _shares(text: str, labels: Mapping[str, str | None], priors: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return the probabilities of the codes that have a label of the model; those of one label share it evenly.

    Before the text is seen, labels are equally probable, or in the proportion of their codes' `priors`.
    """
    label_of = {code: label for code, label in labels.items() if label is not None}
    if not label_of:
        return {}
    scores = dict(_identifier().rank(text))
    temperature = _TEMPERATURE * math.sqrt(len(text.encode("utf-8", "surrogatepass")))
    best = max(scores[label] for label in label_of.values())
    prior_of = {label: priors[code] if priors else 1.0 for code, label in label_of.items()}
    weights = {label: prior * math.exp((scores[label] - best) / temperature) for label, prior in prior_of.items()}
    total = math.fsum(weights.values())
    num_codes = Counter(label_of.values())
    return {code: weights[label] / total / num_codes[label] for code, label in label_of.items()}


def _counted_readers(code: str) -> int:
    return min(max(num_readers(code), _FEWEST_READERS), _MOST_READERS)


@functools.lru_cache(maxsize=4096)
def _label(code: str) -> str | None:
    found = _labels().find(language_of(code))
    return found[0].code if found else None


@functools.cache
def _labels() -> ServedLanguages:
    return ServedLanguages(label for label in _identifier().labels if label != _NO_LANGUAGE)


@functools.cache
def _known() -> dict[str, str]:
    """Return the model's languages and their scripts; it does not distinguish traditional from simplified Chinese."""
    codes = [canonical(label) for label in _identifier().labels if label != _NO_LANGUAGE]
    return {code: _SCRIPTS.get(code) or script_of(code) for code in (*codes, "zh-Hant")}


def _identifier() -> Any:
    with _LOADING:
        return _load()


@functools.cache
def _load() -> Any:
    """Load the model as py3langid does, but without a temporary file: containers may have nowhere to write one."""
    from py3langid.langid import MODEL_DIR, MODEL_FILE, LanguageIdentifier  # slow to import; not needed otherwise

    content = io.BytesIO(lzma.decompress((MODEL_DIR / MODEL_FILE).read_bytes()))
    with np.load(content, allow_pickle=False) as data:
        # Each access unpacks an array anew.
        moves, rows = (array("H" if part.itemsize == 2 else "I", part.tobytes()) for part in map(data.get, _AUTOMATON))
        likelihoods, priors, labels, features = (data[name] for name in ("ptc", "pc", "classes", "out_feat"))
    return LanguageIdentifier(likelihoods, priors, labels.tolist(), moves, features.tolist(), tk_row=rows)
