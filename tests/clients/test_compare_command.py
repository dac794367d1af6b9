"""`dragoman compare`, as a user runs it, of two real servers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import ServerProcess, dragoman, free_port
from tests.tiny_bundle import write_tiny_bundle

LINES = ["Where is the train station?", "", "Save the file.", "Hello, can you help me?"]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    folder = tmp_path_factory.mktemp("models")
    for seed in (1, 2):
        write_tiny_bundle(folder / str(seed) / "tiny" / "1", "tiny", seed=seed)
    with ServerProcess(folder / "1") as one, ServerProcess(folder / "2") as other:
        yield one.address, other.address


def compare(*arguments: Any, lines: list[str] = LINES) -> Any:
    return dragoman("compare", *arguments, "--to", "de", stdin="\n".join(lines).encode())


def test_a_server_is_like_itself(servers: tuple[str, str]) -> None:
    run = compare(servers[0], servers[0], "--json", "--min-chrf", "99.9")
    assert (run.returncode, run.stderr) == (0, b"")
    told = json.loads(run.stdout)
    assert (told["lines"], told["identical"], told["worst"]) == (3, 1.0, [])
    assert told["length_ratio"] == {"p1": 1.0, "p50": 1.0, "p99": 1.0}
    assert told["a"]["finish_reasons"] == told["b"]["finish_reasons"]
    assert sum(told["a"]["finish_reasons"].values()) == 3
    assert 0 < told["a"]["median_ms"] <= told["a"]["p99_ms"]


def test_another_model_differs(servers: tuple[str, str]) -> None:
    run = compare(*servers, "--json", "--worst", "2", "--min-chrf", "99.9")
    told = json.loads(run.stdout)
    assert run.returncode == 3
    assert f"chrF is {told['chrf']}, below 99.9" in run.stderr.decode()
    assert told["identical"] < 1
    assert [each["line"] for each in told["worst"]]
    assert {each["line"] for each in told["worst"]} <= {1, 3, 4}
    assert all(each["a"] != each["b"] and each["text"] == LINES[each["line"] - 1] for each in told["worst"])


def test_the_table_tells_the_same(servers: tuple[str, str]) -> None:
    run = compare(*servers)
    assert (run.returncode, run.stderr) == (0, b"")
    table = run.stdout.decode()
    assert table.startswith("lines             3\n")
    assert all(name in table for name in ("identical", "chrF", "BLEU", "p99_ms", "\nA: ", "\nB: "))


@pytest.mark.parametrize(
    ("lines", "code", "said"), [(["", " "], 65, "no line to translate"), (LINES, 69, "no server answers")]
)
def test_what_is_wrong_is_told(servers: tuple[str, str], lines: list[str], code: int, said: str) -> None:
    run = compare(servers[0], f"127.0.0.1:{free_port()}", lines=lines)
    assert run.returncode == code
    assert said in run.stderr.decode()


def test_without_sacrebleu_the_remedy_is_told(servers: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "sacrebleu.py").write_text("raise ImportError")
    run = dragoman("compare", *servers, "--to", "de", stdin=b"Hello", PYTHONPATH=str(tmp_path))
    assert run.returncode == 78
    assert "pip install 'dragoman[compare]'" in run.stderr.decode()
