"""Reads word lists: what tutorials keep their vocabularies in."""

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from export.architecture.config import MAX_SIZE
from export.importers import stored_file
from export.importers.inert_pickle import Record, read_inert

PICKLED = (".pt", ".pth", ".pkl", ".pickle")
# Keys and attributes that hold a list of tokens, or ids by tokens or tokens by ids, in the order in which they count:
# torchtext's, Keras' and those of tutorials' own classes, such as `Lang` of PyTorch's.
_HOLDERS = (
    *("itos", "stoi", "word_index", "word2idx", "word2index", "word2id", "token2idx", "token2id", "token_to_id"),
    *("idx2word", "index2word", "id2word", "_tokens", "tokens", "vocab"),
)
_DEEPEST = 4  # holders within holders
_COUNTED = re.compile(r"\S+[ \t]\d+")
_FAIRSEQ_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")  # fairseq/data/dictionary.py; a dictionary's file lacks them


def read_words(path: Path) -> tuple[dict[str, int], Mapping[str, Any]]:
    """Return ids by token, and what the file itself says about how texts are split: Keras' settings."""
    if path.suffix in PICKLED:
        return ids_of(read_inert(path)), {}
    try:
        text = stored_file.read(path).decode()
        document = None if path.suffix == ".txt" else json.loads(text)
        if isinstance(document, str):  # what Keras' to_json returns, written as JSON once more
            document = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not {path.suffix[1:] or 'text'} in UTF-8 ({stored_file.reason(error)})") from error
    if path.suffix == ".txt":
        return ids_of(_lines(text)), {}
    if isinstance(document, dict) and document.get("class_name") == "Tokenizer":
        return _of_keras(document.get("config"))
    return ids_of(document), {}


def _lines(text: str) -> list[str]:
    lines = text.removesuffix("\n").replace("\r\n", "\n").split("\n")
    if not all(map(_COUNTED.fullmatch, lines)):
        return lines
    words = [re.split("[ \t]", line)[0] for line in lines]
    if set(words) & set(_FAIRSEQ_SPECIAL):
        raise ValueError("each line has a number, an id or a count; write JSON of ids by token")
    return [*_FAIRSEQ_SPECIAL, *words]


def _of_keras(settings: Any) -> tuple[dict[str, int], Mapping[str, Any]]:
    """Read a tokenizer of Keras as its `texts_to_sequences` does (keras_preprocessing/text.py)."""
    index = settings.get("word_index") if isinstance(settings, dict) else None
    ids = ids_of(json.loads(index) if isinstance(index, str) else index)
    most = settings.get("num_words")
    return {word: index for word, index in ids.items() if most is None or index < most}, settings


def ids_of(found: Any, depth: int = 0) -> dict[str, int]:
    if isinstance(found, Record) and isinstance(found.state, tuple):  # torchtext's in C++: version, numbers, tokens
        found = next((part for part in found.state if isinstance(part, list) and _are_texts(part)), found)
    if isinstance(found, dict) and depth < _DEEPEST:
        held = next((found[name] for name in _HOLDERS if isinstance(found.get(name), dict | list)), None)
        if held is not None:
            return ids_of(held, depth + 1)
    if isinstance(found, list):
        pairs = [(word, index) for index, word in enumerate(found)]
    elif isinstance(found, dict) and _are_texts(found.values()):
        pairs = [(word, int(index) if str(index).isdecimal() else index) for index, word in found.items()]
    elif isinstance(found, dict):  # one of both ways has texts as keys, too
        pairs = [(word, index) for word, index in found.items() if isinstance(word, str)]
    else:
        pairs = []
    return _checked(pairs)


def _checked(pairs: list[tuple[Any, Any]]) -> dict[str, int]:
    if not pairs:
        raise ValueError("it has no list of tokens and no ids by token; write JSON of either")
    ids: dict[str, int] = {}
    taken: set[int] = set()
    for word, index in pairs:
        if not isinstance(word, str) or type(index) is not int or not 0 <= index < MAX_SIZE:
            raise ValueError(f"it maps {word!r:.60} to {index!r:.60}, expected a token and its id")
        if word in ids or index in taken:
            raise ValueError(f"it has the token {word!r:.60} or the id {index} twice")
        ids[word] = index
        taken.add(index)
    return ids


def _are_texts(values: Collection[Any]) -> bool:
    return len(values) > 0 and all(isinstance(each, str) for each in values)
