"""The client's errors, made from gRPC's error of a failed call."""

from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from dragoman_client import Client, ClientError, NoServer, NotSecure, TlsAdvice
from dragoman_client.errors import client_error
from dragoman_client.pb import translation_pb2 as pb

SERVER = "translate.example:50051"


class Failure:
    """An error like gRPC's."""

    def __init__(self, code: grpc.StatusCode, details: str | None, *trailers: tuple[str, str | bytes]) -> None:
        self._code, self._details, self._trailers = code, details, trailers

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str | None:
        return self._details

    def trailing_metadata(self) -> Any:
        return self._trailers


def error_of(failure: Failure, uses_tls: bool = False) -> ClientError:
    return client_error(failure, SERVER, uses_tls=uses_tls)


def unavailable(details: str, uses_tls: bool = False) -> ClientError:
    return error_of(Failure(grpc.StatusCode.UNAVAILABLE, details), uses_tls)


def test_an_error_has_the_servers_code_field_hint_and_id() -> None:
    status = status_pb2.Status(code=8, message="full")
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason="QUEUE_FULL"))
    violation = error_details_pb2.BadRequest.FieldViolation(field="texts[3]", description="too long")
    status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[violation]))
    status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=Duration(seconds=1, nanos=500_000_000)))
    error = error_of(
        Failure(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "full",
            ("x-request-id", "id-1"),
            ("grpc-status-details-bin", status.SerializeToString()),
        )
    )
    assert type(error) is ClientError
    assert (str(error), error.code, error.request_id) == ("full", "RESOURCE_EXHAUSTED", "id-1")
    assert (error.field, error.retry_after_seconds) == ("texts[3]", 1.5)


def test_an_error_without_details_has_none() -> None:
    error = error_of(Failure(grpc.StatusCode.INTERNAL, None))
    assert (str(error), error.code, error.request_id) == ("", "INTERNAL", "")
    assert (error.field, error.retry_after_seconds) == ("", None)


def test_a_server_that_says_unavailable_is_there() -> None:
    error = error_of(Failure(grpc.StatusCode.UNAVAILABLE, "draining", ("x-request-id", "id-1")))
    assert type(error) is ClientError


def test_no_server_is_told_with_the_reason() -> None:
    error = unavailable("failed to connect to all addresses; last error: UNKNOWN: ipv4:1: Connection refused")
    assert type(error) is NoServer
    assert str(error) == f"no server answers at {SERVER} (Connection refused)."


@pytest.mark.parametrize(
    ("details", "uses_tls", "advice"),
    [
        ("x: certificate has expired", True, TlsAdvice.RENEW),
        ("x: certificate is not yet valid", True, TlsAdvice.CHECK_CLOCKS),
        ("x: CERTIFICATE_VERIFY_FAILED: y", True, TlsAdvice.TRUST),
        ("Hostname Verification Check failed.", True, TlsAdvice.RENAME),
        ("SSL_ERROR_SSL: WRONG_VERSION_NUMBER", True, TlsAdvice.OMIT_TLS),
        ("Failed to create security handshaker", True, TlsAdvice.MEND_FILES),
        ("x: Socket closed", False, TlsAdvice.USE_TLS),
        ("x: Connection reset by peer", True, TlsAdvice.SHOW_CERTIFICATE),
    ],
)
def test_a_failed_handshake_comes_with_advice(details: str, uses_tls: bool, advice: TlsAdvice) -> None:
    error = unavailable(details, uses_tls)
    assert isinstance(error, NotSecure)
    assert error.advice is advice
    assert SERVER in error.problem
    assert str(error) == f"{error.problem}; {advice.value}"


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("", ()),
        ("texts[3]", ("texts", 3)),
        ("options.beam_size", ("options", "beam_size")),
        ("terms[1].source", ("terms", 1, "source")),
    ],
)
def test_a_field_is_a_path(field: str, path: tuple[str | int, ...]) -> None:
    assert ClientError("x", "INVALID_ARGUMENT", field=field).path == path


def test_an_error_can_name_its_field_in_other_terms() -> None:
    error = ClientError("texts[3] is too long; texts[3] has 9", "INVALID_ARGUMENT", "id", "texts[3]", 1.5)
    renamed = error.renamed("line 40")
    assert str(renamed) == "line 40 is too long; texts[3] has 9"
    assert (renamed.code, renamed.request_id, renamed.field, renamed.retry_after_seconds) == (
        *(error.code, error.request_id, error.field),
        error.retry_after_seconds,
    )
    assert str(ClientError("full", "RESOURCE_EXHAUSTED").renamed("line 1")) == "full"


def test_a_list_of_models_is_asked_for_again_when_the_server_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(Failure, grpc.RpcError):
        """The error of a call that a server has no room for."""

    status = status_pb2.Status(code=8, message="full")
    status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=Duration(nanos=1_000_000)))
    trailers = ("grpc-status-details-bin", status.SerializeToString())
    failures = [Full(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", trailers) for _ in range(2)]

    def answer(*_: Any, **__: Any) -> pb.ListModelsResponse:
        if failures:
            raise failures.pop()
        return pb.ListModelsResponse(models=[pb.Model(name="tiny")])

    with Client("127.0.0.1:1") as client:
        monkeypatch.setattr(client, "_list_models", answer)
        assert [model.name for model in client.models()] == ["tiny"]
    assert failures == []
