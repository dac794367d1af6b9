"""Names for our token ids, as CTranslate2 works on strings."""


def token_name(token_id: int) -> str:
    """Return the name of an id in the vocabulary that `tests.references.ct2` writes."""
    return f"<tok_{token_id}>"


def token_id(name: str) -> int:
    """Return the id that has the name."""
    return int(name[len("<tok_") : -1])
