"""Processes that read documents: how many, for how long, and that none outlives its call."""

import asyncio
import os
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from service.documents import DocumentOptions
from service.domain.errors import DeadlineExceeded, InvalidRequest, Overloaded
from service.faces.http.documents.reading import DocumentReaders, Upload
from tests.patience import patient
from tests.servers import eventually

LINES = Upload("a.txt", b"one\ntwo\n", DocumentOptions())
HANGS = (sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read(); sys.stdin.read()")


def run(scenario: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(scenario, patient(60)))


def soon() -> float:
    return time.monotonic() + patient(30)


def planted(code: str) -> DocumentReaders:
    return DocumentReaders(command=(sys.executable, "-c", code))


async def read(readers: DocumentReaders, upload: Upload = LINES, deadline: float | None = None) -> Any:
    async with readers.open(upload, soon() if deadline is None else deadline) as document:
        return [each.text for each in document.texts], await document.written(["x"] * len(document.texts))


def test_a_document_is_read_and_written() -> None:
    assert run(read(DocumentReaders())) == (["one", "two"], b"x\nx\n")


def test_a_large_document_comes_through() -> None:
    line = "wörd " * 1000
    upload = Upload("a.txt", (f"{line}\n" * 2000).encode(), DocumentOptions())
    texts, written = run(read(DocumentReaders(), upload))
    assert (len(texts), texts[0].strip(), len(written)) == (2000, line.strip(), len(b"x \n") * 2000)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.exe", b"MZ", "file ends in '.exe'; allowed are .csv, .docx,"),
        ("README", b"a", "file has a name without an ending; allowed are .csv"),
        ("", b"a", "file has a name without an ending"),
        ("a.docx", b"a", "file can't be read: it is not a ZIP archive"),
        ("a.po", b"msgid", "file can't be read: line 1"),
        ("a.xliff", b"<a>" * 20_000, "file can't be read:"),
    ],
)
def test_what_is_no_document_is_the_callers_mistake(name: str, data: bytes, message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        run(read(DocumentReaders(), Upload(name, data, DocumentOptions())))
    assert str(raised.value).startswith(message)
    assert raised.value.field == "file"


@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit(3)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import sys; sys.stdin.buffer.read(8); sys.stdout.buffer.write(bytes(7))",
        "import sys, time; sys.stdout.buffer.write((2**62).to_bytes(8, 'big')); sys.stdout.flush(); time.sleep(600)",
    ],
)
def test_a_process_that_fails_is_the_documents_problem(code: str) -> None:
    with pytest.raises(InvalidRequest, match=r"file can't be read: .*split it"):
        run(read(planted(code)))


def says(answer: str) -> DocumentReaders:
    """Return readers whose processes answer with a planted document in JSON."""
    return planted(
        "import json, os, sys\n"
        f"found = json.dumps({answer}).encode()\n"
        "sys.stdout.buffer.write(len(found).to_bytes(8, 'big') + found)\n"
        "sys.stdout.flush()\n"
        "sys.stdin.buffer.read()\n"
    )


def test_a_process_gets_nothing_of_the_servers_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "password")
    with pytest.raises(InvalidRequest) as raised:
        run(read(says("{'problem': ' '.join(os.environ)}")))
    assert "PYTHONPATH" in str(raised.value)
    assert "SECRET" not in str(raised.value)


def test_the_deadline_ends_what_hangs() -> None:
    with pytest.raises(DeadlineExceeded, match="being read or written"):
        run(read(DocumentReaders(command=HANGS), deadline=time.monotonic() + 0.2))


def children() -> set[int]:
    return {int(pid) for each in Path(f"/proc/{os.getpid()}/task").iterdir() for pid in _children(each)}


def _children(task: Path) -> list[str]:
    return (task / "children").read_text().split()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_no_process_outlives_its_call() -> None:
    before = children()

    async def scenario() -> None:
        readers = DocumentReaders(command=HANGS)
        task = asyncio.create_task(read(readers))
        await asyncio.to_thread(eventually, lambda: bool(children() - before))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert children() <= before

    run(scenario())


def test_so_many_at_a_time_and_so_many_wait() -> None:
    async def scenario() -> None:
        readers = DocumentReaders(most_at_once=1, most_waiting=1)
        async with readers.open(LINES, soon()):
            waiting = asyncio.create_task(read(readers))
            await asyncio.sleep(0)  # it is in the line now
            with pytest.raises(Overloaded) as raised:
                await read(readers)
            assert str(raised.value) == "1 documents are being translated, and 1 wait; try again later."
            assert raised.value.retry_after_seconds > 0
            assert not waiting.done()
        assert (await waiting)[1] == b"x\nx\n"
        async with readers.open(LINES, soon()):
            with pytest.raises(DeadlineExceeded, match="waited for other documents"):
                await read(readers, deadline=time.monotonic() + 0.05)
        assert (await read(readers))[1] == b"x\nx\n"

    run(scenario())
