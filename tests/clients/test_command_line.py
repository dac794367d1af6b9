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

from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess, dragoman, environment, free_port
from tests.tiny_bundle import GOLDEN_TEXTS


@pytest.fixture
def translate(server: ServerProcess) -> Any:
    def run(*arguments: Any, stdin: Any = None, **settings: Any) -> Any:
        given = () if "--to" in arguments else ("--to", "de")
        options = ("--server", server.address, *given, "--max-output-tokens", "4")
        return dragoman("translate", *options, *arguments, stdin=stdin, **settings)

    return run


def one_line(run: Any) -> Any:
    """Return the only line of standard error; a traceback or a warning would add more."""
    (line,) = run.stderr.decode().splitlines()
    return line


def bash(command: str) -> "subprocess.CompletedProcess[bytes]":
    arguments: Any = {"capture_output": True, "timeout": patient(30), "cwd": REPOSITORY, "env": environment()}
    return subprocess.run(["bash", "-c", command], check=False, **arguments)


def started(server: ServerProcess) -> Any:
    """Start a translation of what is written to its standard input."""
    command = [sys.executable, "-m", "service", "translate", "--server", server.address, "--to", "de"]
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, cwd=REPOSITORY, env=environment(), **pipes)


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
    run = translate(stdin="\n".join(texts).encode())
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.decode() == "\n".join(translations.get(text, "") for text in texts)


def test_crlf_stays_crlf(translate: Any) -> None:
    run = translate(stdin=b"Hello\r\n\r\nkeys\n")
    assert run.stdout.count(b"\r\n") == 2
    assert run.stdout.endswith(b"\n")


def test_no_input_gives_no_output(translate: Any) -> None:
    run = translate(stdin=b"")
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")


def test_files_in_and_out(translate: Any, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("Hello\nkeys\n", encoding="utf-8")
    run = translate("--file", str(source), "-o", str(target))
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")
    assert target.read_bytes() == translate("Hello", "keys").stdout


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
    command = [sys.executable, "-m", "service", "translate", "--server", server.address, "--to", "de"]
    text = "Save the file before you close the window. " * 40
    with subprocess.Popen(
        [*command, "--stream", text], stdout=subprocess.PIPE, cwd=REPOSITORY, env=environment()
    ) as process:
        assert process.stdout is not None
        raw: Any = process.stdout.raw  # type: ignore[attr-defined]
        parts = list(iter(lambda: raw.read(1 << 20), b""))  # exactly as written; bounded by pytest-timeout
        assert process.wait(patient(30)) == 0
    assert len(parts) > 1
    assert b"".join(parts) == dragoman("translate", "--server", server.address, "--to", "de", text).stdout


def test_terms_and_formatting_reach_the_server(translate: Any) -> None:
    terms = ("--term", "keys=die = SCHL\u00dcSSEL", "--term", "Hello")
    written = translate(*terms, "--from", "en", "--preserve-formatting", "keys", "Hello", "close!").stdout.decode()
    assert written.startswith("die = SCHL\u00dcSSEL\nHello\n")
    assert written.endswith("!\n")
    whole, sentences = (translate("--split-sentences", how, "Hello. Hello. keys.").stdout for how in ("off", "on"))
    assert whole != sentences


def test_models_as_a_table_and_as_json(server: ServerProcess) -> None:
    table = dragoman("models", "--server", server.address)
    assert table.returncode == 0
    heading, row = table.stdout.decode().splitlines()
    assert (heading.split()[0], heading.split()[-1]) == ("MODEL", "LICENCE")
    assert row.split()[:3] == ["tiny", "1", "en-de"]
    assert row.endswith("float32    plain    unknown")
    (model,) = json.loads(dragoman("models", "--json", "--server", server.address).stdout)
    assert (model["name"], model["kernels"], model["licence"]) == ("tiny", "plain", "unknown")
    assert model["language_pairs"] == [{"source_language_code": "en", "target_language_code": "de"}]


def test_options_can_come_from_the_environment(server: ServerProcess) -> None:
    run = dragoman("translate", "Hello", DRAGOMAN_TRANSLATE_TO="de", DRAGOMAN_TRANSLATE_SERVER=server.address)
    assert (run.returncode, run.stderr) == (0, b"")


@pytest.mark.parametrize("command", [("translate", "--to", "de", "Hello"), ("detect", "Hello"), ("models",)])
def test_one_variable_names_the_server_of_every_command(server: ServerProcess, command: tuple[str, ...]) -> None:
    run = dragoman(*command, DRAGOMAN_SERVER=server.address)
    assert (run.returncode, run.stderr) == (0, b"")
    own: Any = {f"DRAGOMAN_{command[0].upper()}_SERVER": server.address}
    assert dragoman(*command, DRAGOMAN_SERVER="127.0.0.1:1", **own).returncode == 0  # the command's own comes first
    lost = dragoman(*command, DRAGOMAN_SERVER="127.0.0.1:1")
    assert lost.returncode == 69
    assert "127.0.0.1:1" in one_line(lost)


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "fragments"),
    [
        (("--to", "fr", "Hello"), None, 2, ["'fr'", "en to de"]),
        (("--from", "en", "--to", "fr", "Hello"), None, 2, ["'fr'", "it can be de"]),
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
        (("--max-repeats", "-1", "Hello"), None, 65, ["options.max_repeats is -1; allowed is 0 to 100"]),
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


def test_the_input_is_never_overwritten(translate: Any, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("Hello\n", encoding="utf-8")
    run = translate("-i", str(path), "-o", str(path))
    assert run.returncode == 2
    assert path.read_text(encoding="utf-8") == "Hello\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("translate",),
        ("translate", "--to", "de", "--file", "x", "text"),
        ("translate", "--to", "de", "--no"),
        ("nope",),
    ],
)
def test_a_wrong_command_line_is_usage(arguments: Any) -> None:
    run = dragoman(*arguments)
    assert run.returncode == 2
    assert "Usage:" in run.stderr.decode()


@pytest.mark.parametrize("arguments", [("translate", "--to", "de", "Hello"), ("models",)])
def test_without_a_server_it_is_one_line_and_69(arguments: Any) -> None:
    run = dragoman(*arguments, "--server", f"127.0.0.1:{free_port()}")
    assert run.returncode == 69
    assert "no server answers at 127.0.0.1:" in one_line(run)
    assert "make serve" in one_line(run)


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


@pytest.mark.parametrize("watched", [True, False])
def test_progress_is_shown_to_a_terminal_only(server: ServerProcess, tmp_path: Path, watched: bool) -> None:
    source = tmp_path / "in.txt"
    source.write_text("Hello\n" * 50, encoding="utf-8")
    arguments = ["--server", server.address, "--to", "de", "-i", str(source), "--max-output-tokens", "2"]
    terminal, other_end = pty.openpty()
    termios.tcsetwinsize(other_end, (24, 100))
    with subprocess.Popen(
        [sys.executable, "-m", "service", "translate", *arguments],
        stdout=subprocess.PIPE,
        stderr=other_end if watched else subprocess.PIPE,
        cwd=REPOSITORY,
        env=environment(),
    ) as process:
        out, errors = process.communicate(timeout=patient(30))
    os.close(other_end)
    shown = read_terminal(terminal) if watched else errors.decode()
    os.close(terminal)
    assert process.returncode == 0
    assert out.count(b"\n") == 50
    assert bool(re.search(r"50/50 \[\d+:\d+<\d+:\d+, [\d.]+ lines/s\]", shown)) == watched
    assert watched or shown == ""
