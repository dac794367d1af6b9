"""Documents as a whole: read, their texts translated in calls of bounded size, and written with the translations."""

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dragoman_client import ClientError, MimeType, Options, RequestFields, Translation
from service.cli.errors import CommandError, ExitCode
from service.cli.pipeline import Calls, map_chunks
from service.cli.reports import progress, reporting, show_notes
from service.cli.streams import Files, open_output, write_bytes
from service.documents import Document, DocumentError, DocumentOptions, Doubt, open_document, sample
from service.documents.document import DocumentText
from service.documents.opening import MAX_BYTES
from service.documents.report import doubt_about

_UNDETERMINED = "und"


def translate_document(calls: Calls, ending: str, fields: Mapping[str, Any], files: Files) -> None:
    """Translate the document that `ending` stands for; `fields` are those of its `DocumentOptions`.

    It is written when all texts are translated. Notes go to standard error, doubts about translations to the report.
    """
    options = DocumentOptions(target=calls.target, source=calls.source, **fields)
    name = str(files.input_path or "the input")
    with _naming(name):
        document = open_document(f"input{ending}", _read(files, name), options)
    if not calls.source:
        calls = replace(calls, source=document.language or _detected(document, calls))
    translations: list[str] = []
    doubts: dict[int, Doubt] = {}
    with open_output(files) as output, reporting(files, document.notes) as report:
        with progress(files, "text", len(document.texts)) as bar:
            for chunk in map_chunks(document.texts, functools.partial(_translated, calls)):
                for text, translation in chunk:
                    doubt = doubt_about(translation)
                    report.add(len(translations), text.place, doubt)
                    if doubt:
                        doubts[len(translations)] = doubt
                    translations.append(translation.text)
                bar.update(len(chunk))
        with _naming(name):
            written = document.written(translations, doubts)
        write_bytes(output, written)
    show_notes(report.notes)


def _read(files: Files, name: str) -> bytes:
    assert files.input_stream is not None
    try:
        return files.input_stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise CommandError(f"reading {name} failed: {error.strerror}.", ExitCode.IO_ERROR) from error


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    try:
        yield
    except DocumentError as error:
        raise CommandError(f"{name}: {error}", ExitCode.DATA) from None


def _detected(document: Document, calls: Calls) -> str:
    """Return a document's language by its beginning: the target's or one translated into it; empty without letters."""
    text, mime_type = sample(document.texts)
    if not text:
        return ""
    fields: RequestFields = {
        "model": calls.fields["model"],
        "model_version": calls.fields["model_version"],
        "mime_type": MimeType(mime_type.value),
        "options": Options(max_output_tokens=1),  # the translation is not needed
    }
    try:
        (translation,) = replace(calls, fields=fields).translate([text])
    except ClientError as error:
        raise error.renamed("the document") if error.path[:1] == ("texts",) else error from None
    language = translation.detected_language_code
    return "" if language == _UNDETERMINED else language


def _translated(calls: Calls, chunk: list[DocumentText]) -> list[Translation]:
    found: dict[int, Translation] = {}
    for mime_type in (MimeType.PLAIN, MimeType.HTML):
        numbers = [number for number, text in enumerate(chunk) if text.mime_type.value == mime_type.value]
        if numbers:
            answers = _call(calls, [chunk[number] for number in numbers], mime_type)
            found.update(zip(numbers, answers, strict=True))
    return [found[number] for number in range(len(chunk))]


def _call(calls: Calls, texts: list[DocumentText], mime_type: MimeType) -> list[Translation]:
    try:
        return calls.translate([each.text for each in texts], mime_type=mime_type)
    except ClientError as error:
        match error.path:
            case ("texts", int(index)):
                raise error.renamed(texts[index].place) from None
            case ("texts",) if len(texts) == 1:
                error.add_note(f"This is about the text at {texts[0].place}.")
        raise
