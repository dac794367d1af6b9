"""The current call: its id, its caller, and what it did when.

Each call has one record, `current_call` in all of its tasks, to which only the event loop's thread writes; trailers,
the access log and spans are made from it.
"""

import enum
import socket
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from service.domain.grants import EVERYTHING, Grants
from service.domain.translation import Translation

TIMING_KEY = "server-timing"
NO_ID = "-"  # outside of a call
_MAPPED = bytes(10) + b"\xff\xff"  # IPv4 addresses on a dual-stack socket

# To whom a call belongs, for everything that is shared fairly among callers. From the outside in: the caller, parts of
# it such as a connection, and last the call itself. Only ever compared. No part is chosen by callers, unlike request
# ids, so none can pose as another caller or as several.
Origin = tuple[Hashable, ...]


def origin_of_call(*caller: Hashable) -> Origin:
    """Return the origin of a new call of a caller, such as its host and connection, or the name of its key."""
    return (*caller, object())


def host_of_address(address: str) -> str:
    """Return the host of an IP address, for IPv6 its /64 network, in which it may choose addresses; else the text."""
    if ":" not in address:
        return address
    try:
        packed = socket.inet_pton(socket.AF_INET6, address.partition("%")[0])
    except (OSError, ValueError):
        return address
    if packed.startswith(_MAPPED):
        return socket.inet_ntop(socket.AF_INET, packed[len(_MAPPED) :])
    return socket.inet_ntop(socket.AF_INET6, packed[:8] + bytes(8))


class Phase(enum.Enum):
    """The phases of a call, in order; its parts, such as texts of different languages, pass them independently."""

    __hash__ = object.__hash__  # as in `Priority`

    TOKENIZE = "tokenize"
    QUEUE = "queue"  # until the first of its sequences has slots
    ENCODE = "encode"  # the encoder run of that sequence
    DECODE = "decode"  # from there until the last of its sequences has ended
    DETOKENIZE = "detokenize"


class CallKind(enum.StrEnum):
    """The kind of a call: metrics tell calls that translate from all others.

    Declared where a method of an API is. The duration of a stream or a document depends on its length and its reader.
    """

    __hash__ = str.__hash__  # as in `Priority`

    TRANSLATE = "translate"
    STREAM = "stream"
    DOCUMENT = "document"
    OTHER = "other"


ENGINE_PHASES = (Phase.QUEUE, Phase.ENCODE, Phase.DECODE)


Interval = tuple[Phase, float, float]  # when a phase began and ended, on `time.monotonic()`'s clock


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of sources and translations within the last minute, and how many are allowed; a quota of 0 is no limit."""

    num_tokens: int = 0
    quota: int = 0


class Accounts(Protocol):
    """Records callers' token usage."""

    def charge(self, name: str, num_tokens: int) -> None: ...

    def usage(self, caller: "Caller") -> TokenUsage: ...


@dataclass(frozen=True, slots=True)
class Caller:
    """The name of a caller's API key, and the key as it was sent."""

    name: str
    key: str = field(repr=False)
    accounts: Accounts = field(repr=False)


@dataclass(slots=True, eq=False)
class Call:
    """One call.

    `caller` is `None` if no API key was required; `trace_id` is empty unless the trace is recorded. `model` is the
    first one used. Token counts include cached ones; characters are counted of documents only.
    """

    method: str = ""
    request_id: str = NO_ID
    origin: Origin = ()
    caller: Caller | None = None
    protocol: str = ""  # the value of OpenTelemetry's `rpc.system.name`, such as grpc; empty for plain HTTP
    kind: CallKind = CallKind.OTHER
    grants: Grants = EVERYTHING
    began_seconds: float = field(default_factory=time.monotonic)
    ended_seconds: float = 0.0
    code: str = "OK"  # the name of its status in google.rpc.Code
    message: str = ""  # the error, without the caller's texts
    trace_id: str = ""
    model: str = ""
    model_version: str = ""
    texts: Sequence[str] = ()  # the caller's, until the call has been observed; see `forget`
    num_texts: int = 0
    num_characters: int = 0
    translates: bool = True  # its texts; else it only asks for their language
    has_begun: bool = False  # to answer with a stream
    num_source_tokens: int = 0
    num_output_tokens: int = 0
    intervals: list[Interval] = field(default_factory=list)

    @property
    def key_name(self) -> str:
        return self.caller.name if self.caller else ""

    @property
    def total_seconds(self) -> float:
        return (self.ended_seconds or time.monotonic()) - self.began_seconds

    @property
    def is_answered(self) -> bool:
        """Return whether it counts as answered: a stream does that its caller leaves before the end."""
        return self.code == "OK" or (self.has_begun and self.code == "CANCELLED")

    def asks_for(self, texts: Sequence[str], *, translates: bool = True) -> None:
        self.texts, self.num_texts, self.translates = texts, len(texts), translates

    def characters(self) -> int:
        """Return the number of characters to translate, as the caller sent them; call it before `forget`."""
        return self.num_characters or (sum(map(len, self.texts)) if self.translates else 0)

    def forget(self) -> None:
        """Drop what is large: gRPC keeps failed calls' records until garbage is collected, idle workers their last."""
        self.texts = ()

    def uses(self, model: str, version: str) -> None:
        if not self.model:
            self.model, self.model_version = model, version

    def another(self) -> "Call":
        """Return a new call of the same caller, such as the next request on a stream."""
        origin = origin_of_call(*self.origin[:-1])
        return Call(self.method, self.request_id, origin, self.caller, self.protocol, self.kind)

    def charge(self, num_tokens: int) -> None:
        if self.caller:
            self.caller.accounts.charge(self.caller.name, num_tokens)

    def end(self) -> None:
        self.ended_seconds = self.ended_seconds or time.monotonic()

    def translated(self, translations: Iterable[Translation]) -> None:
        for each in translations:
            self.num_source_tokens += each.num_source_tokens
            self.num_output_tokens += each.hypotheses[0].num_tokens

    def seconds(self, phase: Phase) -> float:
        """Return how long any part of the call was in a phase; overlapping intervals count once."""
        own: Interval | None = None
        for interval in self.intervals:
            if interval[0] is phase:
                if own is not None:
                    return self._seconds_once(phase)
                own = interval
        return max(own[2] - own[1], 0.0) if own is not None else 0.0  # of most calls there is one

    def _seconds_once(self, phase: Phase) -> float:
        total = until = 0.0
        for _, began, ended in sorted(each for each in self.intervals if each[0] is phase):
            total += max(ended - max(began, until), 0.0)
            until = max(until, ended)
        return total


_current: ContextVar[Call | None] = ContextVar("call", default=None)


def begin_call(call: Call) -> None:
    """Make this call the current one of this task and of the tasks that it starts."""
    _current.set(call)


def current_call() -> Call:
    """Return the call that this task serves; outside of one, a record that is discarded."""
    return _current.get() or Call()


def server_timing(seconds: Callable[[Phase], float], total_seconds: float) -> str:
    """Return the milliseconds of the engine's phases and of the whole call, in the format of W3C's Server-Timing."""
    queue, encode, decode = map(seconds, ENGINE_PHASES)
    return (
        f"queue;dur={1000 * queue:.1f}, encode;dur={1000 * encode:.1f}, decode;dur={1000 * decode:.1f}, "
        f"total;dur={1000 * total_seconds:.1f}"
    )
