"""Makes a `tokenizer.json` of a word list, which says nothing about how texts are split: options do."""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from export.importers.word_list import read_words

# Tokens by splits: what `findall` finds. Python's white space is Unicode's and four separators.
_SPLITS = {
    "whitespace": r"[^\s\x1c-\x1f]+",
    "basic_english": r"['.,()!?]|[^\s\x1c-\x1f'.,()!?]+",
    "characters": r"[\s\S]",
    "bytes": r"[\s\S]",
}
# What torchtext's basic_english (data/utils.py) removes or replaces by a space.
_BASIC_ENGLISH = ((r'"', ""), ("<br />", " "), ("[;:]", " "))
# Python writes a sigma that ends a word in its own form; the library lowers one character at a time.
_NO_CASE = r"[\p{Mn}\p{Me}\p{Cf}\p{Lm}\p{Sk}'’.:·]"
_CASED = r"[\p{Lu}\p{Ll}\p{Lt}]"
_BEFORE = "|".join(_CASED + _NO_CASE * number for number in range(3))  # the library's lookbehind is of fixed lengths
_FINAL_SIGMA = (Regex(rf"(?<={_BEFORE})Σ(?!{_NO_CASE}*{_CASED})"), "ς")
# By our names, the usual special tokens.
_USUAL = {
    "pad_id": re.compile(r"(?i:<(pad|blank)>|\[pad\])|PAD"),
    "unk_id": re.compile(r"(?i:<(unk|oov)>|\[(unk|oov)\])|UNK"),
    "decoder_start_id": re.compile(r"(?i:<(s|sos|bos|start)>|\[(sos|bos|start)\])|startseq|SOS|BOS"),
    "eos_id": re.compile(r"(?i:<(/s|eos|end)>|\[(eos|end)\])|endseq|EOS"),
}
_OPTIONS = {"pad_id": "padding", "unk_id": "unknown", "decoder_start_id": "start", "eos_id": "end"}


@dataclass(frozen=True, slots=True)
class WordOptions:
    """Splitting of texts, by the names of `split` or by `regex`, joining, and unusual special tokens.

    `join` stands between tokens of a translation; `None`: a space between words, nothing between characters.
    """

    split: str = ""
    regex: str = ""
    lowercase: bool = False
    join: str | None = None
    unknown: str = ""
    padding: str = ""
    start: str = ""
    end: str = ""


def read_options(document: Any) -> WordOptions:
    """Check the object `tokenizer` of `--config`."""
    if not isinstance(document, dict):
        raise ValueError(f'it is {document!r:.60}, expected an object such as {{"split": "whitespace"}}')
    kinds = {item.name: bool if item.type is bool else str for item in dataclasses.fields(WordOptions)}
    for name, value in document.items():
        if name not in kinds:
            raise ValueError(f"{name!r:.60} is unknown; known: {', '.join(kinds)}")
        if not isinstance(value, kinds[name]):
            raise ValueError(f"{name} is {value!r:.60}, expected {'a text' if kinds[name] is str else 'true or false'}")
    options = WordOptions(**document)
    if options.split and options.split not in _SPLITS:
        raise ValueError(f"split is {options.split!r:.60}; known: {', '.join(_SPLITS)}, or give regex")
    if options.split and options.regex:
        raise ValueError("it has split and regex; give one of them")
    if options.regex:
        if options.join is None:
            raise ValueError('regex needs join: what stands between tokens of a translation, " " or ""')
        try:
            Regex(options.regex)
        except Exception as error:  # the library raises nothing more specific
            raise ValueError(f"regex: {options.regex!r:.60} can't be used ({error})") from error
    if options.join not in (None, "", " "):
        raise ValueError(f'join is {options.join!r:.60}; allowed: " " and ""')
    return options


@dataclass(frozen=True, slots=True)
class WordTokenizer:
    """A word list as JSON of the tokenizers library, its number of ids, and the special ones, by our names."""

    content: str
    size: int
    special_ids: Mapping[str, int]

    def write(self, path: Path) -> None:
        path.write_text(self.content, encoding="utf-8")


