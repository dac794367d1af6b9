"""The MIME types of texts, as callers name them in messages of protobuf."""

from service.domain.errors import InvalidRequest, Path
from service.domain.translation import MimeType

_MIME_TYPES = {mime_type.value: mime_type for mime_type in MimeType}


def mime_type_from(value: str) -> MimeType:
    """Return the MIME type of that name; case does not matter.

    Raises:
        InvalidRequest: the name is unknown.
    """
    mime_type = _MIME_TYPES.get(value.lower())
    if mime_type is None:
        raise InvalidRequest("{path} is {value}", Path("mime_type"), value=value, allowed=", ".join(_MIME_TYPES))
    return mime_type
