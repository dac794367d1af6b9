"""HTTP side of the call pipeline (`service.calls.pipeline`): takes every call from its head to its last byte.

Find the route -> begin -> identify -> read the body within the byte budget -> admit -> serve -> answer, or the error in
the API's words; where there is no route, in the words of the API whose paths begin like this one. All on the server's
event loop: a call never waits for another thread.
"""

import contextlib
import logging
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from http import HTTPStatus

from service.calls.byte_budget import ByteBudget
from service.calls.metadata import REQUEST_ID_KEY, Metadata
from service.calls.open_calls import OpenCalls
from service.calls.pipeline import CallPipeline
from service.calls.stay import LARGE_BYTES, LargeMessages, Stay
from service.domain.call import TIMING_KEY, Call, server_timing
from service.domain.errors import Forbidden, ServiceError, Unavailable
from service.faces.http.answers import retry_headers
from service.faces.http.application import (
    ClientGone,
    HttpAnswer,
    HttpRequest,
    Receive,
    Scope,
    Send,
    check_head,
    end_with,
    headers_of,
    method_of,
    read_body,
    send_answer,
    send_head,
)
from service.faces.http.cors import Cors
from service.faces.http.refusals import (
    IDENTITY,
    Encoded,
    HeadRefused,
    MethodNotAllowed,
    NoSuchPath,
    Refused,
    UnknownMethod,
)
from service.faces.http.routes import Failure, Found, HttpStream, Route, Routes
from service.faces.http.same_site import PageRules

_LOG = logging.getLogger(__name__)

_NO_ROUTE = "http/no_route"  # name of all calls that are answered before it is known which they are

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

_CLOSES: Mapping[str, str] = {"Connection": "close"}


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What calls may take: bytes of one body, and bytes of all calls together."""

    max_body_bytes: int
    budget: ByteBudget


class HttpCalls:
    """The ASGI application of callers. For the server's event loop only."""

    def __init__(
        self,
        routes: Routes,
        pipeline: CallPipeline,
        open_calls: OpenCalls,
        limits: HttpLimits,
        is_closing: Callable[[], bool],
        cors: Cors,
        page_rules: PageRules | None = None,
    ) -> None:
        """Answer UNAVAILABLE once `is_closing`, and only what the rules for pages of other sites allow."""
        self._routes = routes
        self._pipeline = pipeline
        self._open_calls = open_calls
        self._limits = limits
        self._is_closing = is_closing
        self._cors = cors
        self._page_rules = page_rules
        self._large = LargeMessages()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        with contextlib.suppress(ClientGone):
            try:
                await self._answer(scope, receive, send)
            except ClientGone:
                raise
            except Exception:  # of a face: its calls' own are answered by the pipeline
                _LOG.exception("%s %s failed", scope["method"], scope["raw_path"])
                raise

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["raw_path"].decode("latin-1")
        headers = headers_of(scope)
        route: Route | None = None
        found: Found | None = None
        refused: ServiceError | None = None
        try:
            check_head(scope, METHODS)
            found = self._routes.find(path)
            if self._page_rules is not None:
                self._page_rules.check(scope["method"], headers)
            route = found.by_method.get(method_of(scope)) if found else None
        except (Refused, Forbidden) as error:
            refused = error
        metadata = tuple(headers.items())
        host, port = scope["client"] or ("", 0)
        call = self._pipeline.begin(route.name if route else _NO_ROUTE, metadata, host, f"{host}:{port}")
        sending = _Sending(send, self._cors.headers(headers.get("origin", "")), call)
        if route is not None and found is not None:
            request = HttpRequest(
                route.method, path, headers, query=scope["query_string"].decode("latin-1"), parts=found.parts
            )
            await self._take(call, route, request, metadata, receive, sending)
            return
        answer = None if refused else self._cors.preflight(scope["method"], headers)
        if answer is not None:
            self._pipeline.count(call)
        else:
            refused = refused or _no_route(scope["method"], path, found)
            failure = next(iter(found.by_method.values())).failure if found else self._routes.failure(path)
            answer = _failed(self._pipeline.refuse(call, refused), failure, call)
            if isinstance(refused, HeadRefused | UnknownMethod):
                answer = _with(answer, _CLOSES)
        await end_with(sending.named(answer), receive, send)

    async def _take(
        self, call: Call, route: Route, request: HttpRequest, metadata: Metadata, receive: Receive, sending: "_Sending"
    ) -> None:
        stay: Stay | None = None
        is_whole = False
        try:
            if route.needs_key and not route.has_own_key:
                self._pipeline.identify(call, metadata)
            stay = Stay(self._limits.budget, self._open_calls)
            max_bytes = route.max_body_bytes or self._limits.max_body_bytes
            body = await read_body(request.headers, receive, max_bytes, stay.grow)
            is_whole = True
            encoding = request.headers.get("content-encoding", "").lower()
            if body and encoding not in ("", IDENTITY):
                raise Encoded(encoding)
            if len(body) > LARGE_BYTES:
                await self._large.turn()
            stay.open()
            request = replace(request, body=body)
            if route.needs_key and route.has_own_key:
                self._pipeline.identify(call, _with_key(metadata, route.key_in(request)))
            if self._is_closing():
                raise Unavailable("the server is stopping", advice="try again, another server may answer")
            if route.queues:  # probes are answered under load
                self._pipeline.admit(lambda: route.priority(request))
        except ClientGone:
            self._pipeline.count(call, "CANCELLED")
            raise
        except Exception as error:
            answer = _failed(self._pipeline.refuse(call, error), route.failure, call)
            if is_whole:
                await sending.answer(answer if not self._is_closing() else _with(answer, _CLOSES))
            else:
                await end_with(_with(sending.named(answer), _CLOSES), receive, sending.send)
        else:
            await self._serve(route, request, call, metadata, sending)
        finally:
            if stay is not None:
                stay.end()

    async def _serve(
        self, route: Route, request: HttpRequest, call: Call, metadata: Metadata, sending: "_Sending"
    ) -> None:
        async def work() -> HttpAnswer | None:
            answer = await route.handle(request)
            if isinstance(answer, HttpAnswer):
                return answer
            sending.stream = answer
            async with aclosing(answer.parts) as parts:
                async for part in parts:
                    await sending.part(part)
            return None

        try:
            answer = await self._pipeline.serve(call, work, metadata)
        except ServiceError as error:
            if sending.has_begun and sending.stream is not None:
                await sending.end(sending.stream.failed(error, call))
                return
            answer = _failed(error, route.failure, call)
        if answer is None:
            await sending.end()
        else:
            await sending.answer(answer)


