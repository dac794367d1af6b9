"""The process that reads a document: what it says, and that it ends by itself where a document never would."""

import json
import resource
import signal
import subprocess
import sys
from typing import Any

from service.documents.child import LENGTH, chunks
from service.documents.document import DocumentText, MimeType
from tests.patience import patient
from tests.servers import REPOSITORY

ORDER = {
    "name": "a.txt",
    "options": {"target": "de"},
    "max_chunk_texts": 2,
    "max_chunk_characters": 100,
    "max_characters": 50,
    "is_written": False,
}
# A process whose documents are read by planted code, with limits of its own.
PLANTED = """
import resource
from service.documents import child
child._LIMITS = ((resource.RLIMIT_AS, {memory}), (resource.RLIMIT_CPU, 1))
def opener(name, data, options):
    {code}
child.main(opener)
"""


def frame(content: bytes) -> bytes:
    return LENGTH.pack(len(content)) + content


def run(sent: bytes, *command: str) -> tuple[int, list[bytes]]:
    """Return the exit code and the frames that came back."""
    ran = subprocess.run(
        [sys.executable, *(command or ("-m", "service.documents.child"))],
        cwd=REPOSITORY,
        input=sent,
        capture_output=True,
        timeout=patient(60),
        check=False,
    )
    frames, rest = [], ran.stdout
    while rest:
        (length,) = LENGTH.unpack(rest[: LENGTH.size])
        frames.append(rest[LENGTH.size : LENGTH.size + length])
        rest = rest[LENGTH.size + length :]
    return ran.returncode, frames


def order(**changes: Any) -> bytes:
    return frame(json.dumps({**ORDER, **changes}).encode())


def planted(code: str, memory: int = 2**30) -> tuple[int, list[bytes]]:
    return run(order() + frame(b"a"), "-c", PLANTED.format(code=code, memory=memory))


TSV = "text\nWörter\nzwei\ndrei\n".encode()


def test_a_document_is_read_in_chunks() -> None:
    code, (head, *chunks) = run(order(name="a.tsv", options={"columns": ["text"]}) + frame(TSV))
    assert code == 0
    assert json.loads(head) == {
        "num_chunks": 2,
        "num_texts": 3,
        "num_characters": 14,
        "notes": [],
        "language": "",
        "sample": "Wörter\nzwei\ndrei",
        "sample_type": "text/plain",
    }
    places = [f"line {number}, column 'text'" for number in (2, 3, 4)]
    assert [json.loads(chunk) for chunk in chunks] == [
        {"mime_type": "text/plain", "texts": ["Wörter", "zwei"], "places": places[:2]},
        {"mime_type": "text/plain", "texts": ["drei"], "places": places[2:]},
    ]


def test_a_text_that_is_too_long_is_told() -> None:
    code, (said,) = run(order() + frame(b"a\n" + b"x" * 51))
    assert (code, json.loads(said)) == (0, {"problem": "line 2", "num_characters": 51})


def test_nobody_has_to_wait_for_it() -> None:
    assert run(order() + frame(b"text")[:-1]) == (0, [])


def test_too_much_memory_is_a_problem_of_the_document() -> None:
    code, (said,) = planted("return bytearray(2**31)")
    assert code == 0
    assert "of memory to read; split it." in json.loads(said)["problem"]


def test_too_deep_a_document_is_a_problem_of_the_document() -> None:
    assert json.loads(planted("return opener(name, data, options)")[1][0])["problem"] == "it is nested too deeply."


def test_a_document_that_never_ends_is_stopped_by_the_system() -> None:
    code, frames = planted("while True: pass")
    assert frames == []
    assert code in (-signal.SIGXCPU, -signal.SIGKILL)


def test_the_limits_are_in_force() -> None:
    code = "assert resource.getrlimit(resource.RLIMIT_AS)[0] == 2**29; raise RecursionError"
    assert len(planted(code, memory=2**29)[1]) == 1
    assert resource.getrlimit(resource.RLIMIT_AS)[0] != 2**29  # not those of this process


def made(kinds: str, size: int = 1) -> list[DocumentText]:
    types = {"t": MimeType.TEXT, "h": MimeType.HTML}
    return [DocumentText("x" * size, types[kind], "") for kind in kinds]


def test_a_chunk_has_texts_of_one_type_in_order_and_so_many_characters_unless_a_text_has_more() -> None:
    assert list(chunks(made("thhtt"), 2, 100)) == [[0, 3], [4], [1, 2]]
    assert list(chunks([], 2, 100)) == []
    assert list(chunks(made("ttt", 40), 10, 80)) == [[0, 1], [2]]
    assert list(chunks(made("ttt", 90), 10, 80)) == [[0], [1], [2]]
