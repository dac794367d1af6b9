"""Authentication of callers by API key, and enforcement of their quotas."""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.calls.keys import Key, KeyRing, read_keys, unknown_names
from service.config.watched_files import WatchedFiles, warn_if_world_readable
from service.domain.call import Caller, TokenUsage
from service.domain.errors import Public, QuotaExceeded, Unauthenticated, counted
from service.domain.grants import EVERYTHING, Grants
from service.observe.metrics import Metrics

_LOG = logging.getLogger(__name__)

MINUTE = 60.0

_WHAT_TO_SEND = "send one as metadata 'authorization: Bearer KEY' or 'x-api-key: KEY'"


@dataclass(slots=True)
class _Window:
    """The amounts of one minute of the clock and of the minute before it."""

    number: int  # of the minute
    before: int = 0
    current: int = 0


class Usage:
    """The amount of something used within the last minute, by name.

    A sliding window counter keeps two numbers, for this minute and the one before, of which a share counts; not every
    token.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Read the time in seconds from `clock`, which must not jump, as that of the day does when it is set."""
        self._clock = clock
        self._windows: dict[str, _Window] = {}

    def add(self, name: str, amount: int) -> None:
        if amount:
            window, _ = self._now(name)
            window.current += amount
            self._windows[name] = window

    def of(self, name: str) -> int:
        window, left = self._now(name)
        return math.ceil(window.before * left / MINUTE + window.current)

    def seconds_until_below(self, name: str, quota: int) -> float:
        """Return the seconds until the last minute's usage is below `quota`, if nothing is added; 0 if it is now."""
        window, left = self._now(name)
        if window.before * left / MINUTE + window.current < quota:
            return 0.0
        if window.current < quota:  # enough of the minute before leaves the window within this minute
            return left - (quota - window.current) * MINUTE / window.before
        return left + MINUTE * (1 - quota / window.current)

    def _now(self, name: str) -> tuple[_Window, float]:
        minute, seconds = divmod(self._clock(), MINUTE)
        window = self._windows.get(name) or _Window(int(minute))
        passed = int(minute) - window.number
        if passed:
            window = _Window(int(minute), before=window.current if passed == 1 else 0)
        return window, MINUTE - seconds


class Gate:
    """The keys of a file and the usage of their quotas, by name. `refresh` may run on another thread."""

    def __init__(self, path: Path, metrics: Metrics) -> None:
        self._path = path
        self._metrics = metrics
        self._files: WatchedFiles[KeyRing] = WatchedFiles([path], lambda: read_keys(path))
        self._requests, self._tokens = Usage(), Usage()
        self._num_calls: Counter[str] = Counter()
        self._num_works: Counter[str] = Counter()
        self._unknown: list[str] = []  # what was logged
        self._took_over()

    def refresh(self) -> bool:
        """Read the file again if it has changed. A key's usage stays under its name; calls in progress are finished."""
        if has_changed := self._files.refresh():
            self._took_over()
        return has_changed

    def caller(self, key: str) -> Caller:
        return Caller(self._good(key).name, key, self)

    @contextmanager
    def call(self, caller: Caller, *, takes_tokens: bool = True) -> Iterator[Grants]:
        """Count a call during the `with` block, which gets its grants; a token quota rejects only what takes tokens."""
        key = self._good(caller.key)
        name, quotas = key.name, key.quotas
        try:
            _check_concurrency(key, self._num_calls[name], "call")
            if takes_tokens:
                _check(self._tokens, name, quotas.tokens_per_minute, "token")
            _check(self._requests, name, quotas.requests_per_minute, "request")
        except QuotaExceeded:
            self._metrics.key_refused(name)
            raise
        if quotas.requests_per_minute:
            self._requests.add(name, 1)
        self._metrics.key_called(name, key.digits)
        self._num_calls[name] += 1
        try:
            yield key.grants
        finally:
            self._num_calls[name] -= 1

    @contextmanager
    def work(self, caller: Caller) -> Iterator[Grants]:
        """Count work that outlasts its call, such as a document, during the `with` block, which gets its grants.

        Its quota is that of calls, but counted apart: while it runs, the caller may poll its progress.
        """
        key = self._good(caller.key)
        try:
            _check_concurrency(key, self._num_works[key.name], "document")
        except QuotaExceeded:
            self._metrics.key_refused(key.name)
            raise
        self._num_works[key.name] += 1
        try:
            yield key.grants
        finally:
            self._num_works[key.name] -= 1

    def charge(self, name: str, num_tokens: int) -> None:
        """Charge a key for tokens that a call has used. If they exceed the quota, the key's next calls wait longer."""
        self._tokens.add(name, num_tokens)
        self._metrics.key_used(name, num_tokens)

    def usage(self, caller: Caller) -> TokenUsage:
        key = self._good(caller.key)
        return TokenUsage(self._tokens.of(key.name), key.quotas.tokens_per_minute)

    def _good(self, given: str) -> Key:
        if not given:
            raise Unauthenticated("this server requires an API key", advice=_WHAT_TO_SEND)
        key = self._files.current.find(given)
        if key is None:
            raise Unauthenticated("the API key is unknown", advice="check it for typos, or ask for a new one")
        if key.has_expired:
            raise Unauthenticated(
                "the API key {key} expired at {expires:%Y-%m-%d %H:%M:%S %Z}",
                key=Public(key.name),
                expires=key.expires,
                advice="ask for a new one",
            )
        return key

    def check_names(self, models: Iterable[str], glossaries: Iterable[str]) -> None:
        """Log once each model and glossary that a key may use and that is not among these."""
        unknown = unknown_names(self._restricted, models, glossaries)
        for problem in unknown:
            if problem not in self._unknown:
                _LOG.warning("%s (API keys): %s.", self._path, problem)
        self._unknown = unknown

    def _took_over(self) -> None:
        warn_if_world_readable(self._path, "API keys")
        keys = self._files.current
        self._restricted = [key for key in keys if key.grants is not EVERYTHING]
        self._metrics.knows_keys(keys.names)


def _check_concurrency(key: Key, number: int, what: str) -> None:
    most = key.quotas.concurrent_calls
    if 0 < most <= number:
        raise QuotaExceeded(
            "key {key} has {running} in progress",
            key=Public(key.name),
            running=Public(counted(number, what)),
            allowed=f"{most} at a time",
            advice="wait for one to end",
        )


def _check(usage: Usage, name: str, quota: int, unit: str) -> None:
    pause = usage.seconds_until_below(name, quota) if quota else 0.0
    if pause > 0.0:
        raise QuotaExceeded(
            "key {key} has used up its quota of {quota} per minute",
            pause,
            key=Public(name),
            quota=Public(counted(quota, unit)),
            unit=Public(unit),  # which DeepL's API tells apart
            advice=f"try again in {pause:.1f} s",
        )
