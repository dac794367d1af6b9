"""Documents in our own API: a form with a file and the applicable fields of /v1/translate; the answer is the file."""

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Json, create_model
from pydantic_core import PydanticCustomError

from service.documents import DocumentOptions
from service.documents.options import DOCUMENT_OPTIONS, document_fields, is_for
from service.domain.errors import InvalidRequest, Path, Public, listed
from service.domain.translation import TranslationRequest
from service.faces.dragoman import http_messages as messages
from service.faces.http.application import FormPart, HttpAnswer, HttpRequest
from service.faces.http.bodies import checked
from service.faces.http.bounded import AtMost, Checked, Name
from service.faces.http.uploads import file_answer, form_with_file, upload_of
from service.jobs.translation import DOCUMENT_SECONDS, DocumentTranslator

_MAX_OPTIONS = 4096  # characters of JSON
_LISTS = [name for name, option in DOCUMENT_OPTIONS.items() if option.kind is list]


def _not_long(options: object) -> object:
    if isinstance(options, str) and len(options) > _MAX_OPTIONS:
        raise PydanticCustomError("string_too_long", "", {"max_length": _MAX_OPTIONS})
    return options


_KINDS: dict[type, Any] = {list: Annotated[list[Name], AtMost(1024)], str: Name, bool: bool}

if TYPE_CHECKING:
    _DocumentFields = BaseModel
else:
    _DocumentFields = create_model(
        "_DocumentFields",
        **{
            name: (_KINDS[option.kind], Field(option.default, description=option.help))
            for name, option in DOCUMENT_OPTIONS.items()
        },
    )


class FileFields(messages.CommonFields, _DocumentFields):
    """The fields of a form beside its file: the options of a document, and others as /v1/translate has them."""

    model_config = ConfigDict(extra="forbid")

    options: Annotated[Json[messages.DecodingOptions], BeforeValidator(_not_long)] | None = Field(
        None, description="How to decode, as JSON."
    )
    deadline: float | None = Field(None, description="Deadline in milliseconds; 600,000 by default.")


class FileRequest(FileFields):
    """A form with a document, and how to translate it."""

    file: Annotated[str, Checked("the bytes of an upload")] = Field(
        description="The document; the ending of its file name is its format.",
        json_schema_extra={"contentMediaType": "application/octet-stream"},
    )


class Files:
    """The call of our own API that translates a document. For the event loop's thread only."""

    def __init__(self, documents: DocumentTranslator) -> None:
        self._documents = documents

    async def translate(self, request: HttpRequest) -> HttpAnswer:
        file, parts = form_with_file(request)
        fields: FileFields = checked(_values(parts), FileFields)
        translation_request = _request_from(fields)
        given = fields.model_dump(include=set(DOCUMENT_OPTIONS))
        source, target = fields.source_language_code, fields.target_language_code
        options = DocumentOptions(source=source, target=target, **document_fields(given))
        upload = upload_of(file, options=options)
        if given["encoding"] and not is_for("encoding", upload.name):
            formats = Public(listed(DOCUMENT_OPTIONS["encoding"].formats))
            raise InvalidRequest("{path} is for {formats}", Path("encoding"), formats=formats, advice="leave it out")
        return file_answer(await self._documents.translate(upload, translation_request, request.hold))


def _values(parts: list[FormPart]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for part in parts:
        if part.name in _LISTS:
            values.setdefault(part.name, []).append(part.text)
        else:
            values.setdefault(part.name, part.text)
    return values


def _request_from(fields: FileFields) -> TranslationRequest:
    given = fields.model_dump(exclude={*DOCUMENT_OPTIONS, "options"}, exclude_unset=True)
    body = messages.TranslateRequest(**given, options=fields.options)
    return messages.request_from(body, (), DOCUMENT_SECONDS)
