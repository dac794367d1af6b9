"""Forms as multipart/form-data (RFC 7578), as browsers and `curl -F` send them: read as they arrive."""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from urllib.parse import unquote

from multipart import MultipartError, MultipartSegment, ParserLimitReached, PushMultipartParser, parse_options_header

from service.domain.errors import InvalidRequest, Public, Quoted, quoted
from service.faces.http.application import FormPart, HttpRequest
from service.faces.http.bodies import content_type, is_form
from service.faces.http.forms import MAX_FIELDS, fields_of

MULTIPART = "multipart/form-data"

_MAX_LINE_BYTES = 1024  # of one part's headers, and of the boundary, where RFC 2046 allows 70
_AT_ONCE_BYTES = 8192  # read between two looks of the event loop at everything else: some hundred parts
_EXTENDED = re.compile(
    r""";\s*+filename\*\s*+=\s*+"?+(?P<charset>[\w-]{1,40})'[\w-]*+'(?P<value>[^\s;"]*+)""", re.IGNORECASE
)
_WORDS = re.compile(r"(?:=\?[\w-]{1,40}\?[BbQq]\?[^?\s]*+\?=\s*+)++")
_UNENCODED = ("", "7bit", "8bit", "binary")  # values of Content-Transfer-Encoding


class FormReader:
    """Reads the fields of a form; its parser is in Python, so others get turns in between."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        """Take the boundary from the headers; raise `InvalidRequest` if there is none, or it is too long."""
        _, parameters = parse_options_header(headers.get("content-type", ""))
        boundary = parameters.get("boundary", "")
        if not 0 < len(boundary) <= _MAX_LINE_BYTES:
            raise InvalidRequest(
                "the boundary in Content-Type has {number} characters",
                number=len(boundary),
                allowed=f"1 to {_MAX_LINE_BYTES}",
            )
        self.parts: list[FormPart] = []
        self._content: list[bytes] = []
        self._segment: MultipartSegment | None = None
        try:
            self._parser = PushMultipartParser(
                boundary,
                max_header_size=_MAX_LINE_BYTES,
                max_segment_count=MAX_FIELDS,
                strict=False,
            )
        except MultipartError as error:
            raise self._malformed(error) from None

    async def feed(self, received: bytes) -> None:
        """Read what has arrived, nothing at the end; raise `InvalidRequest` if malformed, or of too many parts."""
        try:
            for at in range(0, len(received), _AT_ONCE_BYTES):
                if self._parser.closed:
                    return  # an epilogue, which is ignored
                for event in self._parser.parse(received[at : at + _AT_ONCE_BYTES]):
                    self._take(event)
                await asyncio.sleep(0)
            if not received:
                self._parser.close()
        except ParserLimitReached as error:
            raise self._too_large(error) from None
        except MultipartError as error:
            raise self._malformed(error) from None

    def _take(self, event: MultipartSegment | bytes | bytearray | None) -> None:
        if isinstance(event, MultipartSegment):
            _check(event)
            self._segment = event
        elif event is not None:
            self._content.append(bytes(event))
        elif self._segment is not None:
            self.parts.append(FormPart(self._segment.name, _filename(self._segment), b"".join(self._content)))
            self._content = []

    def _too_large(self, error: ParserLimitReached) -> InvalidRequest:
        if len(self.parts) >= MAX_FIELDS:
            return InvalidRequest("the form has too many fields", allowed=f"up to {MAX_FIELDS}")
        return self._malformed(error)

    def _malformed(self, error: MultipartError) -> InvalidRequest:
        return InvalidRequest(
            "part {number} of the form is cut off or not well-formed: {reason}",
            number=len(self.parts) + 1,
            reason=Public(str(error.args[0])),  # the library's words; what follows may quote the caller's
            advice="send it as RFC 7578 defines, with the boundary of Content-Type",
        )


def fields_of_any_form(request: HttpRequest) -> list[tuple[str, str]] | None:
    """Return the fields of a form in either encoding, in order and without files; `None` for another body.

    Raise `InvalidRequest` as `fields_of`, or if a field is not UTF-8.
    """
    kind = content_type(request)
    if is_form(request):
        return fields_of(request.body)
    if kind == MULTIPART:
        return [(part.name, part.text) for part in request.form if part.filename is None]
    return None


def _filename(segment: MultipartSegment) -> str | None:
    """Return a file's name, in whichever of its forms the client knows; `None` if the part is not a file. .NET sends
    `filename*` (RFC 8187), which forms must not have (RFC 7578 4.2), and encoded words (RFC 2047) in `filename`."""
    if extended := _EXTENDED.search(segment.header("Content-Disposition", "")):
        with suppress(LookupError, ValueError):
            return unquote(extended["value"], extended["charset"], "strict")
    named: str | None = segment.filename
    if named is not None and (words := _WORDS.fullmatch(named)):
        with suppress(LookupError, ValueError, HeaderParseError):
            return str(make_header(decode_header(words[0])))
    return named


def _check(segment: MultipartSegment) -> None:
    """Refuse a part that has a transfer encoding, such as base64."""
    encoding = segment.header("Content-Transfer-Encoding", "").lower()
    if encoding not in _UNENCODED:
        quoted_encoding = Quoted(quoted(encoding))
        raise InvalidRequest(
            "form field {name} has Content-Transfer-Encoding {given}",
            name=segment.name,
            given=quoted_encoding,
            allowed="binary",
        )
