"""The tokenizer files of Marian checkpoints (OPUS-MT): two SentencePiece models and one or two vocabularies."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from export.importers.huggingface.tokenizer_config import class_of, read_tokenizer_config
from export.importers.huggingface.tokenizer_files import check_model, read_vocabulary
from service.bundle.manifest_parts import TokenizerSpec
from service.text.vocabulary import marian_language

SOURCE_MODEL_NAME = "source.spm"
TARGET_MODEL_NAME = "target.spm"
VOCABULARY_NAME = "vocab.json"
TARGET_VOCABULARY_NAME = "target_vocab.json"

_DEFAULTS = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


@dataclass(frozen=True, slots=True)
class MarianFiles:
    """The content of the files.

    Sizes are the highest id plus one: the minimum for embeddings and projection. `target_prefixes` maps the languages
    of models with several targets to the id of their `>>xx<<`, which must come before a source; it is empty for other
    models. Special ids are the same in both vocabularies.
    """

    source_size: int
    target_size: int
    pad_id: int
    eos_id: int
    unk_id: int
    target_prefixes: dict[str, int]
    special_tokens: dict[str, int]
    has_separate_vocabularies: bool
    cleans_up_spaces: bool

    def spec(self, decoder_start_id: int) -> TokenizerSpec:
        """Return the manifest's entry; its `files` are to be copied.

        With a shared vocabulary, transformers 5 decodes with source.spm, so target.spm is not needed.
        """
        return TokenizerSpec(
            kind="marian",
            file=SOURCE_MODEL_NAME,
            pad_id=self.pad_id,
            eos_id=self.eos_id,
            unk_id=self.unk_id,
            decoder_start_id=decoder_start_id,
            target_file=TARGET_MODEL_NAME if self.has_separate_vocabularies else "",
            vocabulary_file=VOCABULARY_NAME,
            target_vocabulary_file=TARGET_VOCABULARY_NAME if self.has_separate_vocabularies else "",
            special_tokens=self.special_tokens,
            cleans_up_spaces=self.cleans_up_spaces,
        )


def read_marian(directory: Path) -> MarianFiles:
    """Read and check a checkpoint's tokenizer files."""
    problems: list[str] = []
    check_model(directory / SOURCE_MODEL_NAME, problems)
    check_model(directory / TARGET_MODEL_NAME, problems)
    vocabulary = read_vocabulary(directory / VOCABULARY_NAME, problems)
    config = read_tokenizer_config(directory, vocabulary, _DEFAULTS, problems)
    class_of(directory, config.document, ("MarianTokenizer",), problems)
    is_separate = config.document.get("separate_vocabs") is True
    target = vocabulary
    if is_separate:
        target = read_vocabulary(directory / TARGET_VOCABULARY_NAME, problems)
        # transformers knows only the source's ids of special tokens, and so mishandles different ones on the target's
        # side.
        problems += [
            f"{TARGET_VOCABULARY_NAME}: the id of {text!r} is {target.get(text)}, in {VOCABULARY_NAME} it is {index}"
            for text, index in config.special_tokens.items()
            if target and target.get(text) != index
        ]
    if problems:
        raise ValueError("; ".join(problems))
    pieces = vocabulary | config.special_tokens  # among which a language may be that somebody added
    return MarianFiles(
        source_size=_size(vocabulary, config.special_tokens),
        target_size=_size(target, config.special_tokens),
        pad_id=config.named_ids["pad_token"],
        eos_id=config.named_ids["eos_token"],
        unk_id=config.named_ids["unk_token"],
        target_prefixes={code: index for piece, index in pieces.items() if (code := marian_language(piece))},
        special_tokens=config.special_tokens,
        has_separate_vocabularies=is_separate,
        cleans_up_spaces=config.cleans_up_spaces,
    )


def _size(vocabulary: Mapping[str, int], special_tokens: Mapping[str, int]) -> int:
    return max(*vocabulary.values(), *special_tokens.values()) + 1
