"""Google Cloud Translation's API."""

import time
from collections.abc import Sequence
from functools import partial

from google.protobuf import json_format
from google.protobuf.message import Message

from service.domain.call import CallKind
from service.domain.errors import InvalidRequest, Path, quoted
from service.faces.google.failures import failure_of_v3
from service.faces.google.methods import FINISH_REASONS_KEY, REQUESTS, GoogleMethods
from service.faces.google.parameters import KEY, own_fields
from service.faces.google.rules import KINDS, RULES, UNSUPPORTED_RULES, Rule, refusal
from service.faces.google.v2 import V2
from service.faces.grpc.json_messages import message_from_json, message_of
from service.faces.http.answers import JSON, in_json
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.bodies import content_type, form_of, is_json
from service.faces.http.routes import Handle, Route
from service.translation.translator import Translator


class Google:
    """Google Cloud Translation's API, in both versions. All methods belong to the event loop's thread."""

    def __init__(self, translator: Translator, default_deadline_seconds: float) -> None:
        self._methods = GoogleMethods(translator)
        self._v2 = V2(translator, self._methods, default_deadline_seconds)
        self._default_deadline_seconds = default_deadline_seconds

    def routes(self) -> Sequence[Route]:
        return (
            *self._v2.routes(),
            *(_route(rule, partial(self._answer, rule)) for rule in RULES),
            *(_route(rule, partial(_refuse, rule)) for rule in UNSUPPORTED_RULES),
        )

    async def _answer(self, rule: Rule, request: HttpRequest) -> HttpAnswer:
        deadline = time.monotonic() + self._default_deadline_seconds
        answer, reasons = await self._methods.answer(rule.name, message_from(rule, request), deadline)
        return in_json(json_format.MessageToDict(answer), {FINISH_REASONS_KEY: reasons} if reasons else {})


def message_from(rule: Rule, request: HttpRequest) -> Message:
    """Return the message of a request's path, and its body or query; raise `InvalidRequest` if there is none."""
    kind = REQUESTS[rule.name]
    fields = own_fields(form_of(request.query))
    if rule.has_body:
        if fields:
            raise InvalidRequest("{path} is unknown", _named(fields[0][0]), advice="give fields in the body")
        if not is_json(request):
            raise InvalidRequest("Content-Type is {given}", given=content_type(request), allowed=JSON)
        message = message_from_json(request.body, kind)
    else:
        document: dict[str, str] = {}
        for name, value in fields:
            if name in document:
                raise InvalidRequest("{path} is given twice", _named(name), advice="give it once")
            document[name] = value
        message = message_of(document, kind, "query")
    field, bound = rule.bound(request.parts)
    if (also := getattr(message, field)) not in ("", bound):
        raise InvalidRequest("{path} is {also}, and {bound} in the URL", Path(field), also=also, bound=bound)
    setattr(message, field, bound)
    return message


async def _refuse(rule: Rule, request: HttpRequest) -> HttpAnswer:
    raise refusal(rule.name)


def _route(rule: Rule, handle: Handle) -> Route:
    return Route(
        rule.method,
        rule.path,
        f"http/google.v3/{rule.name}",
        handle,
        failure_of_v3,
        kind=KINDS.get(rule.name, CallKind.OTHER),
        key_in=KEY.find,
        queues=rule.method != "GET",
    )


def _named(field: str) -> Path:
    return Path(quoted(field)[1:-1])
