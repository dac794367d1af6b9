"""Calls over gRPC for tests: requests of the tiny model's pair to each API, and the errors that calls end with."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as google_pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2_grpc as google_grpc
from service.faces.grpc.pb.inference import grpc_service_pb2 as kserve_pb
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as kserve_grpc
from tests.patience import patient

_PAIR = {"source_language_code": "en", "target_language_code": "de"}


def request_of(texts: Iterable[str], **fields: Any) -> pb.TranslateRequest:
    """Return a request of our own API."""
    return pb.TranslateRequest(texts=texts, **(_PAIR | fields))


def google_request(contents: Iterable[str], **fields: Any) -> google_pb.TranslateTextRequest:
    """Return a request of Google's API."""
    return google_pb.TranslateTextRequest(contents=contents, **({"parent": "projects/p"} | _PAIR | fields))


def infer_request(*texts: str, **languages: Iterable[str]) -> kserve_pb.ModelInferRequest:
    """Return a request of KServe's API; `languages` are further tensors: `source_language=["en"]`."""
    request = kserve_pb.ModelInferRequest(model_name="tiny")
    for name, values in {"text": texts, **languages}.items():
        elements = [value.encode() for value in values]
        tensor = request.inputs.add(name=name, datatype="BYTES", shape=[len(elements)])
        tensor.contents.bytes_contents.extend(elements)
    return request


@contextmanager
def stub_of(address: str, **options: int) -> Iterator[pb_grpc.TranslationServiceStub]:
    """Connect to our own API; `options` are those of gRPC's channels that begin with "grpc."."""
    given = [(f"grpc.{name}", value) for name, value in options.items()]
    with grpc.insecure_channel(address, options=given) as channel:
        yield pb_grpc.TranslationServiceStub(channel)


def ways_of(channel: grpc.Channel) -> dict[str, Callable[..., Any]]:
    """Return how to send texts to each method that translates, as in `ways["Translate"](["Hello"], metadata=...)`.

    Each returns its call when it has ended.
    """
    own = pb_grpc.TranslationServiceStub(channel)
    kserve = kserve_grpc.GRPCInferenceServiceStub(channel)

    def unary(method: Any, request: Callable[[Iterable[str]], Any]) -> Callable[..., Any]:
        return lambda texts, **how: method.with_call(request(texts), timeout=patient(30), **how)[1]

    def stream(method: Any, request: Callable[[Iterable[str]], Any]) -> Callable[..., Any]:
        def send(texts: Iterable[str], **how: Any) -> Any:
            call = method(request(texts), timeout=patient(30), **how)
            assert list(call)
            return call

        return send

    return {
        "Translate": unary(own.Translate, request_of),
        "TranslateStream": stream(own.TranslateStream, request_of),
        "TranslateText": unary(google_grpc.TranslationServiceStub(channel).TranslateText, google_request),
        "ModelInfer": unary(kserve.ModelInfer, lambda texts: infer_request(*texts)),
        "ModelStreamInfer": stream(kserve.ModelStreamInfer, lambda texts: iter([infer_request(*texts)])),
    }


WAYS = ("Translate", "TranslateStream", "TranslateText", "ModelInfer", "ModelStreamInfer")


def refused(call: Callable[..., Any], *arguments: Any, **how: Any) -> Any:
    """Return the error that a call ends with, a stream after its last message."""
    try:
        answer = call(*arguments, **({"timeout": patient(30)} | how))
        if hasattr(answer, "__next__"):
            answer = list(answer)
    except grpc.RpcError as error:
        return error
    raise AssertionError(f"it was answered: {answer!r:.500}")


def outcome(call: Callable[..., Any], request: Any, timeout: float) -> tuple[grpc.StatusCode, str]:
    """Make one call; return its status and details."""
    try:
        call(request, timeout=timeout)
    except grpc.RpcError as error:
        return error.code(), error.details() or ""
    return grpc.StatusCode.OK, ""


def detail_of(error: Any, kind: Any) -> Any:
    """Return the message of this kind, of `google.rpc`, among an error's details, or `None`."""
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        found = kind()
        if detail.Unpack(found):
            return found
    return None


def retry_seconds(error: Any) -> float:
    """Return how long the caller is to wait, on which details and trailers must agree."""
    seconds: float = detail_of(error, error_details_pb2.RetryInfo).retry_delay.ToTimedelta().total_seconds()
    trailers = dict(error.trailing_metadata())
    assert int(trailers["grpc-retry-pushback-ms"]) == round(1000 * seconds)
    return seconds
