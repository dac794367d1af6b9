"""`dragoman translate` with files of several formats, its streams, and interrupted runs that are resumed."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess, distinct_texts, dragoman, environment, eventually

OPTIONS = ("--from", "en", "--to", "de", "--max-output-tokens", "6")


@pytest.fixture
def translate(server: ServerProcess) -> Any:
    def run(*arguments: Any, stdin: Any = None) -> Any:
        return dragoman("translate", "--server", server.address, *OPTIONS, *map(str, arguments), stdin=stdin)

    return run


def output_of(run: Any, told: bytes = b"") -> str:
    assert (run.returncode, run.stderr) == (0, told)
    written: bytes = run.stdout
    return written.decode()


def started(server: ServerProcess, *arguments: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "service", "translate", "--server", server.address, *OPTIONS, *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=REPOSITORY, env=environment(), **pipes)  # type: ignore[call-overload, no-any-return]


def feed(process: "subprocess.Popen[bytes]", lines: list[str], output: Path, num_lines: int) -> None:
    """Write lines, and wait until the output has the given number of them."""
    assert process.stdin is not None
    process.stdin.write("".join(lines).encode())
    process.stdin.flush()
    eventually(lambda: output.exists() and output.read_bytes().count(b"\n") >= num_lines)


@pytest.fixture
def lines() -> list[str]:
    return [f"{text}\n" if number % 7 else "\r\n" for number, text in enumerate(distinct_texts(200))]


def test_a_run_that_was_killed_goes_on_where_it_was(
    server: ServerProcess, translate: Any, tmp_path: Path, lines: list[str]
) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("".join(lines), encoding="utf-8", newline="")
    whole = output_of(translate("--file", source))
    with started(server, "--output", str(target)) as process:
        feed(process, lines[:90], target, 90)
        process.kill()
    with target.open("ab") as stream:
        stream.write("half a lin\u00e9".encode()[:-1])  # as left by an incomplete write
    for _ in range(2):  # nothing is left to do the second time
        assert output_of(translate("--file", source, "-o", target, "--resume")) == ""
        assert target.read_bytes().decode() == whole


def test_after_ctrl_c_it_says_how_to_go_on(server: ServerProcess, tmp_path: Path, lines: list[str]) -> None:
    target = tmp_path / "out.txt"
    with started(server, "--output", str(target)) as process:
        feed(process, lines[:90], target, 90)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=patient(30))[1].decode()
    assert process.returncode == 130
    # The signal may arrive between writing and counting.
    told = rf"\ndragoman: {target} has \d+ lines; run the same command with --resume to continue\.\n"
    assert re.fullmatch(told, errors)


def test_a_run_whose_server_went_away_goes_on_with_another(
    server: ServerProcess, translate: Any, tiny_models: Path, tmp_path: Path, lines: list[str]
) -> None:
    target = tmp_path / "out.txt"
    with (
        ServerProcess(tiny_models) as gone,
        started(gone, "--output", str(target)) as process,
    ):
        feed(process, lines[:40], target, 40)
        gone.kill()
        errors = process.communicate("".join(lines[40:]).encode(), timeout=patient(30))[1].decode().splitlines()
    assert process.returncode == 69
    assert "no server answers" in errors[0]
    assert errors[1] == f"dragoman: {target} has 40 lines; run the same command with --resume to continue."
    everything = "".join(lines).encode()
    assert output_of(translate("-o", target, "--resume", stdin=everything)) == ""
    assert target.read_bytes().decode() == output_of(translate(stdin=everything))


def test_a_bad_line_of_json_can_be_mended(translate: Any, tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    good = [
        f'{{"id": 1.0e{number}, "text": "{text}", "tags": ["a"]}}' for number, text in enumerate(distinct_texts(60))
    ]
    options = ("-i", source, "-o", target, "--field", "text", "--target-field", "de")
    source.write_text("\n".join([*good[:50], good[50].replace(":", "="), *good[51:]]), encoding="utf-8")
    run = translate(*options)
    assert run.returncode == 65
    message, hint = run.stderr.decode().splitlines()
    assert hint == f"dragoman: {target} has 50 lines; run the same command with --resume to continue."
    assert message.startswith("dragoman: line 51 is not JSON: ")
    source.write_text("\n".join(good), encoding="utf-8")
    assert output_of(translate(*options, "--resume")) == ""
    written = target.read_text(encoding="utf-8").split("\n")
    translations = output_of(translate(stdin="\n".join(json.loads(line)["text"] for line in good).encode())).split("\n")
    assert [line.rpartition(', "de": ')[0] for line in written] == [line.removesuffix("}") for line in good]
    assert [json.loads(line)["de"] for line in written] == translations


def test_a_column_is_replaced_or_appended(translate: Any, tmp_path: Path) -> None:
    source = tmp_path / "in.tsv"
    source.write_bytes(b"1\tHello\tx\r\n\r\n2\tkeys\t")
    hello, keys = output_of(translate("Hello", "keys")).splitlines()
    assert output_of(translate("-i", source, "--column", 2)) == f"1\t{hello}\tx\r\n\r\n2\t{keys}\t"
    appended = translate("--format", "tsv", "--column", 2, "--append", stdin=source.read_bytes())
    assert output_of(appended) == f"1\tHello\tx\t{hello}\r\n\r\n2\tkeys\t\t{keys}"


def test_an_html_file_is_one_document(translate: Any, tmp_path: Path) -> None:
    source = tmp_path / "in.HTM"
    source.write_bytes(b"<!doctype html>\r\n<p class=a>Hello</p>\n<p title='keys'><!-- Hello --><i>keys</i></p>")
    hello, keys = output_of(translate("Hello", "keys")).splitlines()
    note = b"note: 1 text was cut off: 1 length.\n"  # by the limit of OPTIONS
    from_file = output_of(translate("--file", source), note)
    expected = source.read_text(encoding="utf-8").replace(">Hello<", f">{hello}<").replace(">keys<", f">{keys}<")
    assert from_file.startswith("<!doctype html>\r\n<p class=a>")
    assert "".join(from_file.split()) == "".join(
        expected.split()
    )  # the model's translations have surrounding white space
    assert output_of(translate("--format", "html", stdin=source.read_bytes()), note) == from_file
    both = translate("--format", "html", "<p>Hello</p>", "<b>keys</b>")
    assert output_of(both, b"note: 2 texts were cut off: 2 length.\n").startswith(f"<p>{hello}</p>\n")


def test_a_stream_is_the_translation(translate: Any) -> None:
    texts = ("Save the file. Close the window.", "", "Hello\nkeys")
    assert output_of(translate("--stream", *texts)) == output_of(translate(*texts))


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
    written = output_of(translate(*terms, "--preserve-formatting", "keys", "Hello", "close!"))
    assert written.startswith("die = SCHL\u00dcSSEL\nHello\n")
    assert written.endswith("!\n")
    whole, sentences = (translate("--split-sentences", how, "Hello. Hello. keys.") for how in ("off", "on"))
    assert output_of(whole) != output_of(sentences)


@pytest.mark.parametrize(
    ("arguments", "code", "fragment"),
    [
        (("--glossary", "none", "Hello"), 2, "no glossary 'none' from en into de"),
        (("--max-repeats", "-1", "Hello"), 65, "options.max_repeats is -1; allowed is 0 to 100"),
        (("--format", "html"), 65, "the document is not UTF-8 (byte 2 is 0xff)"),
        (("--format", "tsv", "--column", "2"), 65, "line 1 is not UTF-8"),
    ],
)
def test_what_a_user_gets_wrong(translate: Any, arguments: Any, code: int, fragment: str) -> None:
    run = translate(*arguments, stdin=b"a\xff")
    assert run.returncode == code
    assert fragment in run.stderr.decode().splitlines()[-1]
    assert run.stdout == b""


def test_an_output_of_another_input_is_left_alone(translate: Any, tmp_path: Path) -> None:
    target = tmp_path / "notes.txt"
    target.write_bytes(b"1\n2\n3\nnot yet")
    run = translate("--resume", "-o", target, stdin=b"Hello\n")
    assert (run.returncode, target.read_bytes()) == (65, b"1\n2\n3\nnot yet")
    assert "has 3 lines and the input only 1" in run.stderr.decode()
