"""`dragoman bulk` as a user runs it: killed and continued, in shards, and with the answers that a server gives."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dragoman_client import Client
from service.cli.errors import ExitCode
from service.process.disk import held
from tests.clients.command_line import dragoman_here
from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess, distinct_texts, environment, eventually

BUNDLE = REPOSITORY / "models" / "en-de" / "1"
TEXTS = [
    "Where is the train station?",
    "The weather is nice today. We are going to the beach.",
    "",
    "Please call {name} at 12:30.",
    "1,234.5",
]


OWN_MODELS = ("--models", str(BUNDLE), "--num-threads", "1")


PROGRAM = (sys.executable, "-m", "service", "bulk")
NUM_ROWS = 600  # long enough to be ended halfway


def bulk(*arguments: str | Path, by: Sequence[str], **index: Any) -> subprocess.CompletedProcess[str]:
    run = dragoman_here("bulk", *map(str, arguments), *by, **index)
    return subprocess.CompletedProcess(run.args, run.returncode, stderr=run.stderr.decode())


@pytest.fixture(scope="module")
def shipped() -> Iterator[ServerProcess]:
    with ServerProcess(BUNDLE) as server:
        yield server


@pytest.fixture(scope="module")
def by_server(shipped: ServerProcess) -> Sequence[str]:
    """Return the options by which the server translates: for what is the same for both, as it loads no model."""
    return "--server", shipped.address


@pytest.fixture(params=["own models", "server"])
def by(request: pytest.FixtureRequest, by_server: Sequence[str]) -> Sequence[str]:
    """Return the options that say who translates."""
    return OWN_MODELS if request.param == "own models" else by_server


def write_rows(path: Path, num_rows: int) -> list[str]:
    texts = [*TEXTS, *distinct_texts(num_rows - len(TEXTS))]
    path.write_text("".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(texts)))
    return texts


def of_long_run(folder: Path) -> tuple[str, ...]:
    return str(folder / "in.jsonl"), str(folder / "out.jsonl"), "--to", "de", "--rows-per-part", "20"


def num_parts(output: Path) -> int:
    return len(list(output.with_name(f"{output.name}.parts").glob("0*.jsonl")))


def wait_for_parts(output: Path, number: int) -> None:
    eventually(lambda: num_parts(output) >= number, timeout_seconds=60)


def test_a_killed_run_is_continued_and_gives_the_answers_of_a_server(tmp_path: Path, shipped: ServerProcess) -> None:
    output = tmp_path / "out.jsonl"
    texts, arguments = write_rows(tmp_path / "in.jsonl", NUM_ROWS), of_long_run(tmp_path)
    run = [*PROGRAM, *arguments, *OWN_MODELS]
    process = subprocess.Popen(run, cwd=REPOSITORY, env=environment(), start_new_session=True)
    wait_for_parts(output, 3)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = num_parts(output)
    assert kept < 30, "it ended before it was killed"
    answer = bulk(*arguments, by=OWN_MODELS)
    assert answer.returncode == 0, answer.stderr
    assert f"{NUM_ROWS} rows, {20 * kept} of them from earlier runs" in answer.stderr
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["id"] for row in rows] == list(range(NUM_ROWS))
    with Client(shipped.address) as client:
        served = [each.text for each in client.translate(texts, "en", "de")]
    assert [row["translation"] for row in rows] == served
    assert {row["finish_reason"] for row in rows} >= {"stop"}
    assert not output.with_name("out.jsonl.parts").exists()


def test_after_ctrl_c_or_without_its_server_it_says_how_to_go_on(tmp_path: Path, by_server: Sequence[str]) -> None:
    output = tmp_path / "out.jsonl"
    write_rows(tmp_path / "in.jsonl", NUM_ROWS)
    with ServerProcess(BUNDLE) as gone:
        for stop, code in ((None, ExitCode.INTERRUPTED), (gone, ExitCode.NO_SERVER)):
            num_before = num_parts(output)
            run = [*PROGRAM, *of_long_run(tmp_path), "--server", gone.address]
            process = subprocess.Popen(run, cwd=REPOSITORY, env=environment(), stderr=subprocess.PIPE)
            wait_for_parts(output, num_before + 3)
            stop.kill() if stop else process.send_signal(signal.SIGINT)
            errors = process.communicate(timeout=patient(60))[1].decode()
            assert process.returncode == code, errors
            assert errors.endswith("finished rows are kept; the same command resumes.\n")
    assert bulk(*of_long_run(tmp_path), by=by_server).returncode == 0
    assert [json.loads(line)["id"] for line in output.read_text().splitlines()] == list(range(NUM_ROWS))


def test_rows_in_other_languages_come_back_unchanged_with_a_flag(tmp_path: Path, by: Sequence[str]) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    texts = {
        "Where is the train station?": ("en", []),
        "Wo ist der Bahnhof, bitte?": ("de", ["target_language"]),
        "Où est la gare, s'il vous plaît ?": ("fr", ["other_language"]),
        "42": ("und", []),
    }
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    assert bulk(source, output, "--to", "de", by=by).returncode == 0
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [(row["source_language"], row["flags"]) for row in rows] == list(texts.values())
    assert [row["translation"] for row in rows] == ["Wo ist der Bahnhof?", *list(texts)[1:]]


def test_shards_share_a_folder_and_the_last_run_joins_it(tmp_path: Path, by_server: Sequence[str]) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.parquet"
    write_rows(source, 40)
    options = (source, output, "--to", "de", "--rows-per-part", "7")
    for variable, index in (("JOB_COMPLETION_INDEX", "0"), ("SLURM_ARRAY_TASK_ID", "1")):
        answer = bulk(*options, "--shard", "/2", **{variable: index}, by=by_server)
        assert answer.returncode == 0, answer.stderr
    answer = bulk(*options, by=by_server)
    assert answer.returncode == 0, answer.stderr
    assert "40 rows, 40 of them from earlier runs" in answer.stderr
    assert pq.read_table(output).column("id").to_pylist() == list(range(40))


def test_a_row_that_a_server_refuses_fails_alone(tmp_path: Path, by: Sequence[str]) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows = [("Hello", "en"), ("Hello", "ja"), ("a " * 3000, "en"), ("x" * (3 << 20), "en"), ("Hello", "en")]
    source.write_text("".join(json.dumps({"text": text, "from": code}) + "\n" for text, code in rows))
    answer = bulk(source, output, "--to", "de", "--from-column", "from", "--strict", by=by)
    assert "5 rows; 3 rows failed in this run." in answer.stderr
    errors = [json.loads(line)["error"] for line in output.read_text().splitlines()]
    assert [bool(error) for error in errors] == [False, True, True, True, False]
    assert errors[1] == "no model here translates from 'ja' into 'de'; served: en to de."
    assert errors[2].startswith("texts[0] has a segment of ")


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("--to", "tlh"), ExitCode.USAGE, "'tlh'"),
        (("--to", "de", "--beam-size", "99"), ExitCode.USAGE, "options.beam_size is 99"),
        (("--to", "de", "--column", "body"), ExitCode.DATA, "no column 'body'; the columns are 'id', 'text'"),
    ],
)
def test_mistakes_are_told_in_a_line(
    arguments: tuple[str, ...], code: int, told: str, tmp_path: Path, by: Sequence[str]
) -> None:
    write_rows(tmp_path / "in.jsonl", 5)
    answer = bulk(tmp_path / "in.jsonl", tmp_path / "out.jsonl", *arguments, by=by)
    assert (answer.returncode, told in answer.stderr) == (code, True), answer.stderr


def test_an_output_is_not_overwritten_without_force(tmp_path: Path, by_server: Sequence[str]) -> None:
    write_rows(tmp_path / "in.jsonl", 5)
    (tmp_path / "out.jsonl").write_text("mine")
    answer = bulk(tmp_path / "in.jsonl", tmp_path / "out.jsonl", "--to", "de", by=by_server)
    assert answer.returncode == ExitCode.USAGE
    assert "exists; name another file, or overwrite it with --force" in answer.stderr
    assert (tmp_path / "out.jsonl").read_text() == "mine"
    assert bulk(tmp_path / "in.jsonl", tmp_path / "out.jsonl", "--to", "de", "--force", by=by_server).returncode == 0
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 5


def test_a_folder_with_its_output_in_it(tmp_path: Path, by_server: Sequence[str]) -> None:
    source = tmp_path / "crawl.en"
    for name in ("a b.txt", "lang=de/ü.csv", ".hidden/c.txt", "_temporary/d.txt", "e.xlsx"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("text\nGood morning.\n")
    (source / "link").symlink_to(source)
    arguments = (source, source / "crawl.de", "--to", "de", "--output-format", "jsonl")
    for kept in ("", ", 3 of them from earlier runs"):
        answer = bulk(*arguments, by=by_server)
        assert answer.returncode == 0, answer.stderr
        assert f"crawl.de: 3 rows{kept}." in answer.stderr
        assert "skipped, as their endings are not supported: e.xlsx, link" in answer.stderr


def test_two_processes_do_not_write_one_output(tmp_path: Path, by_server: Sequence[str]) -> None:
    arguments = (tmp_path / "in.jsonl", tmp_path / "out.jsonl", "--to", "de")
    write_rows(tmp_path / "in.jsonl", 5)
    with held(tmp_path / "out.jsonl.parts", alone=False):
        assert bulk(*arguments, "--shard", "0/2", by=by_server).returncode == 0
        answer = bulk(*arguments, by=by_server)
    assert (answer.returncode, "process is writing" in answer.stderr) == (ExitCode.TRY_LATER, True), answer.stderr


@pytest.mark.parametrize(
    ("output", "code", "told"),
    [
        ("in.jsonl", ExitCode.DATA, "in.jsonl is the input; name another output"),
        ("in.jsonl/out.jsonl", ExitCode.IO_ERROR, "Not a directory; once that is fixed, the same command resumes"),
    ],
)
def test_outputs_that_cannot_be(output: str, code: int, told: str, tmp_path: Path, by_server: Sequence[str]) -> None:
    write_rows(tmp_path / "in.jsonl", 5)
    written = (tmp_path / "in.jsonl").read_bytes()
    answer = bulk(tmp_path / "in.jsonl", tmp_path / output, "--to", "de", "--force", by=by_server)
    assert (answer.returncode, told in answer.stderr) == (code, True), answer.stderr
    assert (tmp_path / "in.jsonl").read_bytes() == written
