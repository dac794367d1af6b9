"""Keeps several calls in flight over a stream of lines; results come in order, memory stays bounded."""

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from service.cli.lines import Line

MAX_CHUNK_LINES = 32
MAX_CHUNK_CHARACTERS = 200_000
MAX_CALLS = 6  # together they fill the server's slots; more would only wait in its queue

Answer = TypeVar("Answer")
Chunk = list[Line]
Inbox = queue.Queue[Line | BaseException | None]


def map_chunks(lines: Iterable[Line], call: Callable[[Chunk], list[Answer]]) -> Iterator[list[tuple[Line, Answer]]]:
    """Call with lines in chunks, several at a time; yield each chunk as soon as it and all before it are answered.

    A chunk takes the lines that are there, up to its bounds, and never waits for more: a slow writer on the other
    end of a pipe sees each line answered at once. `lines` is read in a thread of its own, which may stay behind
    if the caller stops early.

    Raises:
        BaseException: what reading or a call raised, once all that came before has been yielded.
    """
    inbox: Inbox = queue.Queue(maxsize=MAX_CALLS * MAX_CHUNK_LINES)
    threading.Thread(target=_read, args=(lines, inbox), name="reader", daemon=True).start()
    running: deque[tuple[Chunk, Future[list[Answer]]]] = deque()
    calls = ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="call")
    end = _End()
    try:
        while True:
            while not end.reached and len(running) < MAX_CALLS:
                chunk = _take(inbox, end, wait=not running)
                if not chunk:
                    break
                running.append((chunk, calls.submit(call, chunk)))
            if not running:
                break
            chunk, future = running.popleft()
            yield list(zip(chunk, future.result(), strict=True))
    finally:
        calls.shutdown(wait=False, cancel_futures=True)
    if end.error is not None:
        raise end.error


class _End:
    """Whether the input has ended, and by which error."""

    def __init__(self) -> None:
        self.reached = False
        self.error: BaseException | None = None


def _read(lines: Iterable[Line], inbox: Inbox) -> None:
    try:
        for line in lines:
            inbox.put(line)
        inbox.put(None)
    except BaseException as error:
        inbox.put(error)


def _take(inbox: Inbox, end: _End, *, wait: bool) -> Chunk:
    """Take the lines that are there; if `wait`, at least one unless the input has ended."""
    chunk: Chunk = []
    num_characters = 0
    with contextlib.suppress(queue.Empty):
        while len(chunk) < MAX_CHUNK_LINES and num_characters < MAX_CHUNK_CHARACTERS:
            item = inbox.get(block=wait and not chunk)
            if not isinstance(item, Line):
                end.reached, end.error = True, item
                break
            chunk.append(item)
            num_characters += len(item.text)
    return chunk
