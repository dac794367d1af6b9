"""The Open Inference Protocol: `faces/kserve/methods.py` in JSON, with the paths and statuses of Triton.

See its `inference_rest.md`, and Triton's extensions: binary data, model configuration, model repository, statistics.
"""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from http import HTTPStatus

from service.domain.call import Call, CallKind
from service.domain.errors import Forbidden, ServiceError
from service.domain.translation import Priority
from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from service.faces.http.answers import failure_in_json, in_json, status_of_error
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.routes import Route
from service.faces.http.same_site import has_own_origin
from service.faces.kserve.http_messages import (
    IndexBody,
    ModelBody,
    answer_of,
    binary_outputs,
    document_of,
    fill,
    infer_body_of,
    infer_request,
    parsed,
)
from service.faces.kserve.messages import priority_of
from service.faces.kserve.methods import KServeMethods, refusal

BINARY_DATA = "binary_tensor_data"  # Triton's name of the extension

_MODEL = "/v2/models/{name}"
_VERSION = f"{_MODEL}/versions/{{version}}"


class KServe:
    """The Open Inference Protocol. All methods belong to the event loop's thread."""

    def __init__(self, methods: KServeMethods, default_deadline_seconds: float) -> None:
        self._methods = methods
        self._default_deadline_seconds = default_deadline_seconds

    def routes(self) -> Sequence[Route]:
        """Return the routes of this API. Those that need no key need none over gRPC either."""
        route = partial(Route, failure=failure)
        quick = partial(route, queues=False)
        translate = partial(route, kind=CallKind.TRANSLATE, priority=_priority)
        routes = [
            quick("GET", "/v2/health/live", "http/kserve/live", self.live, needs_key=False),
            quick("GET", "/v2/health/ready", "http/kserve/ready", self.ready, needs_key=False),
            quick("GET", "/v2", "http/kserve/metadata", self.metadata),
            quick("GET", "/v2/models/stats", "http/kserve/model_stats", self.model_stats),
        ]
        for model in (_MODEL, _VERSION):
            routes += (
                quick("GET", f"{model}/ready", "http/kserve/model_ready", self.model_ready),
                quick("GET", model, "http/kserve/model_metadata", self.model_metadata),
                quick("GET", f"{model}/config", "http/kserve/model_config", self.model_config),
                quick("GET", f"{model}/stats", "http/kserve/model_stats", self.model_stats),
                translate("POST", f"{model}/infer", "http/kserve/infer", self.infer),
            )
        for repository in ("/v2/repository", "/v2/repository/{repository}"):
            one = f"{repository}/models/{{name}}"
            routes += (
                quick("POST", f"{repository}/index", "http/kserve/repository_index", self.repository_index),
                quick("POST", f"{one}/load", "http/kserve/load", self.load),
                quick("POST", f"{one}/unload", "http/kserve/unload", self.unload),
            )
        for method, path, name in _refused():
            routes.append(quick(method, path, f"http/kserve/{name}", partial(_refuse, name)))
        return routes

    async def live(self, request: HttpRequest) -> HttpAnswer:
        return _status_answer("live", self._methods.server_live())

    async def ready(self, request: HttpRequest) -> HttpAnswer:
        return _status_answer("ready", self._methods.server_ready())

    async def model_ready(self, request: HttpRequest) -> HttpAnswer:
        name, version = _model_of(request)
        return _status_answer("ready", self._methods.model_ready(name, version), name=name)

    async def metadata(self, request: HttpRequest) -> HttpAnswer:
        return in_json(document_of(self._methods.server_metadata(BINARY_DATA)))

    async def model_metadata(self, request: HttpRequest) -> HttpAnswer:
        return in_json(document_of(self._methods.model_metadata(*_model_of(request))))

    async def model_config(self, request: HttpRequest) -> HttpAnswer:
        return in_json(document_of(self._methods.model_config(*_model_of(request)).config))

    async def model_stats(self, request: HttpRequest) -> HttpAnswer:
        return in_json(document_of(self._methods.model_statistics(*_model_of(request))))

    async def infer(self, request: HttpRequest) -> HttpAnswer:
        body, data = infer_body_of(request)
        is_binary = binary_outputs(body)
        message = infer_request(_model_of(request), body, data)
        response = await self._methods.infer(message, time.monotonic() + self._default_deadline_seconds)
        return answer_of(response, is_binary)

    async def repository_index(self, request: HttpRequest) -> HttpAnswer:
        only_ready = parsed(request.body, IndexBody).ready
        index = await self._methods.repository_index(_repository_of(request), only_ready=only_ready)
        return in_json(document_of(index)["models"])

    async def load(self, request: HttpRequest) -> HttpAnswer:
        _check_origin(request)
        parameters = parsed(request.body, ModelBody).given
        await self._methods.load(_repository_of(request), request.parts["name"], parameters)
        return in_json({})

    async def unload(self, request: HttpRequest) -> HttpAnswer:
        _check_origin(request)
        parsed(request.body, ModelBody)
        await self._methods.unload(_repository_of(request), request.parts["name"])
        return in_json({})


def failure(error: ServiceError, _: Call) -> HttpAnswer:
    return failure_in_json({"error": str(error)}, status_of_error(error))


def _status_answer(word: str, is_so: bool, **more: str) -> HttpAnswer:
    """Return the answer to a probe; its status is all that counts: 400 for no, as Triton's."""
    return in_json({**more, word: is_so}, status=HTTPStatus.OK if is_so else HTTPStatus.BAD_REQUEST)


def _model_of(request: HttpRequest) -> tuple[str, str]:
    return request.parts.get("name", ""), request.parts.get("version", "")


def _repository_of(request: HttpRequest) -> str:
    return request.parts.get("repository", "")


def _priority(request: HttpRequest) -> Priority:
    body, _ = infer_body_of(request)
    message = pb.ModelInferRequest()
    fill(message.parameters, body.given)
    return priority_of(message)


def _check_origin(request: HttpRequest) -> None:
    """Reject a request from another site's page, even one that may call."""
    if not has_own_origin(request.headers):
        raise Forbidden(
            "Origin is {origin}",
            origin=request.headers.get("origin", ""),
            advice="pages of other sites may not load or unload models",
        )


def _refused() -> Iterator[tuple[str, str, str]]:
    for method in ("GET", "POST"):
        yield method, "/v2/trace/setting", "trace_setting"
        yield method, f"{_MODEL}/trace/setting", "trace_setting"
        yield method, "/v2/logging", "log_settings"
    for kind in ("systemsharedmemory", "cudasharedmemory"):
        for regions in (f"/v2/{kind}", f"/v2/{kind}/region/{{region}}"):
            yield "GET", f"{regions}/status", "shared_memory"
            yield "POST", f"{regions}/unregister", "shared_memory"
        yield "POST", f"/v2/{kind}/region/{{region}}/register", "shared_memory"
    for model in (_MODEL, _VERSION):
        yield "POST", f"{model}/generate", "generate"
        yield "POST", f"{model}/generate_stream", "generate"


async def _refuse(name: str, request: HttpRequest) -> HttpAnswer:
    raise refusal(name)
