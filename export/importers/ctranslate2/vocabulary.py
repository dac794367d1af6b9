"""CTranslate2's vocabularies: a list of tokens in the order of their ids, as text or JSON."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.errors import shown

SUFFIXES = (".json", ".txt")
SHARED, SOURCE, TARGET = "shared_vocabulary", "source_vocabulary", "target_vocabulary"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All tokens, and the id of each."""

    tokens: tuple[str, ...]
    ids: dict[str, int]


def read_vocabulary(data: bytes, *, is_json: bool, unk_token: str) -> Vocabulary:
    """Read a file's content; the unknown token follows the others if they lack it."""
    tokens = _of_json(data) if is_json else _of_text(data)
    if unk_token not in tokens:
        tokens.append(unk_token)
    ids = {token: index for index, token in enumerate(tokens)}
    if len(ids) < len(tokens):
        repeated = next(token for index, token in enumerate(tokens) if ids[token] != index)
        raise ValueError(f"it has {shown(repeated)} twice")
    return Vocabulary(tuple(tokens), ids)


def _of_json(data: bytes) -> list[str]:
    try:
        tokens = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise ValueError("it holds no list of tokens")
    return _encodable(tokens)


def _of_text(data: bytes) -> list[str]:
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    if lines and all(line.endswith(b"\r") for line in lines):  # tokens of other files may end so
        lines = [line[:-1] for line in lines]
    try:
        return [line.decode() for line in lines]
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text: {error}") from error


def _encodable(tokens: Sequence[str]) -> list[str]:
    for token in tokens:
        try:
            token.encode()
        except UnicodeEncodeError:
            raise ValueError(f"it has {shown(token)}, which is not valid Unicode") from None
    return list(tokens)
