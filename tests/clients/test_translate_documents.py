"""`dragoman translate` with documents of every format, read again by other libraries."""

import csv
import io
import re
import zipfile
from pathlib import Path
from typing import Any

import docx
import polib
import pytest

from tests.servers import ServerProcess, dragoman

OPTIONS = ("--from", "en", "--to", "de", "--max-output-tokens", "6")

_TOLD = re.compile(r"note: (\d+ texts? (was|were) (cut off|flagged): .*|1 document property was left as it is\.)")


@pytest.fixture
def translate(server: ServerProcess, tmp_path: Path) -> Any:
    """Translate a file with these bytes; return those of the output."""

    def run(name: str, source: bytes, *arguments: str) -> bytes:
        given, made = tmp_path / name, tmp_path / f"out-{name}"
        given.write_bytes(source)
        files = ("-i", str(given), "-o", str(made))
        done = dragoman("translate", "--server", server.address, *OPTIONS, *files, *arguments)
        assert (done.returncode, done.stdout) == (0, b"")
        assert all(_TOLD.fullmatch(line) for line in done.stderr.decode().splitlines()), done.stderr
        return made.read_bytes()

    return run


@pytest.fixture
def words(server: ServerProcess) -> dict[str, str]:
    """Return what the model makes of each word."""
    texts = ("Hello", "keys", "window")
    lines = dragoman("translate", "--server", server.address, *OPTIONS, *texts).stdout.decode().splitlines()
    return {text: line.strip() for text, line in zip(texts, lines, strict=True)}


def test_columns_of_a_table_by_name(translate: Any, words: dict[str, str]) -> None:
    source = b'id;text;note\r\n1;"Hello";x\r\n2;keys;"a ""b"""\r\n'
    written = translate("t.csv", source, "--column", "text")
    rows = list(csv.reader(io.StringIO(written.decode(), newline=""), delimiter=";"))
    assert [row[::2] for row in rows] == [["id", "note"], ["1", "x"], ["2", 'a "b"']]
    assert [row[1].strip() for row in rows] == ["text", words["Hello"], words["keys"]]
    source = b"id\ttext\tmore\n1\tHello\twindow\n\n"
    written = translate("t.tsv", source, "--header", "--column", "more", "--column", "text")
    rows = [line.split("\t") for line in written.decode().split("\n")]
    assert rows[0] == ["id", "text", "more"]
    assert [cell.strip() for cell in rows[1]] == ["1", words["Hello"], words["window"]]
    assert rows[2:] == [[""], [""]]
    numbered = translate("u.tsv", b"1\tHello\tx\r\n\r\n2\tkeys\t", "--column", "2").decode()
    assert [[cell.strip() for cell in line.split("\t")] for line in numbered.split("\r\n")] == [
        ["1", words["Hello"], "x"],
        [""],
        ["2", words["keys"], ""],
    ]


def test_a_page(translate: Any, server: ServerProcess, words: dict[str, str]) -> None:
    source = b"<!doctype html>\r\n<p class=a>Hello</p>\n<p title='keys'><!-- Hello --><i>keys</i></p>"
    written = translate("t.HTM", source).decode()
    expected = source.decode().replace(">Hello<", f">{words['Hello']}<").replace(">keys<", f">{words['keys']}<")
    assert written.startswith("<!doctype html>\r\n<p class=a>")
    assert "".join(written.split()) == "".join(expected.split())  # the model's translations have white space around
    arguments = ("translate", "--server", server.address, *OPTIONS, "--format", "html")
    assert dragoman(*arguments, stdin=source).stdout.decode() == written
    both = dragoman(*arguments, "<p>Hello</p>", "<b>keys</b>")
    assert both.stdout.decode().startswith(f"<p>{words['Hello']}</p>\n")
    assert both.stderr == b"note: 2 texts were cut off: 2 length.\n"


