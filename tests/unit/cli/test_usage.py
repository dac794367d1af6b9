"""Command lines that are refused before a server is asked or a model loaded, and exit codes."""

from pathlib import Path
from typing import cast

import click
import grpc
import pytest
from click.testing import CliRunner

from export.cli import main as export_commands
from service.cli.errors import OF_STATUS, CommandError, ExitCode
from service.cli.main import dragoman, failure_of, run
from service.cli.options import API_KEY
from service.engine.runtime.kernels import PATH


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--term", " =x", "Hello"), "' =x' is not a term; give SOURCE=TARGET"),
        (("--file", "x.tsv"), "--format tsv needs --column NAME"),
        (("--file", "x.ndjson"), "the ending '.ndjson' is not supported"),
        (("--file", "x.jsonl"), "JSON lines are for 'dragoman bulk'"),
        (("--format", "csv", "--column", "a", "Hello"), "--format csv is for files and pipes"),
        (("--encoding", "latin-1", "Hello"), "options of documents are for files and pipes"),
        (("--encoding", "latin-1", "--num-hypotheses", "2"), "--num-hypotheses prints a table of its own"),
        (("--format", "html", "--num-hypotheses", "2", "Hello"), "it can't be used with --format html"),
        (("--stream",), "--stream is for texts on the command line"),
        (("--stream", "--report", "r.json", "Hello"), "--report is for whole translations, without --stream"),
        (("--file", "x.exe"), "the ending '.exe' is not supported; supported: .arb, .ass, .csv, "),
        (("--file", "x.pdf"), "the ending '.pdf' is not supported (convert it to .docx); supported: "),
        (
            ("--file", "x.php"),
            "'.php' is not supported (try it as .html, on the command line with --format html); supported: ",
        ),
        (("--file", "x.csv"), "--format csv needs --column NAME"),
        (("--file", "x.tsv", "--header"), "--format tsv needs --column"),
        (("--file", "x.md", "--header"), "--header is for --format tsv and csv, and this is md"),
        (
            ("--file", "x.po", "--encoding", "latin-1"),
            "--encoding is for --format text, tsv, csv, md, rst, srt, vtt, ass, and this",
        ),
        (("--file", "x.srt", "--encoding", "rot13"), "'rot13' is not the name of an encoding, such as windows-1252"),
        (("--file", "x.md", "--attributes"), "--attributes is for --format html and xhtml, and this is md"),
        (
            ("--file", "x.md", "--retranslate"),
            "--retranslate is for --format po, xliff, tmx, ts, xcstrings, and",
        ),
        (("--file", "x.csv", "--column", "a", "--front-matter", "b"), "--front-matter is for --format md and mdx"),
        (
            ("--file", "x.md", "--skip-key", "a"),
            "--skip-key is for --format json, arb, yaml,",
        ),
        (("--file", "x.md", "--column", "1"), "--column is for --format tsv and csv, and this is md"),
        (("--file", "x.docx", "--num-hypotheses", "2"), "it can't be used with --format docx"),
        (("--format", "srt", "Hello"), "--format srt is for files and pipes"),
        (("--server", "a:1,b:2", "Hello"), "'--server': several servers must be given as IP addresses"),
    ],
)
def test_translate_says_what_to_do(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert run(["translate", "--from", "en", "--to", "de", *arguments]) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert message in errors


def test_bulk_without_the_kernels_library_ends_in_a_line(
    tiny_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    monkeypatch.setenv(PATH, str(tmp_path / "none.so"))
    given = [str(tmp_path / "in.txt"), str(tmp_path / "out.txt"), "--to", "de", "--models", str(tiny_models)]
    result = CliRunner().invoke(dragoman, ["bulk", *given])
    assert result.exception is not None
    failure = failure_of(cast(Exception, result.exception))
    assert failure is not None, result.exception
    code, line = failure
    assert code == ExitCode.CONFIG
    assert "none.so" in line
    assert line.endswith("build it with 'make serve'")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "give --to, or a column with --to-column"),
        (("--to", "de", "--shard", "2/2"), "indices go from 0 to 1"),
        (("--to", "de", "--shard", "/2"), "none of JOB_COMPLETION_INDEX, SLURM_ARRAY_TASK_ID"),
        (("--to", "de", "--shard", "0/2", "--force"), "delete the parts of other shards"),
        (("--to", "de", "--server", "127.0.0.1:1", "--models", "x"), "--models is for models in this process"),
        (("--to", "de", "--escape-formulas"), "is for csv and tsv; the output is text"),
    ],
)
def test_bulk_says_what_is_wrong_and_writes_nothing(
    arguments: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "in.txt").write_text("a\n")
    result = CliRunner().invoke(dragoman, ["bulk", str(tmp_path / "in.txt"), str(tmp_path / "out.txt"), *arguments])
    assert (result.exit_code, told in result.output) == (ExitCode.USAGE, True), result.output
    assert [each.name for each in tmp_path.iterdir()] == ["in.txt"]


