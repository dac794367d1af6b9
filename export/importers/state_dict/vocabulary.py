"""Inspects the vocabulary of a notebook's tokenizer files, and checks that it fits the model."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import tokenizers

from export.importers import stored_file
from export.importers.sentencepiece_file import read_facts


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """`kind` is that of `service.text.tokenizers`; `special_ids` are those that the file defines, by our names."""

    kind: str
    suffix: str
    size: int
    special_ids: Mapping[str, int]


def read_vocabulary(path: Path) -> Vocabulary:
    """Load a SentencePiece model, or the JSON of a Hugging Face `tokenizers` tokenizer, and return its vocabulary."""
    if path.suffix == ".json":
        return _read_tokenizers_json(path)
    facts = read_facts(path)
    special = {"pad_id": facts.pad_id, "eos_id": facts.eos_id, "unk_id": facts.unk_id}
    return Vocabulary(
        "sentencepiece", ".model", facts.size, {name: index for name, index in special.items() if index >= 0}
    )


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
        problems.append(f"it has {vocabulary.size} tokens, --config says {side}_vocabulary_size {size}")
    return problems


def _read_tokenizers_json(path: Path) -> Vocabulary:
    try:
        tokenizer = tokenizers.Tokenizer.from_buffer(stored_file.read(path))
    except Exception as error:  # the library raises nothing more specific
        raise ValueError(f"it is not JSON of the tokenizers library ({error})") from error
    size = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1
    unknown = json.loads(tokenizer.to_str())["model"].get("unk_token")
    unk_id = tokenizer.token_to_id(unknown) if isinstance(unknown, str) else None
    return Vocabulary("tokenizers", ".json", size, {} if unk_id is None else {"unk_id": unk_id})
