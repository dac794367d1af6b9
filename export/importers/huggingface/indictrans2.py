"""IndicTrans2: between English and the languages of India, or among these.

Its model is M2M100's, with options that fairseq has and a vocabulary of each side. What `modeling_indictrans.py` and
`tokenization_indictrans.py` do beside such a folder is written here anew: code from a checkpoint is never run.
"""

import dataclasses
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from export.architecture import ModelConfig
from export.architecture.stored import Array
from export.importers.huggingface.bart_layout import M2M100, BartLayout
from export.importers.huggingface.config_fields import TokenIds
from export.importers.huggingface.family import Directions, Family, Folder, import_folder
from export.importers.huggingface.tokenizer_config import class_of, read_tokenizer_config
from export.importers.huggingface.tokenizer_files import (
    TokenizerFiles,
    check_model,
    copied,
    raise_if_any,
    read_vocabulary,
)
from export.importers.imported import ImportedCheckpoint
from export.importers.language_choice import asked_languages, chosen_directions
from export.importers.options import ImportOptions
from service.domain.errors import counted
from service.text.indic.languages import ENGLISH, LANGUAGE_CODE, is_known
from service.text.indic.writing import SYMBOLS

MODEL_NAME, TARGET_MODEL_NAME = "model.SRC", "model.TGT"
VOCABULARY_NAME, TARGET_VOCABULARY_NAME = "dict.SRC.json", "dict.TGT.json"

_SAME = ("embed_dim", "normalize_before")
_CLASS = "IndicTransTokenizer"
_DEFAULTS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def import_indictrans2(directory: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a folder; `options` may choose some of its pairs."""
    imported = import_folder(directory, options, _FAMILY)
    return dataclasses.replace(imported, open_reference=None)  # transformers has no such model of its own


class _Layout:
    """A `Layout`: BART's weights, and settings under other names."""

    name = "IndicTrans2"

    def read_architecture(
        self, document: Mapping[str, Any], ids: TokenIds, weights: Mapping[str, Array], problems: list[str]
    ) -> ModelConfig | None:
        problems += _differences(document)
        return self._barts(document).read_architecture(_in_barts_terms(document), ids, weights, problems)

    def our_weights(
        self, document: Mapping[str, Any], given: Mapping[str, Array], config: ModelConfig, problems: list[str]
    ) -> tuple[ModelConfig, dict[str, Array]]:
        return self._barts(document).our_weights(document, given, config, problems)

    def _barts(self, document: Mapping[str, Any]) -> BartLayout:
        is_pre = document.get("encoder_normalize_before") is True
        return dataclasses.replace(
            M2M100,
            name=self.name,
            may_separate=True,
            normalize_before=is_pre,
            final_norm=is_pre,
            embedding_norm=document.get("layernorm_embedding") is True,
        )


def _differences(document: Mapping[str, Any]) -> list[str]:
    pairs = {name: [document.get(f"{side}_{name}") for side in ("encoder", "decoder")] for name in _SAME}
    return [
        f"encoder_{name} is {encoder!r} and decoder_{name} {decoder!r}; they must be the same"
        for name, (encoder, decoder) in pairs.items()
        if encoder != decoder
    ]


def _in_barts_terms(document: Mapping[str, Any]) -> dict[str, Any]:
    positions = [document.get(f"max_{side}_positions") for side in ("source", "target")]
    known = [value for value in positions if isinstance(value, int)]
    renamed = {
        "d_model": document.get("encoder_embed_dim"),
        "vocab_size": document.get("encoder_vocab_size"),
        "decoder_vocab_size": document.get("decoder_vocab_size"),
        "max_position_embeddings": min(known) if known == positions else None,
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": document.get("share_decoder_input_output_embed", False),
    }
    return {**document, **renamed}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndicFiles(TokenizerFiles):
    """The content of the files, and which side is English: most letters of its pieces are Latin."""

    reads_english: bool
    writes_english: bool


def read_indictrans2(directory: Path) -> IndicFiles:
    problems: list[str] = []
    check_model(directory / MODEL_NAME, problems)
    check_model(directory / TARGET_MODEL_NAME, problems)
    source = read_vocabulary(directory / VOCABULARY_NAME, problems)
    target = read_vocabulary(directory / TARGET_VOCABULARY_NAME, problems)
    config = read_tokenizer_config(directory, source, _DEFAULTS, problems)
    document = {name: value for name, value in config.document.items() if name != "auto_map"}  # its code is not run
    class_of(directory, document, (_CLASS,), problems)
    problems += config.differing_ids(target, TARGET_VOCABULARY_NAME, VOCABULARY_NAME)
    languages = {piece: index for piece, index in source.items() if LANGUAGE_CODE.fullmatch(piece)}
    if source and len(languages) < 2:
        problems.append(
            f"{VOCABULARY_NAME}: it has {counted(len(languages), 'language')}, such as hin_Deva; expected two or more"
        )
    problems += [
        f"{VOCABULARY_NAME}: {code} has a script that is not known" for code in languages if not is_known(code)
    ]
    raise_if_any(problems)
    spec = config.spec(
        "indictrans2",
        MODEL_NAME,
        reserved_symbols=SYMBOLS,
        target_file=TARGET_MODEL_NAME,
        vocabulary_file=VOCABULARY_NAME,
        target_vocabulary_file=TARGET_VOCABULARY_NAME,
    )
    # That would take the spaces around apostrophes before these are put at their words, and the models were trained and
    # measured without it.
    spec = dataclasses.replace(spec, cleans_up_spaces=False)
    return IndicFiles(
        spec=spec,
        written=copied(directory, spec),
        sizes=(max(source.values()) + 1, max(target.values()) + 1),
        languages={code: (index,) for code, index in languages.items()},
        place="both before source",
        reads_english=_is_latin(source.keys() - languages.keys()),
        writes_english=_is_latin(target.keys() - languages.keys()),
    )


def _is_latin(pieces: Iterable[str]) -> bool:
    """Return whether most letters are Latin; the pieces of all other languages are in Devanagari and other scripts."""
    letters = Counter(character for piece in pieces for character in piece if character.isalpha())
    latin = sum(count for letter, count in letters.items() if unicodedata.name(letter, "").startswith("LATIN"))
    return 2 * latin > letters.total()


def _directions(folder: Folder[IndicFiles]) -> Directions:
    """Return the pairs, or the languages among which a model translates; the vocabularies tell where English is."""
    files, problems = folder.files, folder.problems
    every = files.entries()
    if files.reads_english and files.writes_english:
        problems.append("both vocabularies are English")
    if ENGLISH not in every and (files.reads_english or files.writes_english):
        problems.append(f"the vocabulary of a model for English has no {ENGLISH}")
    if not (files.reads_english or files.writes_english):
        every.pop(ENGLISH, None)
    source, target = asked_languages(folder.options, every, problems)
    for flag, asked, is_english in (
        ("--source-language", source, files.reads_english),
        ("--target-language", target, files.writes_english),
    ):
        if asked is not None and (asked == ENGLISH) != is_english and ENGLISH in every:
            side = "English" if is_english else "a language of India"
            problems.append(f"{flag} is {asked!r}; this model has {side} there")
    return chosen_directions(
        every, ENGLISH if files.reads_english else source, ENGLISH if files.writes_english else target
    )


_FAMILY = Family(_Layout(), read_indictrans2, _directions)
