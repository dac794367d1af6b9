"""The routing table: path and method to handler and error format."""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from service.domain.call import Call, CallKind
from service.domain.errors import ServiceError
from service.domain.translation import Priority
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.forms import unquoted

_MOST_SEGMENTS = 4  # of a path, that tell which API it is of
_PART = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class HttpStream:
    """An answer that is sent as it grows: an error before its first part is answered as any other."""

    content_type: str
    parts: AsyncGenerator[bytes]
    failed: Callable[[ServiceError, Call], bytes]  # the last part, after an error
    headers: Mapping[str, str] = field(default_factory=dict)


Handle = Callable[[HttpRequest], Awaitable[HttpAnswer | HttpStream]]
Failure = Callable[[ServiceError, Call], HttpAnswer]


def _no_key(_: HttpRequest) -> str:
    return ""


def _normal(_: HttpRequest) -> Priority:
    return Priority.NORMAL


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path.

    `{name}` in `path` stands for any text without a slash. `name` is the call's, for metrics, logs and traces; `kind`
    says there whether it translates. `failure` formats an error for the API. `key_in` finds a key in the query or the
    body, or its beginning, where the API has such; headers come first. `priority` reads a call's priority, where a
    normal one would be rejected. A call that never `queues`, as no model works for it, is answered under overload, and
    when its key's tokens are used up. Bodies have at most `max_body_bytes`; 0 means the server's limit for all calls.
    """

    method: str
    path: str
    name: str
    handle: Handle
    failure: Failure
    kind: CallKind = CallKind.OTHER
    key_in: Callable[[HttpRequest], str] = _no_key
    priority: Callable[[HttpRequest], Priority] = _normal
    needs_key: bool = True
    queues: bool = True
    max_body_bytes: int = 0

    @property
    def has_own_key(self) -> bool:
        return self.key_in is not _no_key


@dataclass(frozen=True, slots=True)
class Found:
    """The routes of a path, by method, and the path's open parts, as sent."""

    by_method: Mapping[str, Route]
    open_parts: Mapping[str, str]

    @property
    def parts(self) -> Mapping[str, str]:
        if not self.open_parts:
            return self.open_parts
        sent = ((name, part.encode("latin-1")) for name, part in self.open_parts.items())
        return {name: unquoted(part).decode("utf-8", "replace") for name, part in sent}


_NO_PARTS: Mapping[str, str] = MappingProxyType({})


class Routes:
    """All routes, by path."""

    def __init__(self, routes: Iterable[Route], prefix: str = "") -> None:
        """Take all routes; a path may have `prefix` before it, such as `/mt`, where a proxy passes it on."""
        self.all = tuple(routes)
        self._prefix = prefix
        self._fixed: dict[str, Found] = {}
        self._open: dict[re.Pattern[str], dict[str, Route]] = {}
        self._failures: dict[str, Failure] = {}
        by_path: dict[str, dict[str, Route]] = {}
        for route in self.all:
            there = by_path.setdefault(route.path, {})
            assert route.method not in there, f"{route.method} {route.path} is there twice"
            there[route.method] = route
            for beginning in _beginnings(_PART.split(route.path)[0]):
                self._failures.setdefault(beginning, route.failure)
        # Of two that match, the one with more fixed text is meant: {name}:translateText before {name}.
        for path, there in sorted(by_path.items(), key=lambda each: -len(_PART.sub("", each[0]))):
            if _PART.search(path):
                self._open[_pattern(path)] = there
            else:
                self._fixed[path] = Found(there, _NO_PARTS)

    def find(self, path: str) -> Found | None:
        """Return the routes of a path, as sent.

        Without one, the path is tried without the server's prefix, and with single slashes and none at its end: clients
        produce those from an address that ends with one.
        """
        return self._exact(path) or self._exact(self._plain(path))

    def _plain(self, path: str) -> str:
        plain = with_single_slashes(path)
        if self._prefix and f"{plain}/".startswith(f"{self._prefix}/"):
            plain = plain[len(self._prefix) :] or "/"
        return plain

    def _exact(self, path: str) -> Found | None:
        found = self._fixed.get(path)
        if found is not None:
            return found
        for pattern, there in self._open.items():
            if match := pattern.fullmatch(path):
                return Found(there, match.groupdict())
        return None

    def failure(self, path: str) -> Failure:
        """Return the error format of the first API whose paths begin most like `path`, which has no route."""
        path = self._plain(path)
        known = (self._failures[each] for each in _beginnings(path) if each in self._failures)
        return next(known, self.all[0].failure)


def with_single_slashes(path: str) -> str:
    return "/" + "/".join(filter(None, path.split("/")))


def _beginnings(path: str) -> Iterator[str]:
    segments = path.split("/", _MOST_SEGMENTS)[1:_MOST_SEGMENTS]
    for number in range(len(segments), 0, -1):
        yield "/".join(segments[:number])


def _pattern(path: str) -> re.Pattern[str]:
    places = _PART.split(path)  # text, name, text, ...
    # A colon means the same percent-encoded, as some clients send it.
    texts = [re.escape(text).replace(":", "(?::|%3[Aa])") for text in places]
    return re.compile("".join(f"(?P<{p}>[^/]+)" if i % 2 else texts[i] for i, p in enumerate(places)))