def read_word_tokenizer(path: Path, options: WordOptions | None) -> WordTokenizer:
    """Read a word list; without `options`, only one that says itself how texts are split, as Keras' do."""
    return word_tokenizer(*read_words(path), options)


def word_tokenizer(ids: Mapping[str, int], keras: Mapping[str, Any], options: WordOptions | None) -> WordTokenizer:
    """Return the tokenizer of ids by token; `keras` are settings of Keras' if it is from there."""
    options = options or WordOptions()
    if keras:
        options = _as_keras(options, keras)
    pattern = options.regex or _SPLITS.get(options.split, "")
    if not pattern:
        raise ValueError(
            'it does not say how texts are split; give "tokenizer" in --config, such as {"split": "whitespace"}'
        )
    special = special_tokens(ids, options)
    # A space before special tokens: no text has them then.
    texts = {word: f" {word}" if word in special.values() else word for word in ids}
    if options.split == "bytes":
        texts |= _byte_letters(ids)
    unknown = texts[special["unk_id"]] if "unk_id" in special else next(iter(texts.values()))
    tokenizer = Tokenizer(models.WordLevel({texts[word]: index for word, index in ids.items()}, unknown))
    tokenizer.normalizer = normalizers.Sequence(_normalizers(options))
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([to_bytes, split] if options.split == "bytes" else [split])
    if options.split == "bytes":
        tokenizer.decoder = decoders.ByteLevel()
    elif not (options.join if options.join is not None else " " * (options.split != "characters")):
        tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(texts[word], normalized=False) for word in special.values()])
    special_ids = {name: ids[word] for name, word in special.items()}
    return WordTokenizer(tokenizer.to_str(), max(ids.values()) + 1, special_ids)


def _as_keras(options: WordOptions, settings: Mapping[str, Any]) -> WordOptions:
    """Return what a Keras tokenizer says of itself (keras_preprocessing/text.py), and the given special tokens."""
    filters, between, oov = (settings.get(name) or "" for name in ("filters", "split", "oov_token"))
    if not all(isinstance(each, str) for each in (filters, between, oov)) or not len(between) == 1:
        raise ValueError(f"split is {between!r:.60}; expected one character, and text in filters and oov_token")
    is_whole = settings.get("char_level") is True
    return dataclasses.replace(
        options,
        split="characters" if is_whole else "",
        regex="" if is_whole else f"[^{re.escape(filters + between)}]+",
        lowercase=settings.get("lower") is True,
        join="" if is_whole else " ",
        unknown=options.unknown or oov,
    )


def _normalizers(options: WordOptions) -> list[normalizers.Normalizer]:
    is_basic = options.split == "basic_english"
    lower = [normalizers.Replace(*_FINAL_SIGMA), normalizers.Lowercase()] if options.lowercase or is_basic else []
    return [*lower, *(normalizers.Replace(Regex(found), put) for found, put in _BASIC_ENGLISH if is_basic)]


def special_tokens(ids: Mapping[str, int], options: WordOptions) -> dict[str, str]:
    special: dict[str, str] = {}
    for name, option in _OPTIONS.items():
        said = getattr(options, option)
        found = [said] if said else [word for word in ids if _USUAL[name].fullmatch(word)]
        if len(found) > 1 or (said and said not in ids):
            what = f"is not one of its {len(ids)} tokens" if said else "are several"
            raise ValueError(f'{", ".join(map(repr, found))} {what}; give "{option}" in tokenizer of --config')
        if found:
            special[name] = found[0]
    if "unk_id" not in special and options.split != "bytes":
        raise ValueError(
            "it has no usual token for unknown text, such as <unk>; "
            'give one of its tokens as "unknown" in tokenizer of --config'
        )
    return special


def _byte_letters(ids: Mapping[str, int]) -> dict[str, str]:
    """Return by tokens such as <0x41> the characters that the library writes for these bytes: GPT-2's."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    letters = {f"<0x{byte:02X}>": chr(byte if byte in printable else next(others)) for byte in range(256)}
    if lacking := sorted(letters.keys() - ids.keys()):
        raise ValueError(f"it lacks {lacking[0]} and {len(lacking) - 1} more of the bytes <0x00> to <0xFF>")
    return letters
