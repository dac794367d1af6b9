"""Documents as callers upload them in forms, and as they are returned."""

from http import HTTPStatus
from urllib.parse import quote

from service.documents import DocumentOptions
from service.documents.opening import MAX_BYTES
from service.documents.report import compact_json
from service.domain.errors import InvalidRequest, Path
from service.faces.http.application import FormPart, HttpAnswer, HttpRequest
from service.faces.http.bodies import content_type
from service.faces.http.multipart import MULTIPART
from service.jobs.reading import FILE, Upload
from service.jobs.translation import TranslatedDocument

MAX_UPLOAD_BYTES = MAX_BYTES + 2**16  # with the form around it
NOTES_HEADER = "X-Document-Notes"
REPORT_HEADER = "X-Document-Report"

_NO_OPTIONS = DocumentOptions()


def form_with_file(request: HttpRequest) -> tuple[FormPart, list[FormPart]]:
    """Return a form's file, and its other fields; raise `InvalidRequest` unless there is exactly one file."""
    if (given := content_type(request)) != MULTIPART:
        raise InvalidRequest("Content-Type is {given}", given=given, allowed=MULTIPART)
    parts = request.form
    files = [part for part in parts if part.name == FILE]
    if not files:
        raise InvalidRequest("{path} is missing", Path(FILE), advice="send the document as this field of the form")
    if len(files) > 1:
        raise InvalidRequest("{path} is given {number} times", Path(FILE), number=len(files), allowed="one per call")
    return files[0], [part for part in parts if part.name != FILE]


def upload_of(file: FormPart, name: str = "", options: DocumentOptions = _NO_OPTIONS) -> Upload:
    return Upload(name or file.filename or "", file.content, options)


def file_answer(document: TranslatedDocument) -> HttpAnswer:
    headers = {"Content-Disposition": attachment(document.name), "X-Content-Type-Options": "nosniff"}
    if document.notes:
        headers[NOTES_HEADER] = " ".join(document.notes).encode("ascii", "replace").decode("ascii")
    if document.report:
        # Clients and proxies take headers of 8 KiB in all.
        headers[REPORT_HEADER] = compact_json(document.report, max_characters=4096)
    return HttpAnswer(HTTPStatus.OK, document.content_type, document.data, headers)


def attachment(name: str) -> str:
    """Return the value of Content-Disposition for a file of this name (RFC 6266)."""
    simple = "".join(character if character.isascii() and character not in '"\\%' else "_" for character in name)
    extended = f"; filename*=UTF-8''{quote(name, safe='')}" if simple != name else ""
    return f'attachment; filename="{simple}"{extended}'
