"""Reading and writing of documents, each in a process of its own that has limits and ends with its call."""

import asyncio
import contextlib
import json
import logging
import os
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from pathlib import PurePath
from typing import Any

import service
from service.documents import ENDINGS, DocumentOptions, DocumentText, MimeType
from service.documents.child import LENGTH, MAX_CPU_SECONDS, Order
from service.domain.errors import (
    DeadlineExceeded,
    InvalidRequest,
    Overloaded,
    Path,
    Quoted,
    quoted,
)

_LOG = logging.getLogger(__name__)

FILE = "file"  # the field of the form, in every API

_COMMAND = (sys.executable, "-P", "-m", "service.documents.child")
_MAX_FRAME_BYTES = 128 * 2**20  # texts have escapes, and an archive unpacks
_LARGE_BYTES = 65_536  # of JSON, which would block the event loop
_MAX_MESSAGE = 300  # characters
_END_SECONDS = 1.0  # for a process to end by itself
_PAUSE_SECONDS = 2.0  # it is unknown when a document will be done


@dataclass(frozen=True, slots=True)
class Upload:
    """A document as it was sent: the name of its file, whose ending tells the format, and what to read of it."""

    name: str
    data: bytes
    options: DocumentOptions


class DocumentReaders:
    """Starts the processes, so many at a time. For one event loop only."""

    def __init__(self, most_at_once: int = 2, most_waiting: int = 16, command: Sequence[str] = _COMMAND) -> None:
        """Let as many calls wait for a process; `command` starts one."""
        self._turns = asyncio.Semaphore(most_at_once)
        self._most_at_once = most_at_once
        self._most_waiting = most_waiting
        self._num_waiting = 0
        self._command = tuple(command)

    @asynccontextmanager
    async def open(self, upload: Upload, deadline_seconds: float) -> AsyncIterator["OpenDocument"]:
        """Read a document; the process ends with the `with` block. The deadline is on the clock of `time.monotonic()`.

        Raises:
            InvalidRequest: its ending stands for no known format, or it is broken or too large.
            Overloaded: too many documents are being translated.
            DeadlineExceeded: reading took too long.
        """
        check_ending(upload.name)
        async with self._turn(deadline_seconds), _process(self._command) as process:
            document = OpenDocument(process, deadline_seconds)
            await document.read(upload)
            yield document

    @asynccontextmanager
    async def _turn(self, deadline_seconds: float) -> AsyncIterator[None]:
        if self._num_waiting >= self._most_waiting:
            raise Overloaded(
                "{number} documents are being translated, and {num_waiting} wait",
                _PAUSE_SECONDS,
                number=self._most_at_once,
                num_waiting=self._num_waiting,
                advice="try again later",
            )
        self._num_waiting += 1
        try:
            async with _until(deadline_seconds, "it waited for other documents"):
                await self._turns.acquire()
        finally:
            self._num_waiting -= 1
        try:
            yield
        finally:
            self._turns.release()


class OpenDocument:
    """A document that has been read, in a process that can write it with its translations."""

    def __init__(self, process: Process, deadline_seconds: float) -> None:
        self._process = process
        self._deadline_seconds = deadline_seconds
        self.texts: Sequence[DocumentText] = ()
        self.notes: Sequence[str] = ()

    async def read(self, upload: Upload) -> None:
        """Read it, once; see `DocumentReaders.open`."""
        options = upload.options
        order: Order = {
            "name": upload.name,
            "columns": list(options.columns),
            "target": options.target,
            "has_all": options.has_all,
        }
        answer = await self._ask(json.dumps(order).encode(), upload.data)
        found = await _run(json.loads, answer)
        if problem := found.get("problem"):
            raise unreadable(str(problem))
        self.texts = [DocumentText(text, MimeType(kind), place) for text, kind, place in found["texts"]]
        self.notes = [str(note) for note in found["notes"]]

    async def written(self, translations: Sequence[str]) -> bytes:
        """Return the document with the translations of its texts, once.

        Raises:
            InvalidRequest: it became too large.
            DeadlineExceeded: it took too long.
        """
        return await self._ask(await _run(_encoded, translations))

    async def _ask(self, *frames: bytes) -> bytes:
        """Send frames to the process and return the one that it answers with."""
        sink, source = self._process.stdin, self._process.stdout
        assert sink is not None
        assert source is not None
        async with _until(self._deadline_seconds, "the document was being read or written"):
            try:
                for frame in frames:
                    sink.write(LENGTH.pack(len(frame)))
                    sink.write(frame)
                    await sink.drain()
                (length,) = LENGTH.unpack(await source.readexactly(LENGTH.size))
                if length > _MAX_FRAME_BYTES:
                    raise unreadable(f"its texts take more than {_MAX_FRAME_BYTES >> 20} MiB; split it.")
                return await source.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                code = await self._process.wait()
                _LOG.warning("a process that read a document of a caller ended with %d", code)
                raise unreadable(
                    f"reading it failed, or took more than {MAX_CPU_SECONDS} s or too much memory; split it."
                ) from None


def check_ending(name: str) -> None:
    """Check that the ending of a file's name stands for a known format.

    Raises:
        InvalidRequest: it doesn't; such a file is never taken for text.
    """
    ending = PurePath(name).suffix.lower()
    if ending not in ENDINGS:
        found = f"ends in {quoted(ending)}" if ending else "has a name without an ending"
        raise InvalidRequest("{path} {found}", Path(FILE), found=Quoted(found), allowed=", ".join(ENDINGS))


def unreadable(problem: str) -> InvalidRequest:
    """Return the error of a document that can't be read."""
    return InvalidRequest("{path} can't be read: {reason}", Path(FILE), reason=Quoted(problem[:_MAX_MESSAGE]))


@asynccontextmanager
async def _process(command: Sequence[str]) -> AsyncIterator[Process]:
    """Run a process without the environment of this one, and kill it at the end of the `with` block."""
    # Where this package is, as it may be in the folder that the server was started in.
    root = FilePath(service.__file__).parent.parent
    env = {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, cwd=os.sep, env=env, limit=_LARGE_BYTES
    )
    try:
        yield process
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _END_SECONDS)  # it has nothing left to do
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await process.wait()


@asynccontextmanager
async def _until(deadline_seconds: float, what: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(deadline_seconds - time.monotonic()):
            yield
    except TimeoutError:
        raise DeadlineExceeded(f"the deadline passed while {what}", advice="allow more time") from None


async def _run(work: Any, data: Any) -> Any:
    """Return what `work` makes of data, on another thread if there is much."""
    is_large = len(data) > _LARGE_BYTES if isinstance(data, bytes) else sum(map(len, data)) > _LARGE_BYTES
    return await asyncio.to_thread(work, data) if is_large else work(data)


def _encoded(translations: Sequence[str]) -> bytes:
    return json.dumps(list(translations)).encode("ascii")
