"""Operators' calls over HTTP, run on the event loop and through the same pipeline as all calls."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from google.protobuf import json_format

from service.calls.pipeline import CallPipeline
from service.domain.call import CallKind, current_call
from service.domain.errors import Public, ServiceError, Unavailable
from service.faces.dragoman.messages import request_from_pb, result_to_pb
from service.faces.grpc.json_messages import message_from_json
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.models.control import ModelControl
from service.models.reload_plan import ReloadOutcome
from service.process.lifecycle import Phase
from service.translation.translator import Translator

Document = dict[str, Any]

_OPERATORS = "operators"  # count as one caller, as a key's name or a peer's address does

T = TypeVar("T")


class AdminCalls:
    """Operators' calls.

    All methods belong to the event loop's thread, and raise only ServiceError. `headers` have lower-case names, and may
    hold a request id, a trace context and an API key, whose quotas then apply.
    """

    def __init__(
        self,
        translator: Translator,
        control: ModelControl,
        reload: Callable[[], Awaitable[ReloadOutcome]],
        pipeline: CallPipeline,
        phase: Callable[[], Phase],
        deadline_seconds: float,
    ) -> None:
        self._translator = translator
        self._control = control
        self._reload = reload
        self._pipeline = pipeline
        self._phase = phase
        self._deadline_seconds = deadline_seconds

    async def translate(self, body: bytes, headers: Mapping[str, str]) -> Document:
        """Translate as `TranslationService.Translate`, with messages in protobuf's JSON and the .proto's names."""

        async def translated() -> Document:
            deadline = time.monotonic() + self._deadline_seconds
            message = await asyncio.to_thread(message_from_json, body, pb.TranslateRequest)
            call = current_call()
            call.asks_for(message.texts)
            request = request_from_pb(message, deadline)
            response = result_to_pb(await self._translator.translate(request))
            return json_format.MessageToDict(response, preserving_proto_field_name=True)

        return await self._served("translate", translated, headers, CallKind.TRANSLATE)

    async def models(self) -> Document:
        states = await self._control.states()
        documents = [{"name": s.name, "version": s.version, "state": s.state.value, "reason": s.reason} for s in states]
        return {"models": documents}

    async def load(self, name: str, headers: Mapping[str, str]) -> Document:
        return await self._served("load", lambda: _done(self._control.load(name)), headers)

    async def unload(self, name: str, headers: Mapping[str, str]) -> Document:
        return await self._served("unload", lambda: _done(self._control.unload(name)), headers)

    async def reload(self, headers: Mapping[str, str]) -> Document:
        """Reload as on SIGHUP, and return the outcome. It is completed even if the caller disconnects."""

        async def reloaded() -> Document:
            return {"outcome": (await asyncio.shield(asyncio.ensure_future(self._reload()))).value}

        return await self._served("reload", reloaded, headers)

    async def _served(
        self,
        name: str,
        work: Callable[[], Awaitable[T]],
        headers: Mapping[str, str],
        kind: CallKind = CallKind.OTHER,
    ) -> T:
        metadata = tuple(headers.items())
        call = self._pipeline.begin(f"admin/{name}", metadata, _OPERATORS, kind=kind)
        try:
            self._pipeline.identify(call, metadata, needs_key=False)
        except ServiceError as error:
            raise self._pipeline.refuse(call, error) from None

        async def done() -> T:
            self._check_phase()
            return await work()

        return await self._pipeline.serve(call, done, metadata)

    def _check_phase(self) -> None:
        phase = self._phase()
        if not phase.is_ready:
            raise Unavailable(
                "the server is {phase}", phase=Public(phase.value), advice=f"try again when it is {Phase.SERVING.value}"
            )


async def _done(work: Awaitable[None]) -> Document:
    await work
    return {}
