"""`dragoman detect`, and `dragoman translate` without --from, as a user runs them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.command_line import dragoman_here
from tests.servers import ServerProcess
from tests.tiny_bundle import write_tiny_bundle


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = tmp_path_factory.mktemp("models")
    write_tiny_bundle(models / "many" / "1", "many", seed=9, among="eng_Latn fra_Latn hin_Deva")
    with ServerProcess(models) as process:
        yield process


@pytest.fixture
def run(server: ServerProcess) -> Any:
    def run(command: str, *arguments: Any, stdin: Any = None) -> Any:
        return dragoman_here(command, "--server", server.address, *arguments, stdin=stdin)

    return run


def rows(run: Any) -> list[list[str]]:
    assert (run.returncode, run.stderr) == (0, b"")
    return [line.split("\t") for line in run.stdout.decode().split("\n")]


def test_texts_on_the_command_line(run: Any) -> None:
    *told, end = rows(run("detect", "Where is the train station?", "Wo ist hier der Bahnhof?", "42"))
    assert end == [""]
    assert [row[0] for row in told] == ["en", "de", "und"]
    assert [row[2] for row in told] == ["Where is the train station?", "Wo ist hier der Bahnhof?", "42"]
    assert float(told[0][1]) > 0.9
    assert told[2][1] == "0.000"


def test_lines_of_a_pipe_and_of_a_file(run: Any, tmp_path: Path) -> None:
    lines = ["Où se trouve la gare ?", "", "a\tb", "स्टेशन कहाँ है?"] * 50
    path = tmp_path / "lines"
    path.write_bytes("\r\n".join(lines).encode())
    from_pipe, from_file = run("detect", stdin=path.read_bytes()), run("detect", "--file", str(path))
    assert from_pipe.stdout == from_file.stdout
    told = rows(from_pipe)
    assert [row[0] for row in told[:4]] == ["fr", "und", told[2][0], "hi"]
    assert ["\t".join(row[2:]).removesuffix("\r") for row in told] == lines


def test_what_a_user_gets_wrong(run: Any) -> None:
    tried = run("detect", stdin=b"ok\n\xff\n")
    assert (tried.returncode, b"line 2 is not UTF-8" in tried.stderr) == (65, True)
    tried = run("detect", "-i", "/no/such/file")
    assert (tried.returncode, b"can't read /no/such/file" in tried.stderr) == (66, True)
    tried = run("translate", "--to", "de", "Hello")
    assert tried.returncode == 2
    assert "no model here translates into 'de'; served: among en, fr, hi" in tried.stderr.decode()


def test_without_from_each_line_is_translated_from_its_own_language(run: Any) -> None:
    english, french = "Where is the train station?", "Où se trouve la gare ?"
    options = ("translate", "--to", "hi", "--max-output-tokens", "6")
    both = run(*options, english, "12", french)
    assert (both.returncode, both.stderr) == (0, b"")
    expected = [run(*options, "--from", source, text).stdout for source, text in (("en", english), ("fr-CA", french))]
    assert expected[0] != expected[1]
    assert both.stdout == expected[0] + b"12\n" + expected[1]


def test_lines_of_the_target_language_and_of_others_come_back_unchanged_and_are_counted(run: Any) -> None:
    lines = ["Where is the train station?", "", "สวัสดีครับ", "स्टेशन कहाँ है?"]
    options = ("translate", "--to", "hi", "--max-output-tokens", "6")
    kept = run(*options, stdin="\n".join(lines).encode())
    assert kept.returncode == 0
    first, *others = kept.stdout.decode().split("\n")
    assert first != lines[0]
    assert others == lines[1:]
    (note,) = kept.stderr.decode().splitlines()
    assert note.startswith("note: 2 lines are unchanged, being in 'hi' already or in a language that is not translated")
    streamed = run(*options, "--stream", lines[3])
    assert streamed.stdout.decode() == f"{lines[3]}\n"
    assert streamed.stderr.decode().startswith("note: 1 text is unchanged, ")
    given = run(*options, "--from", "hi", lines[3])
    assert (given.stdout.decode(), given.stderr) == (f"{lines[3]}\n", b"")  # as was asked for


def test_a_document_is_in_one_language(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    command = ("translate", "--to", "fr", "--max-output-tokens", "6", "-i", path)
    path.write_text("# Où se trouve la gare ?\n\nLe train part à huit heures.\n\nTaxi\n", encoding="utf-8")
    kept = run(*command)
    assert (kept.returncode, kept.stdout) == (0, path.read_bytes())
    assert kept.stderr.decode() == "note: 3 texts were flagged: 3 target_language.\n"
    path.write_text("# Where is the train station?\n\nThe train leaves at eight.\n\nTaxi\n", encoding="utf-8")
    assert run(*command).stdout == run(*command, "--from", "en").stdout != path.read_bytes()
    path.write_text("Wo ist hier der Bahnhof?\n", encoding="utf-8")
    refused = run(*command)
    assert refused.returncode == 65
    assert refused.stderr.decode().startswith("dragoman: the document seems to be in 'de'; languages that can be trans")
