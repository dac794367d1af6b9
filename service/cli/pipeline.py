"""Concurrent calls over a stream of texts; results come in order, memory stays bounded."""

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar, Unpack

from dragoman_client import Client, FinishReason, MimeType, RequestFields, StreamEvent, Translation
from service.domain.translation import MAX_CHUNK_CHARACTERS, MAX_CHUNK_TEXTS
from service.text.sentence_ends import sentence_ends

# Of 64 slots, 6 calls kept 18 in use, 10 some 22, 12 no more (`benchmarks.cli_file`); others would wait in the queue.
MAX_CALLS = 10

# Of a text that is too long for one call: a server also bounds the sentences of a call, by default to 4,096.
_PART_CHARACTERS = 8 * 2**10


@dataclass(frozen=True, slots=True)
class Calls:
    """The settings of a command's calls."""

    client: Client
    source: str
    target: str
    fields: RequestFields

    def translate(self, texts: Sequence[str], **others: Unpack[RequestFields]) -> list[Translation]:
        """Translate texts in one call; a plain text that is too long for one, which comes alone, in several."""
        fields: RequestFields = {**self.fields, **others}
        is_plain = fields.get("mime_type", MimeType.PLAIN) is MimeType.PLAIN
        if is_plain and len(texts) == 1 and len(texts[0]) > MAX_CHUNK_CHARACTERS:
            parts = parts_of(texts[0], self.source)
            return [joined([self.client.translate([part], self.source, self.target, **fields)[0] for part in parts])]
        return self.client.translate(texts, self.source, self.target, **fields)

    def stream(self, text: str) -> Iterator[StreamEvent]:
        return self.client.stream([text], self.source, self.target, **self.fields)


def parts_of(text: str, language_code: str, longest: int = _PART_CHARACTERS) -> Iterator[str]:
    """Cut a text into parts of up to so many characters: between sentences, else at white space, else anywhere."""
    start = end = 0
    for next_end in (*sentence_ends(text, language_code), len(text)):
        if next_end - start > longest and end > start:
            yield text[start:end]
            start = end
        while next_end - start > longest:
            space = text.rfind(" ", start, start + longest)
            cut = space + 1 if space >= start else start + longest
            yield text[start:cut]
            start = cut
        end = next_end
    yield text[start:]


def joined(parts: Sequence[Translation]) -> Translation:
    """Return the translation of a text whose parts were translated; of its hypotheses, those that all parts have."""
    reasons = [part.finish_reason for part in parts]
    return replace(
        parts[0],
        text="".join(part.text for part in parts),
        hypotheses=tuple(
            replace(each[0], text="".join(part.text for part in each), score=None)
            for each in zip(*(part.hypotheses for part in parts), strict=False)
        ),
        finish_reason=next((each for each in reasons if each is not FinishReason.STOP), FinishReason.STOP),
        num_source_tokens=sum(part.num_source_tokens for part in parts),
        segments=tuple(segment for part in parts for segment in part.segments),
    )


class HasText(Protocol):
    """A line, or another source of a text."""

    @property
    def text(self) -> str: ...


Item = TypeVar("Item", bound=HasText)
Answer = TypeVar("Answer")


def map_chunks(
    items: Iterable[Item], call: Callable[[list[Item]], list[Answer]]
) -> Iterator[list[tuple[Item, Answer]]]:
    """Call with items in chunks, several at a time; yield each chunk once it and all before it are answered.

    A chunk takes the available items and never waits for more, so a slow writer's lines are answered immediately. A
    thread of its own reads `items`, and may keep running if the caller stops early.
    """
    inbox = _Inbox(items)
    running: deque[tuple[list[Item], Future[list[Answer]]]] = deque()
    calls = ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="call")
    try:
        while True:
            while len(running) < MAX_CALLS:
                chunk = inbox.take(wait=not running)
                if not chunk:
                    break
                running.append((chunk, calls.submit(call, chunk)))
            if not running:
                break
            chunk, future = running.popleft()
            yield list(zip(chunk, future.result(), strict=True))
    finally:
        calls.shutdown(wait=False, cancel_futures=True)
    if inbox.error is not None:
        raise inbox.error


class _Inbox(Generic[Item]):
    """Items read by a thread of its own, and the error that ended reading, if any."""

    def __init__(self, items: Iterable[Item]) -> None:
        self.error: BaseException | None = None
        self._has_ended = False
        self._next: Item | None = None  # taken from the queue and left for the next chunk
        self._queue: queue.Queue[Item | _End] = queue.Queue(maxsize=MAX_CALLS * MAX_CHUNK_TEXTS)
        threading.Thread(target=self._read, args=(items,), name="reader", daemon=True).start()

    def take(self, *, wait: bool) -> list[Item]:
        """Take the available items; if `wait`, at least one unless the input has ended."""
        chunk: list[Item] = []
        num_characters = 0
        while len(chunk) < MAX_CHUNK_TEXTS and (item := self._peek(block=wait and not chunk)) is not None:
            num_characters += len(item.text)
            if chunk and num_characters > MAX_CHUNK_CHARACTERS:
                break
            chunk.append(item)
            self._next = None
        return chunk

    def _peek(self, *, block: bool) -> Item | None:
        if self._next is None and not self._has_ended:
            with contextlib.suppress(queue.Empty):
                item = self._queue.get(block=block)
                if isinstance(item, _End):
                    self._has_ended, self.error = True, item.error
                else:
                    self._next = item
        return self._next

    def _read(self, items: Iterable[Item]) -> None:
        error: BaseException | None = None
        try:
            for item in items:
                self._queue.put(item)
        except BaseException as raised:
            error = raised
        self._queue.put(_End(error))


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None
