"""Receives a call's body: first its sender is identified, then room is made, then the rest is read."""

from dataclasses import dataclass, replace

from service.calls.open_calls import PIECE_BYTES, ByteBudget, CallHold, LargeMessages
from service.calls.pipeline import CallPipeline, Metadata, api_key_in
from service.domain.call import Call
from service.domain.errors import Unauthenticated
from service.faces.http.application import HttpRequest
from service.faces.http.bodies import content_type
from service.faces.http.exchange import Exchange
from service.faces.http.multipart import MULTIPART, FormReader
from service.faces.http.refusals import IDENTITY, BodyTooLarge, Encoded
from service.faces.http.routes import Route

# Of a body while it is not known whose call it is.
MAX_UNKNOWN_BYTES = PIECE_BYTES
_WITHOUT_BODY = ("GET", "DELETE")  # methods; what comes nevertheless is received, but nothing large


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits on calls: bytes of one body, and bytes of all calls together."""

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
        """Return the request with its body, and assign the call to the caller of the route's key.

        Until the caller is known, if one must be, nothing is held, and only the beginning of the body is received; then
        what has arrived is held. Raise a `ServiceError` if the caller is unknown, the body too large, too slow or
        malformed, or there is no room; `ClientGone` if the client disconnects.
        """
        size = exchange.head.body_bytes
        max_bytes = route.max_body_bytes or self._limits.max_body_bytes
        if not route.needs_key or route.method in _WITHOUT_BODY:
            max_bytes = MAX_UNKNOWN_BYTES
        if size > max_bytes:
            raise BodyTooLarge(str(size), max_bytes)
        if size and (encoding := request.headers.get("content-encoding", "").lower()) not in ("", IDENTITY):
            raise Encoded(encoding)
        reception = _Reception(request)
        identification = _Identification(self._pipeline, call, route, metadata)
        is_known = identification.by(reception, is_last=not size)
        if route.needs_key and not is_known and size > MAX_UNKNOWN_BYTES and not reception.is_form:
            raise _no_key()
        if not is_known:
            exchange.know(is_known=False)
        with self._limits.budget.arriving(hold, exchange.fail):
            if is_known:
                await self._begin(call, exchange, hold, reception)
            while part := await exchange.read():
                if is_known:
                    hold.grow(len(part))
                await reception.feed(part)
                if reception.num_bytes > max_bytes:
                    raise BodyTooLarge(f"more than {max_bytes}", max_bytes)
                if is_known or not route.needs_key:
                    continue
                if reception.is_form and reception.is_worth_a_look() and identification.by(reception):
                    is_known = True
                    await self._begin(call, exchange, hold, reception)
                elif reception.num_bytes >= MAX_UNKNOWN_BYTES:
                    raise _no_key()
            if route.needs_key and not is_known:
                identification.by(reception, is_last=True)
                await self._begin(call, exchange, hold, reception)
        await reception.end()
        if reception.num_bytes > PIECE_BYTES and not reception.is_form:
            await self._large.turn(call.origin[:1])
        return reception.request()

    async def _begin(self, call: Call, exchange: Exchange, hold: CallHold, reception: "_Reception") -> None:
        """Hold what has arrived, now that its owner is known, and let the rest arrive."""
        if call.key_name:
            exchange.trust()
        hold.begin(self._pipeline.owner(call), reception.num_bytes)
        if not exchange.is_known:
            exchange.know(is_known=True)
        await reception.read_fields()


class _Reception:
    """The part of a body that has arrived."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self.is_form = request.method == "POST" and content_type(request) == MULTIPART
        self._form: FormReader | None = None
        self._parts: list[bytes] = []
        self._num_looked_at = 0
        self.num_bytes = 0

    async def feed(self, part: bytes) -> None:
        self.num_bytes += len(part)
        if self._form is not None:
            await self._form.feed(part)
        else:
            self._parts.append(part)

    def is_worth_a_look(self) -> bool:
        """Return whether the body has doubled since the last look, so that all looks together cost little."""
        if self.num_bytes < min(2 * self._num_looked_at, MAX_UNKNOWN_BYTES):
            return False
        self._num_looked_at = self.num_bytes
        return True

    async def read_fields(self) -> None:
        if self.is_form:
            self._form = FormReader(self._request.headers)
            parts, self._parts = self._parts, []
            for part in parts:
                await self._form.feed(part)

    async def end(self) -> None:
        if self._form is not None:
            await self._form.feed(b"")

    def request(self) -> HttpRequest:
        if self._form is not None:
            return replace(self._request, form=tuple(self._form.parts))
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        return replace(self._request, body=body)


class _Identification:
    """Identifies a caller: by a key in the headers, else where the API has keys, in the query or the body.

    Without keys the caller is its host. Calls that need no key where others do are nobody's.
    """

    def __init__(self, pipeline: CallPipeline, call: Call, route: Route, metadata: Metadata) -> None:
        self._pipeline = pipeline
        self._call = call
        self._route = route
        self._metadata = metadata

    def by(self, reception: _Reception, *, is_last: bool = False) -> bool:
        """Identify the caller by what has arrived, and return whether it is known, or else more must arrive.

        Raise `Unauthenticated` if the key is unknown or expired, or if there is none and this `is_last`.
        """
        if not self._route.needs_key or not self._pipeline.asks_for_keys:
            return self._route.needs_key
        metadata = self._metadata
        has_key = bool(api_key_in(metadata))
        if not has_key and self._route.has_own_key:
            key = self._route.key_in(reception.request())
            has_key, metadata = bool(key), (("x-api-key", key), *metadata) if key else metadata
        if has_key or is_last or not self._route.has_own_key:
            self._pipeline.identify(self._call, metadata)
            return True
        return False


def _no_key() -> Unauthenticated:
    return Unauthenticated(
        "there is no API key in the first {size} bytes",
        size=MAX_UNKNOWN_BYTES,
        advice="send it in a header, or as the first field of the form",
    )
