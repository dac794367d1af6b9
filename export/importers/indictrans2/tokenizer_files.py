"""The tokenizer files of IndicTrans2: a SentencePiece model and a vocabulary of each side."""

import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from export.importers.huggingface.tokenizer_config import class_of, read_tokenizer_config
from export.importers.huggingface.tokenizer_files import check_model, read_vocabulary
from service.bundle.manifest_parts import TokenizerSpec
from service.text.indic.languages import LANGUAGE_CODE, is_known
from service.text.indic.writing import SYMBOLS

MODEL_NAME, TARGET_MODEL_NAME = "model.SRC", "model.TGT"
VOCABULARY_NAME, TARGET_VOCABULARY_NAME = "dict.SRC.json", "dict.TGT.json"

_CLASS = "IndicTransTokenizer"
_DEFAULTS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


@dataclass(frozen=True, slots=True)
class IndicFiles:
    """The content of the files.

    Sizes are the highest id plus one. `languages` maps the codes of languages to the ids of their tokens in the
    source's vocabulary, two of which come before a source: its own and the target's. `reads_english` and
    `writes_english` say which side is English: most letters of its pieces are Latin.
    """

    source_size: int
    target_size: int
    pad_id: int
    eos_id: int
    unk_id: int
    languages: dict[str, int]
    special_tokens: dict[str, int]
    reads_english: bool
    writes_english: bool

    def spec(self, decoder_start_id: int) -> TokenizerSpec:
        """Return the manifest's entry; its `files` are to be copied.

        `clean_up_tokenization_spaces` is not followed: it would take the spaces around apostrophes before these are put
        at their words, and the models were trained and measured without it.
        """
        return TokenizerSpec(
            kind="indictrans2",
            file=MODEL_NAME,
            pad_id=self.pad_id,
            eos_id=self.eos_id,
            unk_id=self.unk_id,
            decoder_start_id=decoder_start_id,
            reserved_symbols=SYMBOLS,
            target_file=TARGET_MODEL_NAME,
            vocabulary_file=VOCABULARY_NAME,
            target_vocabulary_file=TARGET_VOCABULARY_NAME,
            special_tokens=self.special_tokens,
        )


def read_indictrans2(directory: Path) -> IndicFiles:
    """Read and check a checkpoint's tokenizer files."""
    problems: list[str] = []
    check_model(directory / MODEL_NAME, problems)
    check_model(directory / TARGET_MODEL_NAME, problems)
    source = read_vocabulary(directory / VOCABULARY_NAME, problems)
    target = read_vocabulary(directory / TARGET_VOCABULARY_NAME, problems)
    config = read_tokenizer_config(directory, source, _DEFAULTS, problems)
    document = {name: value for name, value in config.document.items() if name != "auto_map"}  # its code is not run
    class_of(directory, document, (_CLASS,), problems)
    problems += [
        f"{TARGET_VOCABULARY_NAME}: the id of {text!r} is {target.get(text)}, in {VOCABULARY_NAME} it is {index}"
        for text, index in config.special_tokens.items()
        if target and target.get(text) != index
    ]
    languages = {piece: index for piece, index in source.items() if LANGUAGE_CODE.fullmatch(piece)}
    if source and len(languages) < 2:
        problems.append(f"{VOCABULARY_NAME}: it has {len(languages)} languages, such as hin_Deva; expected two or more")
    problems += [
        f"{VOCABULARY_NAME}: {code} has a script that is not known" for code in languages if not is_known(code)
    ]
    if problems:
        raise ValueError("; ".join(problems))
    return IndicFiles(
        source_size=max(source.values()) + 1,
        target_size=max(target.values()) + 1,
        pad_id=config.named_ids["pad_token"],
        eos_id=config.named_ids["eos_token"],
        unk_id=config.named_ids["unk_token"],
        languages=languages,
        special_tokens=config.special_tokens,
        reads_english=_is_latin(source.keys() - languages.keys()),
        writes_english=_is_latin(target.keys() - languages.keys()),
    )


def _is_latin(pieces: Iterable[str]) -> bool:
    """Return whether most letters are Latin; the pieces of all other languages are in Devanagari and other scripts."""
    letters = Counter(character for piece in pieces for character in piece if character.isalpha())
    latin = sum(count for letter, count in letters.items() if unicodedata.name(letter, "").startswith("LATIN"))
    return 2 * latin > letters.total()
