"""Receiving of a call's body: first who sends it, then room for it, then the rest of it."""

from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace

from service.calls.byte_budget import ByteBudget
from service.calls.call_hold import PIECE_BYTES, CallHold, LargeMessages
from service.calls.metadata import Metadata, api_key_in
from service.calls.pipeline import CallPipeline
from service.domain.call import Call
from service.domain.errors import InvalidRequest, Unauthenticated
from service.faces.http.application import HttpRequest
from service.faces.http.bodies import content_type
from service.faces.http.exchange import Exchange
from service.faces.http.multipart import MULTIPART, FormReader
from service.faces.http.refusals import IDENTITY, BodyTooLarge, Encoded
from service.faces.http.routes import Route

# Of a body that may contain its caller's key, as long as the key is not known.
MAX_UNKNOWN_BYTES = PIECE_BYTES


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What calls may take: bytes of one body, and bytes of all calls together."""

    max_body_bytes: int
    budget: ByteBudget


class Intake:
    """Receives bodies within the server's byte limit. For the event loop's thread only."""

    def __init__(self, pipeline: CallPipeline, limits: HttpLimits) -> None:
        self._pipeline = pipeline
        self._limits = limits
        self._large = LargeMessages()

    async def receive(
        self, call: Call, route: Route, request: HttpRequest, metadata: Metadata, exchange: Exchange, hold: CallHold
    ) -> HttpRequest:
        """Return the request with its body, and assign the call to the caller that the route's key tells.

        Raises:
            ServiceError: the caller is unknown, or the body too large, too slow or malformed, or there is no room.
            ClientGone: the client disconnected.
        """
        size = exchange.head.body_bytes
        max_bytes = route.max_body_bytes or self._limits.max_body_bytes
        if size > max_bytes:
            raise BodyTooLarge(str(size), max_bytes)
        if size and (encoding := request.headers.get("content-encoding", "").lower()) not in ("", IDENTITY):
            raise Encoded(encoding)
        reception = _Reception(request)
        identification = _Identification(self._pipeline, call, route, metadata)
        identification.by(lambda: request)
        if not identification.is_done and size > MAX_UNKNOWN_BYTES and not reception.is_form:
            raise _no_key()
        exchange.know(is_known=identification.is_done)
        num_held = 0
        with self._limits.budget.arriving(hold, exchange.fail):
            while True:
                num_needed = max(size, reception.num_bytes)  # what is announced, or in chunks what has arrived
                if identification.is_done and num_held < num_needed:
                    exchange.know(is_known=True)
                    hold.belong_to(call.key_name)
                    hold.grow(num_needed - num_held)
                    num_held = num_needed
                part = await exchange.read()
                await reception.feed(part)
                if reception.num_bytes > max_bytes:
                    raise BodyTooLarge(f"more than {max_bytes}", max_bytes)
                if not part:
                    break
                if not identification.is_done and reception.is_form:
                    identification.by(reception.request)
                if not identification.is_done and reception.num_bytes >= MAX_UNKNOWN_BYTES:
                    raise _no_key()
        if reception.num_bytes > PIECE_BYTES and not reception.is_form:
            await self._large.turn(call.origin[:1])
        request = reception.request()
        identification.by(lambda: request, is_last=True)
        return request


class _Reception:
    """A body, or as much of it as has arrived."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        has_form = request.method == "POST" and content_type(request) == MULTIPART
        self._form = FormReader(request.headers) if has_form else None
        self._parts: list[bytes] = []
        self.num_bytes = 0

    @property
    def is_form(self) -> bool:
        """Return whether its fields can be read before the end."""
        return self._form is not None

    async def feed(self, part: bytes) -> None:
        """Take the next part, or the end."""
        self.num_bytes += len(part)
        if self._form is not None:
            await self._form.feed(part)
        elif part:
            self._parts.append(part)

    def request(self) -> HttpRequest:
        """Return the request with what has arrived."""
        if self._form is not None:
            return replace(self._request, form=tuple(self._form.parts))
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        return replace(self._request, body=body)


class _Identification:
    """Finds out who calls: by a key in the headers, else where the API has its keys, in the query or in the body."""

    def __init__(self, pipeline: CallPipeline, call: Call, route: Route, metadata: Metadata) -> None:
        self._pipeline = pipeline
        self._call = call
        self._route = route
        self._metadata = metadata
        self.is_done = not (pipeline.asks_for_keys and route.needs_key)

    def by(self, request: Callable[[], HttpRequest], *, is_last: bool = False) -> None:
        """Identify the caller of this request, which may be incomplete unless it `is_last`.

        Raises:
            Unauthenticated: the key is unknown or has expired, or there is none and no more to come.
        """
        if self.is_done:
            return
        metadata = self._metadata
        has_key = bool(api_key_in(metadata))
        if not has_key and self._route.has_own_key:
            with nullcontext() if is_last else suppress(InvalidRequest):  # a body that is incomplete
                key = self._route.key_in(request())
                has_key, metadata = bool(key), (("x-api-key", key), *metadata) if key else metadata
        if has_key or is_last or not self._route.has_own_key:
            self._pipeline.identify(self._call, metadata)
            self.is_done = True


def _no_key() -> Unauthenticated:
    return Unauthenticated(
        "there is no API key in the first {size} bytes",
        size=MAX_UNKNOWN_BYTES,
        advice="send it in a header, or as the first field of the form",
    )
