"""Inspects the vocabulary of tokenizer files, and checks that it fits the model."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import tokenizers

from export.importers import stored_file
from export.importers.imported import TokenizerFile
from export.importers.listed_pieces import other_model
from export.importers.mistaken import mistaken_file
from export.importers.sentencepiece_file import read_facts
from export.importers.word_list import PICKLED
from export.importers.word_tokenizer import WordOptions, read_word_tokenizer, special_tokens, word_tokenizer

WORD_LISTS = (".txt", ".json", *PICKLED)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """`kind` is that of `service.text.tokenizers`; `special_ids` are those that the file defines, by our names.

    `file` is the given one, or writes it. `ids` are a model's own of SentencePiece's pieces (kind "marian").
    """

    kind: str
    suffix: str
    size: int
    special_ids: Mapping[str, int]
    file: TokenizerFile
    ids: Mapping[str, int] = field(default_factory=dict)


def read_vocabulary(path: Path, options: WordOptions | None = None) -> Vocabulary:
    """Load a SentencePiece model, JSON of the `tokenizers` library, or a word list, whose texts `options` split."""
    if mistake := mistaken_file(path):
        raise ValueError(mistake)
    if path.suffix in WORD_LISTS and not (path.suffix == ".json" and _is_of_tokenizers(path)):
        words = read_word_tokenizer(path, options)
        return Vocabulary("tokenizers", ".json", words.size, words.special_ids, words.write)
    vocabulary = _read_tokenizers_json(path) if path.suffix == ".json" else _read_sentencepiece(path)
    if options is not None:
        raise ValueError('it says itself how texts are split; leave "tokenizer" out of --config')
    return vocabulary


def _read_sentencepiece(path: Path) -> Vocabulary:
    facts = read_facts(path)
    special = {"pad_id": facts.pad_id, "eos_id": facts.eos_id, "unk_id": facts.unk_id}
    found = {name: index for name, index in special.items() if index >= 0}
    return Vocabulary("sentencepiece", ".model", facts.size, found, path)


def numbered_vocabulary(ids: Mapping[str, int], path: Path | None, options: WordOptions | None) -> Vocabulary:
    """Return the vocabulary of a model that says itself which `ids` its tokens have.

    These are the pieces of the SentencePiece model at `path`, or words that `options` tell how to split.
    """
    if path is None or options is not None:
        words = word_tokenizer(ids, {}, options)
        return Vocabulary("tokenizers", ".json", words.size, words.special_ids, words.write)
    if problem := other_model(stored_file.read(path), ids):
        raise ValueError(f"it {problem}")
    special_ids = {name: ids[text] for name, text in special_tokens(ids, WordOptions()).items()}
    return Vocabulary("marian", ".spm", max(ids.values()) + 1, special_ids, path, ids)


def misfits(
    vocabulary: Vocabulary, size: int, special_ids: Mapping[str, int], others: Iterable[int], side: str
) -> list[str]:
    """Return why a file can't be the vocabulary of the model's `side`, which has `size` ids.

    Tokens that training added after the file's own are special ones: `special_ids`, by our names, and `others`.
    """
    problems = [
        f"it has {name} {vocabulary.special_ids[name]}, --config says {index} for the {side}"
        for name, index in special_ids.items()
        if vocabulary.special_ids.get(name, index) != index
    ]
    added = {index for index in (*special_ids.values(), *others) if vocabulary.size <= index < size}
    if vocabulary.size + len(added) != size:
        problems.append(f"it has {vocabulary.size} tokens, the model's {side} has {size}")
    return problems


def _read_tokenizers_json(path: Path) -> Vocabulary:
    try:
        tokenizer = tokenizers.Tokenizer.from_buffer(stored_file.read(path))
    except Exception as error:  # the library raises nothing more specific
        raise ValueError(f"it is not JSON of the tokenizers library ({error})") from error
    size = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1
    unknown = json.loads(tokenizer.to_str())["model"].get("unk_token")
    unk_id = tokenizer.token_to_id(unknown) if isinstance(unknown, str) else None
    return Vocabulary("tokenizers", ".json", size, {} if unk_id is None else {"unk_id": unk_id}, path)


def _is_of_tokenizers(path: Path) -> bool:
    try:
        document = json.loads(stored_file.read(path))
    except (ValueError, RecursionError):
        return True  # its reader says what is wrong
    return isinstance(document, dict) and isinstance(document.get("model"), dict)
