"""Processes that read documents: how many, for how long, and that none outlives its call."""

import asyncio
import sys
import time
from collections.abc import Coroutine
from typing import Any

import psutil
import pytest

from service.calls.open_calls import ByteBudget, Hold
from service.documents import DocumentOptions
from service.domain.call import Call, begin_call
from service.domain.errors import DeadlineExceeded, InvalidRequest, MemoryFull, TooLong
from service.jobs.reading import DocumentReaders, Upload, chunk_of, translated_chunk
from tests.patience import patient
from tests.servers import eventually

# Reads a document, unless it says that it hangs.
MAY_HANG = """
import time
from service.documents import child, open_document
child.main(lambda name, data, options: time.sleep(600) if data == b"hang" else open_document(name, data, options))
"""
LINES = Upload("a.txt", b"one\ntwo\n", DocumentOptions())
MAX_CHARACTERS = 10_000
HANGS = (sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read(); sys.stdin.read()")


def run(scenario: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(scenario, patient(60)))


def soon() -> float:
    return time.monotonic() + patient(30)


def planted(code: str) -> DocumentReaders:
    return DocumentReaders(MAX_CHARACTERS, (sys.executable, "-c", code))


def room(num_bytes: int = 2**30) -> Hold:
    return ByteBudget(num_bytes, 2**10).hold()


async def read(readers: DocumentReaders, upload: Upload = LINES, deadline: float | None = None) -> Any:
    deadline = soon() if deadline is None else deadline
    _, chunks = await readers.read(upload, deadline, room())
    texts = [chunk_of(frame)["texts"] for frame in chunks]
    translations = [translated_chunk(["x"] * len(each)) for each in texts]
    return [text for each in texts for text in each], await readers.write(upload, translations, deadline, room())


def test_a_document_is_read_and_written() -> None:
    assert run(read(DocumentReaders(MAX_CHARACTERS))) == (["one", "two"], b"x\nx\n")


def test_a_large_document_comes_through() -> None:
    line = "wörd " * 1000
    upload = Upload("a.txt", (f"{line}\n" * 2000).encode(), DocumentOptions())
    texts, written = run(read(DocumentReaders(MAX_CHARACTERS), upload))
    assert (len(texts), texts[0].strip(), len(written)) == (2000, line.strip(), len(b"x \n") * 2000)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.exe", b"MZ", "file ends in '.exe'; allowed: .arb, .ass, .csv,"),
        ("README", b"a", "file has a name without an ending; allowed: .arb"),
        ("", b"a", "file has a name without an ending"),
        ("a.docx", b"a", "file can't be read: it is not a ZIP archive"),
    ],
)
def test_what_is_no_document_is_the_callers_mistake(name: str, data: bytes, message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        run(read(DocumentReaders(MAX_CHARACTERS), Upload(name, data, DocumentOptions())))
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
        run(read(says("{'problem': ' '.join(os.environ), 'num_characters': 0}")))
    assert "PYTHONPATH" in str(raised.value)
    assert "SECRET" not in str(raised.value)


def test_the_deadline_ends_what_hangs() -> None:
    with pytest.raises(DeadlineExceeded, match="being read or written"):
        run(read(DocumentReaders(MAX_CHARACTERS, HANGS), deadline=time.monotonic() + 0.2))


def children() -> set[int]:
    return {each.pid for each in psutil.Process().children()}


async def test_no_process_outlives_its_call() -> None:
    before = children()
    readers = DocumentReaders(MAX_CHARACTERS, HANGS)
    task = asyncio.create_task(read(readers))
    await asyncio.to_thread(eventually, lambda: bool(children() - before))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert children() <= before


def test_a_text_that_no_call_takes_is_named() -> None:
    upload = Upload("a.txt", b"one\n" + b"x" * (MAX_CHARACTERS + 1), DocumentOptions())
    with pytest.raises(TooLong) as raised:
        run(read(DocumentReaders(MAX_CHARACTERS), upload))
    assert str(raised.value) == ("file (line 2) has 10001 characters without a break; allowed: 10000. Split it.")


async def test_texts_and_documents_for_which_there_is_no_room_are_not_taken() -> None:
    readers, before = DocumentReaders(MAX_CHARACTERS), children()
    lines = Upload("a.txt", b"a line of some words\n" * 10_000, DocumentOptions())
    hold = room(2**18)
    with pytest.raises(MemoryFull):
        await readers.read(lines, soon(), hold)
    assert children() <= before
    hold.release()
    written = [translated_chunk(["x" * 2**18])]
    with pytest.raises(MemoryFull):
        await readers.write(Upload("a.txt", b"one\n", DocumentOptions()), written, soon(), hold)
    assert children() <= before


async def test_a_process_that_said_more_than_was_read_ends_with_its_call() -> None:
    says_much = f"""
import fcntl, os, time
fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 2**20)
os.write(1, ({2**18}).to_bytes(8, "big") + bytes({2**20 - 8}))
time.sleep(600)
"""
    before = children()
    with pytest.raises(MemoryFull):
        await planted(says_much).read(LINES, soon(), room(2**17))
    assert children() <= before


async def test_what_is_known_of_a_document_as_a_whole() -> None:
    csv = Upload("a.csv", b"a,b\n1,one\n2,two three\n", DocumentOptions(columns=("b",)))
    head, _ = await DocumentReaders(MAX_CHARACTERS).read(csv, soon(), room())
    assert (head["num_texts"], head["num_characters"], head["sample"]) == (2, 12, "one\ntwo three")
    empty = Upload("a.txt", b"\n", DocumentOptions())
    head, chunks = await DocumentReaders(MAX_CHARACTERS).read(empty, soon(), room())
    assert (head["num_texts"], chunks, head["sample"]) == (0, [], "")


async def test_a_caller_has_one_process_and_leaves_one_to_others() -> None:
    readers = planted(MAY_HANG)

    async def of(caller: str, work: Coroutine[Any, Any, Any]) -> Any:
        begin_call(Call(origin=(caller, object())))
        return await work

    before = children()
    hangs = Upload("a.txt", b"hang", DocumentOptions())
    tasks = [asyncio.create_task(of("mallory", read(readers, hangs))) for _ in range(3)]
    await asyncio.to_thread(eventually, lambda: bool(children() - before))
    assert (await of("bob", read(readers)))[1] == b"x\nx\n"
    with pytest.raises(DeadlineExceeded, match="the document waited for others"):
        await of("mallory", read(readers, deadline=time.monotonic() + 0.05))
    assert len(children() - before) == 1
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert (await of("mallory", read(readers)))[1] == b"x\nx\n"
