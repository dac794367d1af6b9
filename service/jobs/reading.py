"""Reading and writing of documents, each in a process of its own that has limits and ends with its work."""

import asyncio
import contextlib
import dataclasses
import json
import logging
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from pathlib import PurePath
from typing import Any

import service
from service.calls.open_calls import PIECE_BYTES, Hold
from service.calls.turns import DocumentTurns, current_caller, until
from service.documents import ENDINGS, DocumentOptions, Doubt
from service.documents.child import LENGTH, MAX_CPU_SECONDS, Chunk, Head, Order, Refusal, Translations
from service.documents.document import NO_DOUBTS
from service.documents.opening import MAX_BYTES, advice_for
from service.domain.errors import MAX_MESSAGE, InvalidRequest, Path, Quoted, TooLong, quoted
from service.domain.translation import MAX_CHUNK_CHARACTERS, MAX_CHUNK_TEXTS

_LOG = logging.getLogger(__name__)

FILE = "file"  # the field of the form, in every API

_COMMAND = (sys.executable, "-P", "-m", "service.documents.child")
_MAX_TEXTS_BYTES = 4 * MAX_BYTES  # texts have escapes, and an archive unpacks


@dataclass(frozen=True, slots=True)
class Upload:
    """A document as it was sent: the name of its file, whose ending gives the format, and its options."""

    name: str
    data: bytes
    options: DocumentOptions


class DocumentReaders:
    """Starts the processes, so many at a time and one for each caller. For one event loop only."""

    def __init__(self, max_characters: int, command: Sequence[str] = _COMMAND, most_at_once: int = 2) -> None:
        """Run `most_at_once` processes of `command` at a time, for texts of at most `max_characters`; the others wait.

        Those that wait are limited by `DocumentTranslator`.
        """
        self._max_characters = max_characters
        self._turns = DocumentTurns(most_at_once, 1)
        self._command = tuple(command)

    async def read(self, upload: Upload, deadline_seconds: float, hold: Hold) -> tuple[Head, list[bytes]]:
        """Return the head of a document, and its chunks as received, which take the least memory; `hold` counts the
        texts.

        The deadline is on the clock of `time.monotonic()`.
        """
        check_ending(upload.name)
        order = self._order(upload, is_written=False)
        async with self._process(len(upload.data), deadline_seconds) as process:
            await process.send((order, upload.data))
            answer: Any = json.loads(await process.receive(hold))
            if "problem" in answer:
                raise self._refused(answer)
            head: Head = answer
            chunks: list[bytes] = []
            num_bytes = 0
            while len(chunks) < head["num_chunks"]:
                chunks.append(await process.receive(hold))
                num_bytes += len(chunks[-1])
                if num_bytes > _MAX_TEXTS_BYTES:
                    raise _too_large()
        return head, chunks

    async def write(self, upload: Upload, translations: Iterable[bytes], deadline_seconds: float, hold: Hold) -> bytes:
        """Return a document with the translations of its chunks, each a `translated_chunk`. `hold` counts it."""
        order = self._order(upload, is_written=True)
        async with self._process(len(upload.data), deadline_seconds) as process:
            await process.send((order, upload.data))
            await process.send(translations)
            refusal: Refusal = json.loads(await process.receive(hold))
            if problem := refusal["problem"]:
                reason = Quoted(problem[:MAX_MESSAGE])
                raise InvalidRequest("{path} can't be written: {reason}", Path(FILE), reason=reason)
            return await process.receive(hold)

    def _order(self, upload: Upload, *, is_written: bool) -> bytes:
        order = Order(
            name=upload.name,
            options=dataclasses.asdict(upload.options),
            max_chunk_texts=MAX_CHUNK_TEXTS,
            max_chunk_characters=min(MAX_CHUNK_CHARACTERS, self._max_characters),
            max_characters=self._max_characters,
            is_written=is_written,
        )
        return json.dumps(order).encode()

    def _refused(self, refusal: Refusal) -> InvalidRequest:
        if not refusal["num_characters"]:
            return unreadable(refusal["problem"])
        return TooLong(
            "{path} has {number} characters without a break",
            place_of(refusal["problem"]),
            number=refusal["num_characters"],
            allowed=f"{self._max_characters}",
            advice="split it",
        )

    @asynccontextmanager
    async def _process(self, num_bytes: int, deadline_seconds: float) -> AsyncIterator["_Process"]:
        async with (
            self._turns.turn(current_caller(), num_bytes, deadline_seconds),
            until(deadline_seconds, "the document was being read or written"),
            _process(self._command) as process,
        ):
            try:
                yield _Process(process)
            except (asyncio.IncompleteReadError, ConnectionError):
                code = await _ended(process)
                _LOG.warning("a process that read a caller's document exited with %d", code)
                raise unreadable(
                    f"reading it failed, or took more than {MAX_CPU_SECONDS} s or too much memory; split it."
                ) from None


class _Process:
    """The frames that a process takes and returns."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._sink, self._source = process.stdin, process.stdout

    async def send(self, frames: Iterable[bytes]) -> None:
        for frame in frames:
            self._sink.write(LENGTH.pack(len(frame)))
            for start in range(0, len(frame), PIECE_BYTES):
                self._sink.write(frame[start : start + PIECE_BYTES])
                await self._sink.drain()

    async def receive(self, hold: Hold) -> bytes:
        (length,) = LENGTH.unpack(await self._source.readexactly(LENGTH.size))
        if length > _MAX_TEXTS_BYTES:
            raise _too_large()
        hold.grow(length)
        return await self._source.readexactly(length)


def chunk_of(frame: bytes) -> Chunk:
    chunk: Chunk = json.loads(frame)
    return chunk


def translated_chunk(texts: Sequence[str], doubts: Mapping[int, Doubt] = NO_DOUBTS) -> bytes:
    """Return the translations of a chunk's texts, and the doubts about some by their numbers, as they are sent."""
    listed = [(number, list(doubt.flags), doubt.finish_reason) for number, doubt in doubts.items()]
    return json.dumps(Translations(texts=list(texts), doubts=listed)).encode("ascii")


def place_of(place: str) -> Path:
    return Path(f"{FILE} ({place})")


def check_ending(name: str) -> None:
    ending = PurePath(name).suffix.lower()
    if ending not in ENDINGS:
        found = f"ends in {quoted(ending)}" if ending else "has a name without an ending"
        advice = advice_for(ending)
        raise InvalidRequest(
            "{path} {found}", Path(FILE), found=Quoted(found), allowed=", ".join(ENDINGS), advice=advice
        )


def unreadable(problem: str) -> InvalidRequest:
    return InvalidRequest("{path} can't be read: {reason}", Path(FILE), reason=Quoted(problem[:MAX_MESSAGE]))


def _too_large() -> InvalidRequest:
    return unreadable(f"its texts take more than {_MAX_TEXTS_BYTES >> 20} MiB; split it.")


@asynccontextmanager
async def _process(command: Sequence[str]) -> AsyncIterator[Process]:
    """Run a process without this one's environment; kill it at the end of the block, when its work is done."""
    # Where this package is, as it may be in the folder that the server was started in.
    root = FilePath(service.__file__).parent.parent
    env = {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, cwd=os.sep, env=env, limit=PIECE_BYTES
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await _ended(process)


async def _ended(process: Process) -> int:
    """Wait for the end of a process: asyncio first wants its pipes at their end, so what they still hold is read."""
    assert process.stdout is not None
    while await process.stdout.read(PIECE_BYTES):
        pass
    return await process.wait()
