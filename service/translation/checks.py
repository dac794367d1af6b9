"""Checks of requests that do not depend on the model, and of the size of answers."""

from collections.abc import Collection

from service.domain.errors import InvalidRequest, Path, Public, TooLong, counted
from service.domain.translation import ENTRY_CHARACTERS, MAX_TEXTS, MimeType, TranslationRequest
from service.text.glossary import MAX_TERM_LENGTH
from service.text.placeholders import check_own

MAX_LABEL_CHARACTERS = 63


def check_request(request: TranslationRequest, max_characters: int) -> None:
    """Check what does not depend on a model; the face has already limited the numbers of entries."""
    check_texts(request.texts, max_characters)
    num_characters = sum(map(len, request.target_prefixes))
    if num_characters > max_characters:
        raise TooLong(
            "{path} have {number} characters in total",
            Path("target_prefixes"),
            number=num_characters,
            allowed=f"{max_characters} per call, as in texts",
        )
    num_prefixes, num_texts = len(request.target_prefixes), len(request.texts)
    if num_prefixes and num_prefixes != num_texts:
        raise InvalidRequest(
            "{path} has {entries} for {texts}",
            Path("target_prefixes"),
            entries=Public(counted(num_prefixes, "entry", "entries")),
            texts=Public(counted(num_texts, "text")),
            advice="give one for each, or none",
        )
    if any(request.target_prefixes) and request.mime_type is not MimeType.PLAIN:
        raise InvalidRequest(
            "{path} can't be used with mime_type {mime_type}",
            Path("target_prefixes"),
            mime_type=Public(repr(request.mime_type.value)),
            advice="send plain text, or leave them out",
        )
    for number, term in enumerate(request.terms):
        if not len(term.source.strip()) > 0 or max(len(term.source), len(term.target or "")) > MAX_TERM_LENGTH:
            raise InvalidRequest(
                "{path} has a source of {source} and a target of {target}",
                Path("terms", number),
                source=Public(counted(len(term.source), "character")),
                target=Public(counted(len(term.target or ""), "character")),
                allowed=f"1 to {MAX_TERM_LENGTH}, not only white space",
            )
    for index, placeholder in enumerate(request.placeholders):
        check_own(placeholder, index)
    for key, value in request.labels:
        if not key or max(len(key), len(value)) > MAX_LABEL_CHARACTERS:
            raise InvalidRequest(
                "{path} has {key} = {value}",
                Path("labels"),
                key=key,
                value=value,
                advice=f"keys have 1 to {MAX_LABEL_CHARACTERS} characters, values at most as many",
            )


def check_texts(texts: Collection[str], max_characters: int) -> None:
    """Check that there are texts, and their total length; the face has already limited their number."""
    if not texts:
        raise InvalidRequest("{path} is empty", Path("texts"), advice=f"give 1 to {MAX_TEXTS} texts")
    num_characters = sum(map(len, texts))
    if num_characters > max_characters:
        raise TooLong(
            "{path} have {number} characters in total",
            Path("texts"),
            number=num_characters,
            allowed=f"{max_characters} per call",
            advice="send several calls",
        )


class AnswerSize:
    """Counter of an answer's size in one processing step. Each step has its own counter of the same contents."""

    def __init__(self, max_characters: int, num_hypotheses: int = 1) -> None:
        self._max_characters = max_characters
        self._num_hypotheses = num_hypotheses
        self.num_characters = 0  # counted so far

    def add(self, num_characters: int, num_entries: int = 0) -> None:
        """Count characters of text, and entries: segments and alignment links."""
        self.num_characters += num_characters * self._num_hypotheses + num_entries * ENTRY_CHARACTERS
        if self.num_characters > self._max_characters:
            raise TooLong(
                "the answer would have more than {most} characters, the limit per call (all hypotheses together; each "
                "segment and link of an alignment counts as {entry})",
                "texts",
                most=self._max_characters,
                entry=ENTRY_CHARACTERS,
                advice="send less text per call, shorter terms, or ask for fewer hypotheses",
            )
