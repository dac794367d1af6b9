"""Documents as a whole: read, their texts translated in calls of bounded size, and written with the translations."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import click

from dragoman_client import Client, ClientError, MimeType, Options, RequestFields, Translation
from service.cli.command_error import CommandError
from service.cli.exit_codes import ExitCode
from service.cli.output_file import open_output
from service.cli.pipeline import map_chunks
from service.cli.progress import progress
from service.cli.reports import reporting
from service.cli.streams import write_bytes
from service.documents import Document, DocumentError, DocumentOptions, Doubt, open_document, sample
from service.documents.opening import MAX_BYTES

_UNDETERMINED = "und"


@dataclass(frozen=True, slots=True)
class _Item:
    """A text of a document; `place` is where."""

    text: str
    mime_type: MimeType
    place: str


def read(stream: BinaryIO, path: Path | None, ending: str, options: DocumentOptions) -> Document:
    """Read a whole stream as the document that `ending` stands for; `path` names it in errors."""
    name = str(path) if path else "the input"
    try:
        data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise CommandError(f"reading {name} failed: {error.strerror}.", ExitCode.IO_ERROR) from error
    try:
        return open_document(f"input{ending}", data, options)
    except DocumentError as error:
        raise CommandError(f"{name}: {error}", ExitCode.DATA) from None


def translate_document(
    document: Document,
    client: Client,
    source: str,
    target: str,
    request_fields: RequestFields,
    files: tuple[BinaryIO | None, Path | None, Path | None],
    report_file: Path | None = None,
) -> None:
    """Translate a document; `files` are its stream, its path and that of the output.

    Nothing is written before all texts are translated. Notes go to standard error, and all that there is to say of the
    translations to `report_file`, in JSON.
    """
    stream, input_file, output_file = files
    source = source or document.language or _detected(document, client, target, request_fields)

    def translated(chunk: list[_Item]) -> list[Translation]:
        found: dict[int, Translation] = {}
        for mime_type in (MimeType.PLAIN, MimeType.HTML):
            numbers = [number for number, item in enumerate(chunk) if item.mime_type is mime_type]
            if numbers:
                fields: RequestFields = {**request_fields, "mime_type": mime_type, "keep_other_languages": True}
                answers = _call(client, [chunk[number] for number in numbers], source, target, fields)
                found.update(zip(numbers, answers, strict=True))
        return [found[number] for number in range(len(chunk))]

    with open_output(output_file, input_file) as (output, _), reporting(report_file, document.notes) as report:
        translations: list[str] = []
        doubts: dict[int, Doubt] = {}
        with progress(stream, output_file, 0, "text", len(document.texts)) as bar:
            for chunk in map_chunks(_items(document), translated):
                for item, translation in chunk:
                    if doubt := report.add(len(translations), item.place, translation):
                        doubts[len(translations)] = doubt
                    translations.append(translation.text)
                bar.update(len(chunk))
        try:
            written = document.written(translations, doubts)
        except DocumentError as error:
            raise CommandError(f"{input_file or 'the input'}: {error}", ExitCode.DATA) from None
        write_bytes(output, written)
    for note in report.notes:
        click.echo(f"note: {note}", err=True)


def _detected(document: Document, client: Client, target: str, request_fields: RequestFields) -> str:
    """Return the language of a document by its beginning, one that is translated into `target` or that language itself;
    empty if it has no letters.
    """
    text, mime_type = sample(document.texts)
    if not text:
        return ""
    fields: RequestFields = {
        "model": request_fields["model"],
        "model_version": request_fields["model_version"],
        "mime_type": MimeType(mime_type.value),
        "options": Options(max_output_tokens=1),  # the translation is not needed
    }
    try:
        (translation,) = client.translate([text], "", target, **fields)
    except ClientError as error:
        raise error.renamed("the document") if error.path[:1] == ("texts",) else error from None
    language = translation.detected_language_code
    return "" if language == _UNDETERMINED else language


def _items(document: Document) -> Iterator[_Item]:
    for text in document.texts:
        yield _Item(text.text, MimeType(text.mime_type.value), text.place)


def _call(client: Client, items: list[_Item], source: str, target: str, fields: RequestFields) -> list[Translation]:
    call: Callable[..., list[Translation]] = client.translate
    try:
        return call([item.text for item in items], source, target, **fields)
    except ClientError as error:
        match error.path:
            case ("texts", int(index)):
                raise error.renamed(items[index].place) from None
            case ("texts",) if len(items) == 1:
                error.add_note(f"It is about the text at {items[0].place}.")
        raise