class _Sending:
    """The sending of one call's answer, whole or in parts, with the headers that every answer has."""

    def __init__(self, send: Send, headers: Mapping[str, str], call: Call) -> None:
        """Add `headers`, and what there is to tell of the call."""
        self.send = send
        self._call = call
        self.stream: HttpStream | None = None
        self.has_begun = False
        self._headers = headers

    def named(self, answer: HttpAnswer) -> HttpAnswer:
        """Return the answer with the call's id and timing."""
        call = self._call
        headers = {**self._headers, **answer.headers, REQUEST_ID_KEY: call.request_id}
        if call.num_texts:
            headers[TIMING_KEY] = server_timing(call.seconds, call.total_seconds)
        return replace(answer, headers=headers)

    async def answer(self, answer: HttpAnswer) -> None:
        """Send a whole answer."""
        await send_answer(self.send, self.named(answer))

    async def part(self, part: bytes) -> None:
        """Send a part of a stream, after its head."""
        if not self.has_begun:
            await self._begin()
        await self.send({"type": "http.response.body", "body": part, "more_body": True})

    async def end(self, part: bytes = b"") -> None:
        """End a stream."""
        if not self.has_begun:
            await self._begin()
        await self.send({"type": "http.response.body", "body": part})

    async def _begin(self) -> None:
        assert self.stream is not None, "there is no stream"
        self.has_begun = True
        headers = {"content-type": self.stream.content_type, **self._headers, **self.stream.headers}
        await send_head(self.send, HTTPStatus.OK, {**headers, REQUEST_ID_KEY: self._call.request_id})


def _with(answer: HttpAnswer, headers: Mapping[str, str]) -> HttpAnswer:
    return replace(answer, headers={**answer.headers, **headers}) if headers else answer


def _with_key(metadata: Metadata, key: str) -> Metadata:
    return (("x-api-key", key), *metadata) if key else metadata


def _failed(error: ServiceError, failure: Failure, call: Call) -> HttpAnswer:
    """Return an error in the words of its API, with what HTTP itself has to say."""
    answer = _with(failure(error, call), retry_headers(error))
    return _with(replace(answer, status=error.status), error.headers) if isinstance(error, Refused) else answer


def _no_route(method: str, path: str, found: Found | None) -> Refused:
    return MethodNotAllowed(method, sorted(found.by_method)) if found else NoSuchPath(path)
