"""`vocab.json`: the ids of pieces."""

import json
import re
from collections import Counter
from typing import Any

from service.domain.errors import shown

_MARIAN_LANGUAGE_TOKEN = re.compile(r">>([A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*)<<")


def parse_vocabulary(data: bytes) -> dict[str, int]:
    """Parse a vocabulary: one JSON object, pieces to ids, without duplicate ids or pieces."""
    try:
        entries = json.loads(data, object_pairs_hook=_Entries)
    except RecursionError:
        raise ValueError("it is nested too deeply; expected one object of pieces and ids") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(entries, _Entries) or not entries:
        raise ValueError("it holds no vocabulary; expected one object of pieces and ids")
    for piece, token_id in entries:
        if not isinstance(token_id, int) or isinstance(token_id, bool) or token_id < 0:
            wrong = "an object" if isinstance(token_id, _Entries) else shown(token_id)
            raise ValueError(f"the id of {shown(piece)} is {wrong}; expected a number from 0")
    vocabulary = dict(entries)
    if len(vocabulary) < len(entries):
        raise ValueError(f"{shown(_repeated([piece for piece, _ in entries]))} is in it twice")
    if len(set(vocabulary.values())) < len(vocabulary):
        raise ValueError(f"two pieces have the id {_repeated(list(vocabulary.values()))}")
    return vocabulary


def marian_language(piece: str) -> str | None:
    """Return the code in one of Marian's language tokens: "de" for ">>de<<"; `None` if `piece` is not such a token."""
    found = _MARIAN_LANGUAGE_TOKEN.fullmatch(piece)
    return found and found.group(1)


class _Entries(list[tuple[str, Any]]):
    """A JSON object as its pairs, so that duplicate keys are detected."""


def _repeated(values: list[Any]) -> Any:
    return next(value for value, count in Counter(values).items() if count > 1)
