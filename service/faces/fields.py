"""Checks of callers' fields for every API: number of entries, language codes, MIME types."""

from service.domain.errors import InvalidRequest, Path, TooMany
from service.domain.translation import MimeType
from service.text.languages import is_well_formed

MAX_TERMS = 1024  # in a request; a glossary on the server may have more
MAX_LABELS = 64
MAX_OWN_PLACEHOLDERS = 32
SEVERAL_CALLS = "send several calls"
_MIME_TYPES = {mime_type.value: mime_type for mime_type in MimeType}


def check_count(field: str, number: int, most: int, advice: str = SEVERAL_CALLS) -> None:
    """Raise `TooMany` if a field has more than `most` entries."""
    if number > most:
        raise TooMany("{path} has {number} entries", Path(field), number=number, allowed=str(most), advice=advice)


def check_code(field: str, code: str) -> None:
    """Raise `InvalidRequest` if a field is not a language code."""
    if not is_well_formed(code):
        raise InvalidRequest("{path} is {code}", Path(field), code=code, advice="expected a BCP 47 code such as 'en'")


def mime_type_from(value: str) -> MimeType:
    """Return the MIME type of that name, in any case; raise `InvalidRequest` if it is unknown."""
    mime_type = _MIME_TYPES.get(value.lower())
    if mime_type is None:
        raise InvalidRequest("{path} is {value}", Path("mime_type"), value=value, allowed=", ".join(_MIME_TYPES))
    return mime_type
