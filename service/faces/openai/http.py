"""OpenAI's API: chat completions and responses that translate, and the language pairs as models, which v1 lists."""

import itertools
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from http import HTTPStatus

from service.calls.failures import code_of
from service.domain.call import Call, CallKind, current_call
from service.domain.errors import NotFound, Path, ServiceError, Unimplemented, dotted
from service.domain.options import RequestedOptions
from service.domain.translation import TranslationRequest
from service.faces.http.answers import EVENTS, STREAM_HEADERS, event_bytes, in_json, spell, status_of_error
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.bodies import json_of
from service.faces.http.refusals import Refused
from service.faces.http.routes import HttpStream, Route
from service.faces.openai import messages
from service.faces.openai.messages import pair_of
from service.translation.translator import Translator

_CODES = {HTTPStatus.UNAUTHORIZED: "invalid_api_key", HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_exceeded"}
_LANGUAGES = {"source_language_code": "model", "target_language_code": "model"}
_OF_CHAT = {**_LANGUAGES, "texts": "messages", "num_hypotheses": "n", "max_output_tokens": "max_tokens"}
_OF_RESPONSES = {**_LANGUAGES, "texts": "input", "max_output_tokens": "max_output_tokens"}


class OpenAI:
    """OpenAI's API. All methods belong to the event loop's thread."""

    def __init__(self, translator: Translator, default_deadline_seconds: float) -> None:
        self._translator = translator
        self._default_deadline_seconds = default_deadline_seconds

    def routes(self) -> Sequence[Route]:
        # One text each, so that those which ask for a stream take about as long as the others.
        translate = partial(Route, kind=CallKind.TRANSLATE)
        in_responses = partial(failure, names=_OF_RESPONSES)
        model = partial(Route, name="http/openai/model", handle=self.model, failure=failure, queues=False)
        return (
            translate("POST", "/v1/chat/completions", "http/openai/chat_completions", self.complete, failure),
            translate("POST", "/v1/responses", "http/openai/responses", self.respond, in_responses),
            *(model("GET", path) for path in ("/v1/models/{name}", "/v1/models/{owner}/{name}")),
        )

    async def complete(self, request: HttpRequest) -> HttpAnswer | HttpStream:
        """Translate the last message of the user, whole or as it grows."""
        body = json_of(request, messages.ChatBody)
        options = {"num_hypotheses": body.n if body.n != 1 else None}
        most = body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
        translation_request = self._request(body.model, messages.text_of(body), most, options)
        about = {"id": f"chatcmpl-{current_call().request_id}", "created": int(time.time()), "model": body.model}
        if body.stream:
            if options["num_hypotheses"] is not None:
                raise Unimplemented("{path} is not supported in streams", Path("n"), advice="leave it or stream out")
            with_usage = bool(body.stream_options and body.stream_options.include_usage)
            return HttpStream(EVENTS, self._parts(translation_request, about, with_usage), _failed, STREAM_HEADERS)
        result = await self._translator.translate(translation_request)
        return in_json(messages.completion(about, result.translations[0]))

    async def respond(self, request: HttpRequest) -> HttpAnswer | HttpStream:
        """Translate the last message of the input, whole or as it grows."""
        body = json_of(request, messages.ResponseBody)
        translation_request = self._request(body.model, messages.text_of(body), body.max_output_tokens, {})
        about = {"id": current_call().request_id, "created_at": int(time.time()), "model": body.model}
        if body.stream:
            events = self._events(translation_request, about)
            return HttpStream(EVENTS, events, _event_of_failure, STREAM_HEADERS)
        result = await self._translator.translate(translation_request)
        return in_json(messages.response(about, result.translations[0]))

    def _request(self, model: str, text: str, most: int | None, options: messages.Document) -> TranslationRequest:
        """Return the request; most tools ask for many more tokens than any text takes."""
        current_call().asks_for((text,))
        pair = pair_of(model, self._translator.catalogue())
        if most is not None and most < pair.max_output_tokens:
            options = {**options, "max_output_tokens": most}
        return TranslationRequest(
            texts=(text,),
            source_language_code=pair.source,
            target_language_code=pair.target,
            model=pair.model,
            options=RequestedOptions(**options),
            deadline_seconds=time.monotonic() + self._default_deadline_seconds,
        )

    async def _parts(
        self, translation_request: TranslationRequest, about: messages.Document, with_usage: bool
    ) -> AsyncGenerator[bytes]:
        delta = {"role": "assistant"}
        async with aclosing(self._translator.stream(translation_request)) as events:
            async for event in events:
                yield event_bytes(messages.chunk(about, {**delta, "content": event.delta}))
                delta = {}
                if event.translation is not None:
                    yield event_bytes(messages.chunk(about, {}, event.translation))
                    if with_usage:
                        yield event_bytes(messages.usage_chunk(about, event.translation))
        yield b"data: [DONE]\n\n"

    async def _events(self, translation_request: TranslationRequest, about: messages.Document) -> AsyncGenerator[bytes]:
        numbers = itertools.count()

        def sent(documents: Iterable[messages.Document]) -> bytes:
            numbered = ({**each, "sequence_number": next(numbers)} for each in documents)
            return b"".join(event_bytes(each, each["type"]) for each in numbered)

        beginning = messages.events_before(about)
        async with aclosing(self._translator.stream(translation_request)) as events:
            async for event in events:
                yield sent([*beginning, messages.delta_event(about, event.delta)])
                beginning = ()
                if event.translation is not None:
                    yield sent(messages.events_after(about, event.translation))

    async def model(self, request: HttpRequest) -> HttpAnswer:
        name = "/".join(request.parts[part] for part in ("owner", "name") if part in request.parts)
        pair_of(name, self._translator.catalogue())
        return in_json(messages.model_entry(name))


def failure(error: ServiceError, call: Call, names: Mapping[str, str] = _OF_CHAT) -> HttpAnswer:
    """Return an error as OpenAI does, with its names of fields: https://platform.openai.com/docs/guides/error-codes."""
    return in_json(_document(error, names), status=_status(error))


def _failed(error: ServiceError, call: Call) -> bytes:
    return event_bytes(_document(error, _OF_CHAT))


def _event_of_failure(error: ServiceError, call: Call) -> bytes:
    return event_bytes({"type": "error", **_document(error, _OF_RESPONSES)}, "error")


def _document(error: ServiceError, names: Mapping[str, str]) -> messages.Document:
    spell(error, names, partial(_spelled, names))
    status, field = _status(error), error.field or None
    kind = "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    code = _CODES.get(status, code_of(error).lower())
    if isinstance(error, NotFound) and error.resource_type == "model":
        field, code = "model", "model_not_found"
    return {"error": {"message": str(error), "type": kind, "param": field, "code": code}}


def _status(error: ServiceError) -> HTTPStatus:
    """Return HTTP's status; OpenAI's clients try again on all from 500 on."""
    is_missing = isinstance(error, Unimplemented) and not isinstance(error, Refused)
    return HTTPStatus.BAD_REQUEST if is_missing else status_of_error(error)


def _spelled(names: Mapping[str, str], path: Path) -> str:
    """Return a field's name here: the text is no list, and options have no group."""
    return names.get(str(path[-1])) or names.get(str(path[0])) or dotted(path)
