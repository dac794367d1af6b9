"""Imports IndicTrans2 checkpoints in transformers' format: between English and the languages of India, or among these.

Their model is M2M100's, with options that fairseq has and a vocabulary of each side. What `modeling_indictrans.py` and
`tokenization_indictrans.py` do beside such a folder is written here anew: code from a checkpoint is never run.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from export.importers.huggingface.bart_layout import M2M100, Family
from export.importers.huggingface.folder import CONFIG_NAME, checkpoint, read_model
from export.importers.huggingface.tokenizer_config import read_optional
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.indictrans2.tokenizer_files import IndicFiles, read_indictrans2
from export.importers.language_choice import asked_languages, chosen_directions
from export.importers.options import ImportOptions
from export.importers.parts import read_part
from service.bundle.manifest_parts import Language, LanguagePair
from service.text.indic.languages import ENGLISH

_INDICTRANS2 = dataclasses.replace(M2M100, name="IndicTrans2", may_separate=True)
_SAME = ("embed_dim", "normalize_before")


def import_indictrans2(directory: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a folder; `options` may choose some of its pairs."""
    problems = options.unsuited()
    document = read_optional(directory / CONFIG_NAME, [])  # where it can't be read, `read_model` says so
    problems += _differences(document)
    files = read_part("tokenizer", lambda: read_indictrans2(directory), problems)
    sizes = None if files is None else (files.source_size, files.target_size)
    family = _family(document)
    found = read_model(directory, family, files, sizes, problems, document=_in_barts_terms(document))
    pairs, among = ((), ()) if files is None else _directions(files, options, problems)
    if problems or files is None or found is None:
        raise CheckpointError(directory, problems)
    tokenizer_files = {name: directory / name for name in files.spec(0).files}
    imported = checkpoint(directory, family, found, files, tokenizer_files, pairs, among)
    return dataclasses.replace(imported, open_reference=None)  # transformers has no such model of its own


def _differences(document: Mapping[str, Any]) -> list[str]:
    """Return settings of the two sides that must be the same, and are not."""
    pairs = {name: [document.get(f"{side}_{name}") for side in ("encoder", "decoder")] for name in _SAME}
    return [
        f"encoder_{name} is {encoder!r} and decoder_{name} {decoder!r}; supported is the same in both"
        for name, (encoder, decoder) in pairs.items()
        if encoder != decoder
    ]


def _family(document: Mapping[str, Any]) -> Family:
    is_pre = document.get("encoder_normalize_before") is True
    return dataclasses.replace(
        _INDICTRANS2,
        normalize_before=is_pre,
        final_norm=is_pre,
        embedding_norm=document.get("layernorm_embedding") is True,
    )


def _in_barts_terms(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the settings under the names that BART has for them; `None` if there are none."""
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
    return {**document, **renamed} if document else None


def _directions(
    files: IndicFiles, options: ImportOptions, problems: list[str]
) -> tuple[tuple[LanguagePair, ...], tuple[Language, ...]]:
    """Return the pairs, or the languages among which a model translates; the vocabularies tell where English is."""
    every = {code: Language(code, source_prefix_ids=(i,), into_prefix_ids=(i,)) for code, i in files.languages.items()}
    if files.reads_english and files.writes_english:
        problems.append("both vocabularies are English")
    if ENGLISH not in every and (files.reads_english or files.writes_english):
        problems.append(f"the vocabulary of a model for English has no {ENGLISH}")
    if not (files.reads_english or files.writes_english):
        every.pop(ENGLISH, None)
    source, target = asked_languages(options, every, problems)
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
