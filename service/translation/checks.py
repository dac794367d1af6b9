"""What is wrong with a request whichever model it is for."""

from collections.abc import Collection

from service.domain.errors import InvalidRequest, TooLong, quoted
from service.domain.translation import MAX_TEXTS, MimeType, TranslationRequest

MAX_TERM_CHARACTERS = 200
_MAX_LABEL_CHARACTERS = 63


def check_request(request: TranslationRequest, max_characters: int) -> None:
    """Check what does not depend on a model; who takes it from a caller has counted what there are several of.

    Raises:
        InvalidRequest: names the field.
    """
    check_texts(request.texts, max_characters)
    num_characters = sum(map(len, request.target_prefixes))
    if num_characters > max_characters:
        raise TooLong(
            f"target_prefixes have {num_characters} characters together; allowed are {max_characters} per call, as in "
            "texts.",
            "target_prefixes",
        )
    num_prefixes, num_texts = len(request.target_prefixes), len(request.texts)
    if num_prefixes and num_prefixes != num_texts:
        raise InvalidRequest(
            f"target_prefixes has {num_prefixes} entries for {num_texts} texts; give one for each, or none.",
            "target_prefixes",
        )
    if any(request.target_prefixes) and request.mime_type is not MimeType.PLAIN:
        raise InvalidRequest(
            f"target_prefixes can't go with mime_type {request.mime_type.value!r}; send plain text, or leave them out.",
            "target_prefixes",
        )
    for number, term in enumerate(request.terms):
        if not len(term.source.strip()) > 0 or max(len(term.source), len(term.target or "")) > MAX_TERM_CHARACTERS:
            raise InvalidRequest(
                f"terms[{number}] has {len(term.source)} characters to find and {len(term.target or '')} to put; "
                f"allowed are 1 to {MAX_TERM_CHARACTERS}, not only white space.",
                f"terms[{number}]",
            )
    for key, value in request.labels:
        if not key or max(len(key), len(value)) > _MAX_LABEL_CHARACTERS:
            raise InvalidRequest(
                f"labels has {quoted(key)} = {quoted(value)}; keys have 1 to {_MAX_LABEL_CHARACTERS} characters, "
                "values at most as many.",
                "labels",
            )


def check_texts(texts: Collection[str], max_characters: int) -> None:
    """Check that there are texts, and how long they are together; who takes them from a caller has counted them.

    Raises:
        InvalidRequest: none, or too long ones.
    """
    if not texts:
        raise InvalidRequest(f"texts is empty; give 1 to {MAX_TEXTS} texts.", "texts")
    num_characters = sum(map(len, texts))
    if num_characters > max_characters:
        raise TooLong(
            f"texts have {num_characters} characters together; allowed are {max_characters} per call. Send several "
            "calls.",
            "texts",
        )
