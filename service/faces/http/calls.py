"""HTTP side of the call pipeline (`service.calls.pipeline`): takes every call from its head to its last byte.

Find the route -> begin -> identify -> read the body within the byte budget -> admit -> serve -> answer, or the error in
the API's words; where there is no route, in the words of the API whose paths begin like this one. All on the server's
event loop: a call never waits for another thread.
"""

from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from http import HTTPStatus

from service.calls.open_calls import PIECE_BYTES, CallHold, OpenCalls
from service.calls.pipeline import REQUEST_ID_KEY, CallPipeline, Metadata
from service.domain.call import TIMING_KEY, Call, CallKind, server_timing
from service.domain.errors import Forbidden, ServiceError, Unavailable
from service.faces.http.answers import retry_headers
from service.faces.http.application import HttpAnswer, HttpRequest, check_head, method_of, send_answer
from service.faces.http.exchange import ClientGone, Exchange
from service.faces.http.intake import HttpLimits, Intake
from service.faces.http.refusals import (
    HeadRefused,
    MethodNotAllowed,
    NoSuchPath,
    Refused,
    UnknownMethod,
)
from service.faces.http.routes import Failure, Found, HttpStream, Route, Routes
from service.faces.http.same_site import Cors, PageRules

_NO_ROUTE = "http/no_route"  # name of all calls that are answered before it is known which they are

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

_CLOSES: Mapping[str, str] = {"Connection": "close"}


class HttpCalls:
    """The application of callers. For the server's event loop only."""

    def __init__(
        self,
        routes: Routes,
        pipeline: CallPipeline,
        open_calls: OpenCalls,
        limits: HttpLimits,
        is_closing: Callable[[], bool],
        is_draining: Callable[[], bool],
        cors: Cors,
        page_rules: PageRules | None = None,
    ) -> None:
        """Answer UNAVAILABLE once `is_closing`, and only what the rules for pages of other sites allow.

        Once it `is_draining`, each answer ends its connection, so that the client's next call goes to another server.
        """
        pipeline.knows((route.name, route.kind) for route in routes.all)
        self._routes = routes
        self._pipeline = pipeline
        self._open_calls = open_calls
        self._budget = limits.budget
        self._intake = Intake(pipeline, limits)
        self._is_closing = is_closing
        self._is_draining = is_draining
        self._cors = cors
        self._page_rules = page_rules

    async def __call__(self, exchange: Exchange) -> None:
        head = exchange.head
        route: Route | None = None
        found: Found | None = None
        refused: ServiceError | None = None
        try:
            check_head(head, METHODS)
            found = self._routes.find(head.path)
            if self._page_rules is not None:
                self._page_rules.check(head.method, head.headers)
            route = found.by_method.get(method_of(head)) if found else None
        except (Refused, Forbidden) as error:
            refused = error
        metadata = tuple(head.headers.items())
        host, port = exchange.peer
        name, kind = (route.name, route.kind) if route else (_NO_ROUTE, CallKind.OTHER)
        call = self._pipeline.begin(name, metadata, host, f"{host}:{port}", kind=kind)
        always = self._cors.headers(head.headers.get("origin", ""))
        sending = _Sending(exchange, always, call, self._is_draining)
        if route is not None and found is not None:
            await self._take(call, route, found, metadata, sending)
            return
        answer = None if refused else self._cors.preflight(head.method, head.headers)
        if answer is not None:
            self._pipeline.count(call)
        else:
            if refused is None:
                refused = MethodNotAllowed(head.method, sorted(found.by_method)) if found else NoSuchPath(head.path)
            failure = next(iter(found.by_method.values())).failure if found else self._routes.failure(head.path)
            answer = _failed(self._pipeline.refuse(call, refused), failure, call)
            if isinstance(refused, HeadRefused | UnknownMethod):
                answer = _with(answer, _CLOSES)
        await sending.answer(answer)

    async def _take(self, call: Call, route: Route, found: Found, metadata: Metadata, sending: "_Sending") -> None:
        head = sending.exchange.head
        hold = CallHold(self._budget, self._open_calls)
        request = HttpRequest(route.method, head.path, head.headers, query=head.query, hold=hold)
        try:
            request = await self._intake.receive(call, route, request, metadata, sending.exchange, hold)
            hold.open()
            if found.open_parts:
                request = replace(request, parts=found.parts)
            if self._is_closing():
                raise Unavailable("the server is stopping", advice="try again, another server may answer")
            if route.queues:  # probes are answered under load
                self._pipeline.admit(lambda: route.priority(request))
        except ClientGone:
            self._pipeline.count(call, "CANCELLED")
            raise
        except Exception as error:
            await sending.answer(_failed(self._pipeline.refuse(call, error), route.failure, call))
        else:
            await self._serve(route, request, call, metadata, sending, hold)
        finally:
            hold.end()

    async def _serve(
        self,
        route: Route,
        request: HttpRequest,
        call: Call,
        metadata: Metadata,
        sending: "_Sending",
        hold: CallHold,
    ) -> None:
        async def work() -> HttpAnswer | None:
            answer = await route.handle(request)
            if isinstance(answer, HttpAnswer):
                # Smaller ones have room beside the call itself; what needs no key holds nothing.
                if len(answer.body) > PIECE_BYTES and hold.num_bytes:
                    hold.grow(len(answer.body))
                return answer
            sending.stream = answer
            async with aclosing(answer.parts) as parts:
                async for part in parts:
                    await sending.part(part)
            return None

        try:
            answer = await self._pipeline.serve(call, work, metadata, takes_tokens=route.queues)
        except ServiceError as error:
            if sending.exchange.has_begun and sending.stream is not None:
                await sending.end(sending.stream.failed(error, call))
                return
            answer = _failed(error, route.failure, call)
        if answer is None:
            await sending.end()
        else:
            await sending.answer(answer)


class _Sending:
    """Sends one call's answer, whole or in parts, with the headers of every answer."""

    def __init__(self, exchange: Exchange, headers: Mapping[str, str], call: Call, is_last: Callable[[], bool]) -> None:
        self.exchange = exchange
        self._call = call
        self.stream: HttpStream | None = None
        self._headers = headers
        self._is_last = is_last

    async def answer(self, answer: HttpAnswer) -> None:
        call = self._call
        headers = {**self._always(), **answer.headers, REQUEST_ID_KEY: call.request_id}
        if call.num_texts:
            headers[TIMING_KEY] = server_timing(call.seconds, call.total_seconds)
        await send_answer(self.exchange, replace(answer, headers=headers))

    async def part(self, part: bytes) -> None:
        if not self.exchange.has_begun:
            await self._begin()
        await self.exchange.send_part(part)

    async def end(self, part: bytes = b"") -> None:
        if not self.exchange.has_begun:
            await self._begin()
        await self.exchange.end(part)

    async def _begin(self) -> None:
        assert self.stream is not None, "there is no stream"
        headers = {"content-type": self.stream.content_type, **self._always(), **self.stream.headers}
        await self.exchange.begin(HTTPStatus.OK, {**headers, REQUEST_ID_KEY: self._call.request_id})

    def _always(self) -> Mapping[str, str]:
        return {**self._headers, **_CLOSES} if self._is_last() else self._headers


def _with(answer: HttpAnswer, headers: Mapping[str, str]) -> HttpAnswer:
    return replace(answer, headers={**answer.headers, **headers}) if headers else answer


def _failed(error: ServiceError, failure: Failure, call: Call) -> HttpAnswer:
    answer = _with(failure(error, call), retry_headers(error))
    return _with(replace(answer, status=error.status), error.headers) if isinstance(error, Refused) else answer
