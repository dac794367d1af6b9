"""Documents in our own API: a form with a file and the fields of /v1/translate that fit, answered by the file."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Json
from pydantic_core import PydanticCustomError

from service.documents import DocumentOptions
from service.domain.translation import TranslationRequest
from service.faces.dragoman import http_messages as messages
from service.faces.http.application import FormPart, HttpAnswer, HttpRequest
from service.faces.http.bodies import checked
from service.faces.http.bounded import AtMost, Checked, Name
from service.faces.http.uploads import file_answer, form_with_file, upload_of
from service.jobs.translation import DOCUMENT_SECONDS, DocumentTranslator

_COLUMNS = "columns"
_MAX_COLUMNS = 1024
_MAX_OPTIONS = 4096  # characters of JSON


def _not_long(options: object) -> object:
    if isinstance(options, str) and len(options) > _MAX_OPTIONS:
        raise PydanticCustomError("string_too_long", "", {"max_length": _MAX_OPTIONS})
    return options


class FileFields(BaseModel):
    """The fields of a form beside its file. Those that /v1/translate has, too, have the same names and meanings."""

    model_config = ConfigDict(extra="forbid")

    source_language_code: Name = Field("", description="BCP 47, such as en; detected where it is left out.")
    target_language_code: Name = Field(description="BCP 47, such as de.")
    columns: Annotated[list[Name], AtMost(_MAX_COLUMNS)] = Field(
        [], description="Of a table: names of the columns to translate; may be repeated."
    )
    retranslate: bool = Field(False, description="Of .po and .xliff: also entries that have a translation.")
    front_matter: Name = Field(
        "", description="Of Markdown: keys of its front matter to translate, such as title,description."
    )
    attributes: bool = Field(
        False, description="Of HTML: also what attributes show, such as alt and title; lang becomes the target."
    )
    model: Name = Field("", description=messages.about("model"))
    model_version: Name = Field("", description=messages.about("model_version"))
    options: Annotated[Json[messages.DecodingOptions], BeforeValidator(_not_long)] | None = Field(
        None, description="How to decode, as JSON."
    )
    priority: Literal["high", "normal", "low"] = Field("normal", description=messages.about("priority"))
    split_sentences: Literal["off", "on", "no_newlines"] = Field("on", description=messages.about("split_sentences"))
    preserve_formatting: bool = Field(False, description=messages.about("preserve_formatting"))
    glossary: Name = Field("", description=messages.about("glossary"))
    strict: bool = Field(False, description=messages.about("strict"))
    deadline: float | None = Field(None, description="Milliseconds until the answer must be there; 600,000 by default.")


class FileRequest(FileFields):
    """A form with a document, and how to translate it."""

    file: Annotated[str, Checked("the bytes of an upload")] = Field(
        description="The document. The ending of its file's name tells the format.",
        json_schema_extra={"contentMediaType": "application/octet-stream"},
    )


class Files:
    """The call of our own API that translates a document. For the event loop's thread only."""

    def __init__(self, documents: DocumentTranslator) -> None:
        self._documents = documents

    async def translate(self, request: HttpRequest) -> HttpAnswer:
        """Translate a document."""
        file, parts = form_with_file(request)
        fields: FileFields = checked(_values(parts), FileFields)
        translation_request = _request_from(fields)
        options = DocumentOptions(
            tuple(fields.columns),
            fields.target_language_code,
            fields.retranslate,
            fields.source_language_code,
            front_matter=tuple(key.strip() for key in fields.front_matter.split(",") if key.strip()),
            attributes=fields.attributes,
        )
        return file_answer(await self._documents.translate(upload_of(file, options=options), translation_request))


def _values(parts: list[FormPart]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for part in parts:
        if part.name == _COLUMNS:
            values.setdefault(_COLUMNS, []).append(part.text)
        else:
            values.setdefault(part.name, part.text)
    return values


def _request_from(fields: FileFields) -> TranslationRequest:
    options = {_COLUMNS, "retranslate", "front_matter", "attributes", "options"}  # for the document, or given below
    given = fields.model_dump(exclude=options, exclude_unset=True)
    body = messages.TranslateRequest(**given, options=fields.options)
    return messages.request_from(body, (), DOCUMENT_SECONDS)
