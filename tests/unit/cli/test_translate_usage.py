"""Command lines of `dragoman translate` that are rejected before any request is sent."""

import pytest

from service.cli.main import run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--term", " =x", "Hello"), "' =x' is not a term; give SOURCE=TARGET"),
        (("--file", "x.tsv"), "--format tsv needs --column NAME"),
        (("--file", "x.ndjson"), "the ending '.ndjson' is not known"),
        (("--file", "x.jsonl"), "JSON lines are for 'dragoman bulk'"),
        (("--format", "csv", "--column", "a", "Hello"), "--format csv is for files and pipes"),
        (("--encoding", "latin-1", "Hello"), "options of documents are for files and pipes"),
        (("--encoding", "latin-1", "--num-hypotheses", "2"), "--num-hypotheses prints a table of its own"),
        (("--format", "html", "--num-hypotheses", "2", "Hello"), "it can't be used with --format html"),
        (("--stream",), "--stream is for texts on the command line"),
        (("--stream", "--report", "r.json", "Hello"), "--report is for whole translations, without --stream"),
        (("--file", "x.pdf"), "the ending '.pdf' is not known; known are .arb, .csv, .docm, "),
        (("--file", "x.csv"), "--format csv needs --column NAME"),
        (("--file", "x.tsv", "--header"), "--format tsv needs --column"),
        (("--file", "x.md", "--header"), "--header is for --format tsv and csv, and this is md"),
        (
            ("--file", "x.po", "--encoding", "latin-1"),
            "--encoding is for --format text, tsv, csv, md, srt, vtt, and this",
        ),
        (("--file", "x.srt", "--encoding", "rot13"), "'rot13' is not the name of an encoding, such as windows-1252"),
        (("--file", "x.md", "--attributes"), "--attributes is for --format html, and this is md"),
        (("--file", "x.md", "--retranslate"), "--retranslate is for --format po and xliff, and this is md"),
        (("--file", "x.csv", "--column", "a", "--front-matter", "b"), "--front-matter is for --format md and mdx"),
        (("--file", "x.md", "--column", "1"), "--column is for --format tsv and csv, and this is md"),
        (("--file", "x.docx", "--num-hypotheses", "2"), "it can't be used with --format docx"),
        (("--format", "srt", "Hello"), "--format srt is for files and pipes"),
        (("--server", "a:1,b:2", "Hello"), "'--server': several servers must be given as IP addresses"),
    ],
)
def test_usage_errors_say_what_to_do(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert run(["translate", "--from", "en", "--to", "de", *arguments]) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert message in errors