def test_a_po_file(translate: Any, words: dict[str, str]) -> None:
    source = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n#: a.c:1\nmsgid "keys"\nmsgstr ""\n\n'
    source += 'msgid "window"\nmsgstr "Fenster"\n'
    written = polib.pofile(translate("t.po", source.encode()).decode())
    assert [entry.msgstr for entry in written] == [words["keys"], "Fenster"]
    written = polib.pofile(translate("t.po", source.encode(), "--retranslate").decode())
    assert [entry.msgstr for entry in written] == [words["keys"], words["window"]]


def test_a_word_document(translate: Any, words: dict[str, str]) -> None:
    document, stream = docx.Document(), io.BytesIO()
    document.add_heading("Hello")
    paragraph = document.add_paragraph("Find ")
    paragraph.add_run("the keys").bold = True
    document.save(stream)
    written = translate("t.docx", stream.getvalue())
    assert zipfile.ZipFile(io.BytesIO(written)).testzip() is None
    heading, paragraph = docx.Document(io.BytesIO(written)).paragraphs
    assert (heading.text, heading.style and heading.style.name) == (words["Hello"], "Heading 1")
    assert any(run.bold for run in paragraph.runs)


def test_a_document_of_many_calls_keeps_its_order(translate: Any, words: dict[str, str]) -> None:
    """Texts and HTML alternate, and go in calls of their own."""
    source = "text\n" + "Hello\nkeys\n" * 500
    lines = translate("t.csv", source.encode(), "--column", "text").decode().splitlines()
    assert [line.strip('" ') for line in lines[1:]] == [words["Hello"].strip('" '), words["keys"].strip('" ')] * 500
    paragraphs = "".join(f"Hello\n\n`{number}` *keys*\n\n" for number in range(100))
    written = translate("t.md", paragraphs.encode()).decode()
    assert re.findall(r"`(\d+)`", written) == [str(number) for number in range(100)]


def test_a_pipe_needs_the_name_of_the_format(server: ServerProcess) -> None:
    source = b"1\n00:00:01,000 --> 00:00:02,500\nHello\n"
    run = dragoman("translate", "--server", server.address, *OPTIONS, "--format", "srt", stdin=source)
    assert (run.returncode, run.stderr) == (0, b"note: 1 text was cut off: 1 length.\n")
    assert run.stdout.startswith(source.partition(b"Hello")[0])


def test_what_is_left_as_it_is_gets_a_note(server: ServerProcess) -> None:
    source = b'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\nmsgstr[1] ""\nmsgstr[2] ""\n'
    run = dragoman("translate", "--server", server.address, *OPTIONS, "--format", "po", stdin=source)
    assert (run.returncode, run.stdout) == (0, source)
    assert run.stderr == b"note: entries with more than two plural forms were left as they are: 1.\n"


@pytest.mark.parametrize(
    ("name", "source", "arguments", "message"),
    [
        (
            "t.csv",
            b'a\n"open',
            ("--column", "a"),
            "line 2: the cell that starts here with a quotation mark has no end.",
        ),
        ("t.docx", b"Hello", (), "it is not a ZIP archive, which a .docx is: File is not a zip file."),
        ("t.xlf", b"<!DOCTYPE x [<!ENTITY a 'b'>]><x/>", (), "line 1: it declares an entity, 'a'"),
    ],
)
def test_a_broken_document_ends_the_command(
    server: ServerProcess, tmp_path: Path, name: str, source: bytes, arguments: tuple[str, ...], message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(source)
    run = dragoman("translate", "--server", server.address, *OPTIONS, "-i", str(path), *arguments)
    assert (run.returncode, run.stdout) == (65, b"")
    assert run.stderr.decode().startswith(f"dragoman: {path}: {message}")


def test_a_text_that_the_server_refuses_is_named_by_its_place(server: ServerProcess) -> None:
    source = f"Hello\n\n{'keys ' * 40_000}\n\n*{'window ' * 12_000}*.".encode()
    run = dragoman("translate", "--server", server.address, *OPTIONS, "--format", "md", stdin=source)
    assert run.returncode == 65
    message, note = run.stderr.decode().splitlines()
    assert message.startswith("dragoman: texts have 199999 characters in total; allowed are 131072 per call.")
    assert note == "dragoman: It is about the text at line 3."
