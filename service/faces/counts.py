"""Limits on the entries of callers' lists, for every API: checked before the lists are processed."""

from service.domain.errors import Path, TooMany

MAX_TERMS = 1024  # in a request; a glossary on the server may have more
MAX_LABELS = 64
MAX_OWN_PLACEHOLDERS = 32
SEVERAL_CALLS = "send several calls"


def check_count(field: str, number: int, most: int, advice: str = SEVERAL_CALLS) -> None:
    """Check how many entries a field has.

    Raises:
        TooMany: there are more than `most`.
    """
    if number > most:
        raise TooMany("{path} has {number} entries", Path(field), number=number, allowed=str(most), advice=advice)
