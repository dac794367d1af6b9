"""A process that reads one document and writes its translation: `python -m service.documents.child`.

Documents come from anyone, and reading one may take any time and memory: this process has limits of its own, and can be
killed.

Standard input and output carry frames: their length as `LENGTH`, then as many bytes.

1. In: an `Order` in JSON.
2. In: the document.
3. Out: in JSON `texts`, a list of text, type and place, and `notes`; or the `problem` of the document, and that
   is all.
4. In: the translations in JSON, a list of texts.
5. Out: the document with them.
"""

import contextlib
import json
import os
import resource
import struct
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, TypedDict

from service.documents.document import Document, DocumentOptions
from service.documents.errors import DocumentError
from service.documents.opening import open_document

LENGTH = struct.Struct(">Q")
MAX_MEMORY_BYTES = 2**29
MAX_CPU_SECONDS = 60

_NICENESS = 10  # below all that serves other calls
_LIMITS = ((resource.RLIMIT_AS, MAX_MEMORY_BYTES), (resource.RLIMIT_CPU, MAX_CPU_SECONDS), (resource.RLIMIT_CORE, 0))

Opener = Callable[[str, bytes, DocumentOptions], Document]


class Order(TypedDict):
    """What to read: the name of the document's file, and the fields of its `DocumentOptions`."""

    name: str
    columns: list[str]
    target: str
    has_all: bool


def main(opener: Opener = open_document) -> None:
    """Serve one document from standard input to standard output; end early if the other side has gone."""
    _limit()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    with contextlib.suppress(EOFError, BrokenPipeError):
        order: Order = json.loads(_frame(source))
        data = _frame(source)
        options = DocumentOptions(tuple(order["columns"]), order["target"], order["has_all"])
        document = _opened(opener, order["name"], data, options)
        if isinstance(document, str):
            _send(sink, _json({"problem": document}))
            return
        texts = [(each.text, each.mime_type.value, each.place) for each in document.texts]
        _send(sink, _json({"texts": texts, "notes": list(document.notes)}))
        _send(sink, document.written(json.loads(_frame(source))))


def _opened(opener: Opener, name: str, data: bytes, options: DocumentOptions) -> Document | str:
    """Return the document, or why it can't be read."""
    try:
        return opener(name, data, options)
    except DocumentError as error:
        return str(error)
    except MemoryError:
        return f"it takes more than {MAX_MEMORY_BYTES >> 20} MiB of memory to read; split it."
    except RecursionError:
        return "it is nested too deeply."


def _limit() -> None:
    for kind, limit in _LIMITS:
        with contextlib.suppress(OSError, ValueError):  # lower ones are in force already, or the system has none
            resource.setrlimit(kind, (limit, limit))
    os.nice(_NICENESS)


def _frame(source: BinaryIO) -> bytes:
    """Return the content of the next frame.

    Raises:
        EOFError: there is none.
    """
    (length,) = LENGTH.unpack(_exactly(source, LENGTH.size))
    return _exactly(source, length)


def _exactly(source: BinaryIO, num_bytes: int) -> bytes:
    found = source.read(num_bytes)
    if len(found) < num_bytes:
        raise EOFError
    return found


def _send(sink: BinaryIO, content: bytes) -> None:
    sink.write(LENGTH.pack(len(content)))
    sink.write(content)
    sink.flush()


def _json(document: Any) -> bytes:
    return json.dumps(document).encode("ascii")  # escapes carry half surrogate pairs, too


if __name__ == "__main__":
    main()
