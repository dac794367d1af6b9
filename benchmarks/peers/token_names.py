"""CTranslate2 speaks in strings; our token ids are named for themselves."""


def token_name(token_id: int) -> str:
    """The name of an id in the vocabulary that `tests.references.ct2` writes."""
    return f"<tok_{token_id}>"


def token_id(name: str) -> int:
    """The id that has the name."""
    return int(name[len("<tok_") : -1])
