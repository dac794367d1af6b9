"""`dragoman` as a user runs it, against a server process: output, standard error and exit codes."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from dragoman_client import Client, MimeType, Options
from service.documents import DocumentOptions, open_document
from service.documents.report import doubt_about
from service.domain.translation import MAX_CHUNK_CHARACTERS
from tests.clients.command_line import dragoman_here
from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess, environment
from tests.tiny_bundle import GOLDEN_TEXTS
from tests.unit.documents.formats.office import word


@pytest.fixture
def translate(server: ServerProcess) -> Any:
    def run(*arguments: Any, stdin: Any = None) -> Any:
        given = () if "--to" in arguments else ("--to", "de")
        options = ("--server", server.address, *given, "--max-output-tokens", "4")
        return dragoman_here("translate", *options, *arguments, stdin=stdin)

    return run


def one_line(run: Any) -> Any:
    """Return the only line of standard error; a traceback or a warning would add more."""
    (line,) = run.stderr.decode().splitlines()
    return line


def bash(command: str) -> "subprocess.CompletedProcess[bytes]":
    arguments: Any = {"capture_output": True, "timeout": patient(30), "cwd": REPOSITORY, "env": environment()}
    return subprocess.run(["bash", "-c", command], check=False, **arguments)


def started(server: ServerProcess, *arguments: str, **streams: Any) -> Any:
    """Start a translation, by default of what is written to its standard input."""
    command = [sys.executable, "-m", "service", "translate", "--server", server.address, "--to", "de", *arguments]
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, cwd=REPOSITORY, env=environment(), **pipes | streams)


def test_the_printed_command_works(server: ServerProcess) -> None:
    ports = (
        f"gRPC on {server.address}, HTTP API and translation page on {server.http_url}/, metrics on http://127.0.0.1:"
    )
    assert server.ready_line.startswith(f"Dragoman is ready: {ports}")
    command = server.ready_line.partition("Try: ")[2].strip()
    run = bash(command)
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.decode().strip()


def test_texts_on_the_command_line(translate: Any) -> None:
    run = translate("Hello", "", "keys")
    assert (run.returncode, run.stderr) == (0, b"")
    first, second, third, rest = run.stdout.decode().split("\n")
    assert first
    assert third
    assert (second, rest) == ("", "")
    assert translate("keys").stdout.decode() == third + "\n"


def test_lines_keep_their_order_their_ends_and_their_gaps(translate: Any) -> None:
    texts = [GOLDEN_TEXTS[number % 3] if number % 5 else "" for number in range(500)]
    translations = dict(zip(GOLDEN_TEXTS, translate(*GOLDEN_TEXTS).stdout.decode().split("\n"), strict=False))
    for end in ("\n", "\r\n"):
        run = translate(stdin=end.join(texts).encode())
        assert (run.returncode, run.stderr) == (0, b"")
        assert run.stdout.decode() == end.join(translations.get(text, "") for text in texts)
    assert translate(stdin=b"").stdout == b""


def test_files_in_and_out(translate: Any, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("Hello\nkeys\n", encoding="utf-8")
    run = translate("--file", str(source), "-o", str(target))
    assert (run.returncode, run.stdout, one_line(run)) == (0, b"", "note: 2 texts were cut off: 2 length.")
    assert target.read_bytes() == translate("Hello", "keys").stdout
    assert translate("-i", str(source), "-o", str(source)).returncode == 2
    assert source.read_text(encoding="utf-8") == "Hello\nkeys\n"


def test_what_to_check_is_told_in_notes_and_in_a_report(translate: Any, tmp_path: Path) -> None:
    source, target, report = tmp_path / "a.po", tmp_path / "b.po", tmp_path / "report.json"
    source.write_text('msgid "station"\nmsgstr ""\n\nmsgid "12"\nmsgstr ""\n')
    cut = ("--max-output-tokens", "1", "--max-length-ratio", "0")
    run = translate("-i", source, "-o", target, "--report", report, *cut)
    assert (run.returncode, one_line(run)) == (0, "note: 1 text was cut off: 1 length.")
    assert target.read_text().startswith('#, fuzzy\nmsgid "station"')
    told = {"place": "line 2", "flags": [], "finish_reason": "length"}
    found = {"num_texts": 1, "flags": {}, "finish_reasons": {"length": 1}, "texts": [told], "left_out": []}
    assert json.loads(report.read_text()) == found
    lines = translate("--report", report, *cut, stdin=b"12\nstation\n")
    assert (lines.returncode, lines.stderr) == (0, b"")
    assert json.loads(report.read_text()) == {**found, "num_texts": 2}


def test_a_line_is_translated_before_the_next_one_is_written(server: ServerProcess) -> None:
    with started(server) as process:
        for _ in range(3):
            process.stdin.write(b"Hello\n")
            process.stdin.flush()
            assert process.stdout.readline().strip()  # bounded by pytest-timeout
        process.stdin.close()
        assert process.wait(patient(30)) == 0


def test_hypotheses_come_with_line_number_and_score(translate: Any) -> None:
    rows = [
        line.split("\t") for line in translate("--num-hypotheses", "3", "Hello", "keys").stdout.decode().splitlines()
    ]
    assert [row[0] for row in rows] == ["1", "1", "1", "2", "2", "2"]
    scores = [float(row[1]) for row in rows[:3]]
    assert scores == sorted(scores, reverse=True)
    assert len({row[2] for row in rows[:3]}) == 3


def test_a_stream_is_the_translation(translate: Any) -> None:
    texts = ("Save the file. Close the window.", "", "Hello\nkeys")
    run = translate("--stream", *texts)
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout == translate(*texts).stdout


def test_words_of_a_stream_come_before_its_end(server: ServerProcess) -> None:
    text = "Save the file before you close the window. " * 40
    with started(server, "--stream", text) as process:
        raw = process.stdout.raw
        parts = list(iter(lambda: raw.read(1 << 20), b""))  # exactly as written; bounded by pytest-timeout
        assert process.wait(patient(30)) == 0
    assert len(parts) > 1
    whole = dragoman_here("translate", "--server", server.address, "--to", "de", text)
    assert b"".join(parts) == whole.stdout


def test_terms_and_formatting_reach_the_server(translate: Any) -> None:
    terms = ("--term", "keys=die = SCHL\u00dcSSEL", "--term", "Hello")
    written = translate(*terms, "--from", "en", "--preserve-formatting", "keys", "Hello", "close!").stdout.decode()
    assert written.startswith("die = SCHL\u00dcSSEL\nHello\n")
    assert written.endswith("!\n")
    whole, sentences = (translate("--split-sentences", how, "Hello. Hello. keys.").stdout for how in ("off", "on"))
    assert whole != sentences


def test_models_as_a_table_and_as_json(server: ServerProcess) -> None:
    table = dragoman_here("models", "--server", server.address)
    assert table.returncode == 0
    heading, row = table.stdout.decode().splitlines()
    assert (heading.split()[0], heading.split()[-1]) == ("MODEL", "LICENCE")
    assert row.split()[:3] == ["tiny", "1", "en-de"]
    assert row.endswith("float32    plain    unknown")
    (model,) = json.loads(dragoman_here("models", "--json", "--server", server.address).stdout)
    assert (model["name"], model["kernels"], model["licence"]) == ("tiny", "plain", "unknown")
    assert model["language_pairs"] == [{"source_language_code": "en", "target_language_code": "de"}]


@pytest.mark.parametrize("command", [("translate", "Hello"), ("detect", "Hello"), ("models",)])
def test_one_variable_names_the_server_of_every_command(server: ServerProcess, command: tuple[str, ...]) -> None:
    to: Any = {"DRAGOMAN_TRANSLATE_TO": "de"}  # as every option
    run = dragoman_here(*command, DRAGOMAN_SERVER=server.address, **to)
    assert (run.returncode, run.stderr) == (0, b"")
    own: Any = {f"DRAGOMAN_{command[0].upper()}_SERVER": server.address}
    assert dragoman_here(*command, DRAGOMAN_SERVER="127.0.0.1:1", **own, **to).returncode == 0
    lost = dragoman_here(*command, DRAGOMAN_SERVER="127.0.0.1:1", **to)
    assert lost.returncode == 69
    assert "no server answers at 127.0.0.1:1" in one_line(lost)
    assert "make serve" in one_line(lost)


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "fragments"),
    [
        (("--to", "fr", "Hello"), None, 2, ["'fr'", "en to de"]),
        (("--from", "en", "--to", "fr", "Hello"), None, 2, ["'fr'", "targets from 'en': de"]),
        (("--model", "huge", "Hello"), None, 2, ["'huge'", "tiny"]),
        (("--beam-size", "9", "Hello"), None, 65, ["beam_size", "9", "1 to 8"]),
        (("--strict", "ok", "keys " * 100), None, 65, ["text 2", "tokens", "up to 64"]),
        (("--strict",), b"ok\n\n" + b"keys " * 100 + b"\n", 65, ["line 3", "tokens", "up to 64"]),
        ((), b"ok\nfine\n\xff\xfe\n", 65, ["line 3", "not UTF-8", "0xff"]),
        ((), b"x" * (3 << 20), 65, ["line 1", "longer than"]),
        (("-i", "/no/such/file"), None, 66, ["/no/such/file", "No such file"]),
        (("-o", "/no/such/file", "Hello"), None, 73, ["/no/such/file"]),
        ((b"\xff".decode("utf-8", "surrogateescape"),), None, 65, ["text 1", "not UTF-8"]),
        (("--from", "en", "--glossary", "none", "Hello"), None, 2, ["no glossary 'none' from en into de"]),
        (("--max-repeats", "-1", "Hello"), None, 65, ["options.max_repeats is -1; allowed: 0 to 100"]),
        (("--format", "html"), b"a\xff", 65, ["the input: ", "not UTF-8"]),
        (("--format", "tsv", "--column", "1"), b"a\xff", 65, ["the input: ", "not UTF-8"]),
    ],
)
def test_what_a_user_gets_wrong_is_one_clear_line(
    translate: Any, arguments: Any, stdin: Any, code: int, fragments: Any
) -> None:
    run = translate(*arguments, stdin=stdin)
    line = one_line(run)
    assert run.returncode == code, line
    assert line.startswith("dragoman: ")
    for fragment in fragments:
        assert fragment in line


def test_what_came_before_a_bad_line_is_translated(translate: Any) -> None:
    run = translate(stdin=b"Hello\nkeys\n\xff\nHello\n")
    assert run.stdout == translate("Hello", "keys").stdout


def test_a_wrong_command_line_is_usage() -> None:
    to = ("translate", "--to", "de")
    for arguments in (("translate",), (*to, "--file", "x", "text"), (*to, "--no"), ("detect", "-i", "x", "a"), ("no",)):
        run = dragoman_here(*arguments)
        assert run.returncode == 2
        assert "Usage:" in run.stderr.decode()


def test_a_closed_pipe_is_quiet(server: ServerProcess) -> None:
    command = (
        f"seq 1 20000 | {sys.executable} -m service translate --server {server.address} --to de --max-output-tokens 2"
        " | head -n 1; exit ${PIPESTATUS[1]}"
    )
    run = bash(command)
    assert (run.returncode, run.stderr) == (141, b"")
    assert run.stdout.count(b"\n") == 1


def test_ctrl_c_is_quiet_and_130(server: ServerProcess) -> None:
    with started(server) as process:
        process.stdin.write(b"Hello\n")
        process.stdin.flush()
        assert process.stdout.readline()  # it has started and waits for the next line
        process.send_signal(signal.SIGINT)
        assert process.wait(patient(30)) == 130
        assert process.stderr.read().strip() == b""  # a line feed, so that the prompt starts on a new line


def read_terminal(terminal: int) -> str:
    """Return all that was written to the other end, which is closed; it may come in parts."""
    parts: list[bytes] = []
    with contextlib.suppress(OSError):  # there is no more
        while part := os.read(terminal, 65536):
            parts.append(part)
    return b"".join(parts).decode()


def test_a_line_longer_than_a_call_is_cut_at_sentences_and_joined(translate: Any, tmp_path: Path) -> None:
    longer = "Hello. " * (MAX_CHUNK_CHARACTERS // 7 + 1) + "keys"
    done = translate(stdin=f"{longer}\nHello\n".encode())
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.decode().splitlines()
    assert second == translate("Hello").stdout.decode().strip()
    assert first.endswith(translate("keys").stdout.decode().strip())
    assert first.count(".") == longer.count(".") or len(first) > len(second) * 1000


def test_a_failure_leaves_outputs_as_they_were(translate: Any, tmp_path: Path) -> None:
    kept, report = tmp_path / "kept.txt", tmp_path / "report.json"
    kept.write_text("kept")
    (tmp_path / "in.md").write_text("Hello")
    for given in (("Hello",), ("-i", tmp_path / "in.md")):
        for output in (tmp_path / "new.txt", kept):
            assert translate("--to", "xx", "-o", output, "--report", report, *given).returncode == 2
    assert kept.read_text() == "kept"
    assert {each.name for each in tmp_path.iterdir()} == {"kept.txt", "in.md"}
    assert translate("-o", kept, "--report", report, "Hello").returncode == 0
    assert kept.read_bytes() == translate("Hello").stdout
    assert translate("-o", kept, stdin=b"").returncode == 0
    assert kept.read_bytes() == b""


def test_a_port_for_http_is_told_from_a_server_that_is_not_there(server: ServerProcess) -> None:
    for url in (server.http_url, server.ready_line.partition("metrics on ")[2].partition("/metrics")[0]):
        line = one_line(dragoman_here("models", "--server", url.removeprefix("http://")))
        assert line.endswith("is a port for HTTP; give the server's port for gRPC, by default 50051.")


def test_a_terminal_is_told_that_it_is_read(server: ServerProcess) -> None:
    terminal, other_end = pty.openpty()
    with started(server, stdin=other_end) as process:
        assert process.stderr.readline() == b"Reading from the terminal; end with Ctrl-D on a line of its own.\n"
        os.write(terminal, b"Hello\n\x04")
        assert process.wait(patient(30)) == 0
    os.close(other_end)
    os.close(terminal)


@pytest.mark.parametrize("watched", [True, False])
def test_progress_is_shown_to_a_terminal_only(server: ServerProcess, tmp_path: Path, watched: bool) -> None:
    source = tmp_path / "in.txt"
    source.write_text("Hello\n" * 50, encoding="utf-8")
    terminal, other_end = pty.openpty()
    termios.tcsetwinsize(other_end, (24, 100))
    streams = {"stderr": other_end} if watched else {}
    with started(server, "-i", str(source), "--max-output-tokens", "2", **streams) as process:
        out, errors = process.communicate(timeout=patient(30))
    os.close(other_end)
    shown = read_terminal(terminal) if watched else errors.decode()
    os.close(terminal)
    assert process.returncode == 0
    assert out.count(b"\n") == 50
    assert bool(re.search(r"50/50 \[\d+:\d+<\d+:\d+, [\d.]+ lines/s\]", shown)) == watched
    assert watched or shown == "note: 50 texts were cut off: 50 length.\n"


# --- documents, whose formats are tested in tests/unit/documents


CUT = ("--from", "en", "--to", "de", "--max-output-tokens", "6")
CATALOGUE = b'msgid "keys"\nmsgstr ""\n\nmsgid "window"\nmsgstr "Fenster"\n'
HTML = b"<!doctype html>\r\n<p class=a>Hello</p>\n<p title='keys'><!-- Hello --><i>keys</i></p>"


@pytest.mark.parametrize(
    ("name", "source", "arguments", "fields"),
    [
        ("t.csv", b"id;text\r\n1;Hello\r\n", ("--column", "text"), {"columns": ("text",)}),
        ("t.tsv", b"1\tHello\tx\r\n\r\n2\tkeys\t", ("--column", "2"), {"columns": ("2",)}),
        ("t.tsv", b"1\t2\nHello\tkeys", ("--header", "--column", "1"), {"columns": ("1",), "has_header": True}),
        ("t.HTM", HTML, (), {}),
        ("t.po", CATALOGUE, (), {}),
        ("t.po", CATALOGUE, ("--retranslate",), {"has_all": True}),
        ("t.docx", word("<w:p><w:r><w:t>Hello</w:t></w:r></w:p>"), (), {}),
        ("t.md", "".join(f"Hello\n\n`{number}` *keys*\n\n" for number in range(40)).encode(), (), {}),
        ("t.yml", b"a: Hello\nid: keys\n", ("--key", "id", "--skip-key", "a"), {"keys": ("id",), "skip_keys": ("a",)}),
        ("t.txt", "Hello é\n".encode("utf-16-le"), ("--encoding", "utf-16-le"), {"encoding": "utf-16-le"}),
    ],
)  # fmt: skip
def test_the_texts_of_a_document_are_translated(
    server: ServerProcess, tmp_path: Path, name: str, source: bytes, arguments: tuple[str, ...], fields: dict[str, Any]
) -> None:
    given, made = tmp_path / name, tmp_path / f"out-{name}"
    given.write_bytes(source)
    run = dragoman_here("translate", "--server", server.address, *CUT, "-i", str(given), "-o", str(made), *arguments)
    assert (run.returncode, run.stdout) == (0, b"")
    document = open_document(name, source, DocumentOptions(target="de", **fields))
    options = Options(max_output_tokens=6)
    with Client(server.address) as client:
        found = [
            client.translate([each.text], "en", "de", options=options, mime_type=MimeType(each.mime_type.value))[0]
            for each in document.texts
        ]
    doubts = {number: doubt for number, each in enumerate(found) if (doubt := doubt_about(each))}
    assert made.read_bytes() == document.written([each.text for each in found], doubts) != source


def test_a_pipe_needs_the_name_of_the_format(server: ServerProcess) -> None:
    options = ("translate", "--server", server.address, *CUT, "--format")
    source = b"1\n00:00:01,000 --> 00:00:02,500\nHello\n"
    run = dragoman_here(*options, "srt", stdin=source)
    assert (run.returncode, run.stderr) == (0, b"note: 1 text was cut off: 1 length.\n")
    assert run.stdout.startswith(source.partition(b"Hello")[0])
    both = dragoman_here(*options, "html", "<p>Hello</p>", "<b>keys</b>")
    assert re.fullmatch("<p>.*</p>\n<b>.*</b>\n", both.stdout.decode())
    assert both.stderr == b"note: 2 texts were cut off: 2 length.\n"
    cells = dragoman_here(*options, "tsv", "--column", "1", "--column", "3", stdin=b"Hello\tkeys\twindow").stdout
    assert [cell in (b"Hello", b"keys", b"window") for cell in cells.split(b"\t")] == [False, True, False]
    source = b'<TS><message numerus="yes"><source>a</source><translation/></message></TS>'
    kept = dragoman_here(*options, "ts", stdin=source)
    assert (kept.returncode, kept.stdout) == (0, source)
    assert kept.stderr == b"note: 1 message of an unusual form or length was left as it is.\n"


def test_a_broken_document_ends_the_command(server: ServerProcess, tmp_path: Path) -> None:
    path = tmp_path / "t.docx"
    path.write_bytes(b"Hello")
    run = dragoman_here("translate", "--server", server.address, *CUT, "-i", str(path))
    assert (run.returncode, run.stdout) == (65, b"")
    assert one_line(run) == f"dragoman: {path}: it is not a ZIP archive, as a .docx must be: File is not a zip file."


def test_a_text_that_the_server_refuses_is_named_by_its_place(server: ServerProcess) -> None:
    """A plain one is cut where it is too long for a call, one with markup is not."""
    source = f"Hello\n\n{'keys ' * 14_000}\n\na *b* {'window ' * 20_000}.".encode()
    run = dragoman_here("translate", "--server", server.address, *CUT, "--format", "md", stdin=source)
    assert run.returncode == 65
    message, note = run.stderr.decode().splitlines()
    assert re.match(r"dragoman: texts have 14\d{4} characters in total; allowed: 131072 per call\.", message)
    assert note == "dragoman: This is about the text at line 5."