def test_bulk_without_models_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("a\n")
    result = CliRunner().invoke(dragoman, ["bulk", "in.txt", "out.txt", "--to", "de"])
    assert str(result.exception).startswith("models is not a directory; give one of bundles with --models")
    assert getattr(result.exception, "__notes__", ()) == [
        "This command translates with models in this process (--models), or with a server (--server)."
    ]
    assert not Path("out.txt").exists()


@pytest.mark.parametrize("group", [dragoman, export_commands], ids=["dragoman", "export"])
def test_the_list_of_commands_is_not_cut(group: click.Group) -> None:
    shown = CliRunner().invoke(group, ["--help"], terminal_width=80).output.partition("Commands:")[2]
    assert len(shown.splitlines()) > 5
    assert "..." not in shown


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        (["--trace-ratio", "2"], {}, "Invalid value for '--trace-ratio': 2.0 is not in the range"),
        (["--log-format", "xml"], {}, "'xml' is not one of 'text', 'json'"),
        (["--prot", "2"], {}, "No such option"),
        (["--tls-key", "k.pem"], {}, "dragoman: --tls-key needs --tls-certificate too.\n"),
        ([], {"DRAGOMAN_SERVE_PROT": "2"}, "did you mean 'DRAGOMAN_SERVE_PORT'?\n"),
        ([], {"DRAGOMAN_SERVE_LOG_TEXT": "perhaps"}, 'DRAGOMAN_SERVE_LOG_TEXT is "perhaps"; give true or false.\n'),
    ],
)
def test_flags_and_variables_of_settings_that_are_wrong(
    arguments: list[str],
    variables: dict[str, str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    code = run(["config", *arguments])
    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert said in printed.err


def test_flags_have_their_help_range_and_default_from_the_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "--admin-port INTEGER RANGE Port for the status page;" in text
    assert "[default: 9465; -1<=x<=65535]" in text
    assert "--reflection / --no-reflection" in text
    assert "Flags override the environment, which overrides the file." in text


def test_certificate_and_key_go_together(tmp_path: Path) -> None:
    for flag in ("--tls-certificate", "--tls-key"):
        result = CliRunner().invoke(dragoman, ["models", flag, str(tmp_path / "file.pem")])
        assert result.exit_code == ExitCode.USAGE
        assert result.output.splitlines()[-1] == "Error: --tls-certificate and --tls-key must be given together."


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(dragoman, ["models", "--tls-ca", str(tmp_path / "gone.crt")])
    assert isinstance(result.exception, CommandError)
    assert str(result.exception) == f"can't read {tmp_path / 'gone.crt'}: No such file or directory."
    assert result.exception.exit_code == ExitCode.NO_INPUT


@pytest.mark.parametrize("key", ["schlüssel", "two\nlines", "\x7f"])
def test_what_can_not_be_a_key_is_not_sent_nor_shown(key: str) -> None:
    result = CliRunner().invoke(dragoman, ["models"], env={API_KEY: key})
    assert result.exit_code == ExitCode.USAGE
    assert (
        result.output.splitlines()[-1]
        == f"Error: {API_KEY} is not an API key; keys consist of letters, digits, '_' and '-'."
    )
    assert key not in result.output


def test_no_command_takes_the_key_as_a_flag() -> None:
    for name in ("translate", "detect", "models"):
        assert "--api-key" not in CliRunner().invoke(dragoman, [name, "--help"]).output


def test_codes_are_distinct_and_no_signals_of_others() -> None:
    assert len(ExitCode) == len(ExitCode.__members__)  # of two with one number, one would be an alias
    assert all(0 <= code <= 255 for code in ExitCode)


def test_the_table_knows_real_status_codes_only() -> None:
    assert set(OF_STATUS) <= {code.name for code in grpc.StatusCode}
    assert "INTERNAL" not in OF_STATUS  # like any other status, it gets the code for the server's own faults
