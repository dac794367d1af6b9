"""Errors as statuses with details."""

from typing import Any

import pytest
from google.rpc import error_details_pb2, status_pb2

from service.calls.failures import CODES
from service.domain import errors
from service.faces.grpc.status import status_of
from tests.unit.faces.test_failures import STATUSES


@pytest.mark.parametrize("error", [error for error, *_ in STATUSES])
def test_every_error_keeps_its_message_and_has_a_reason_for_programs(error: errors.ServiceError) -> None:
    status, info = status_of(error), error_details_pb2.ErrorInfo()
    assert status.message == str(error)
    assert details(status).details[-1].Unpack(info)
    assert (info.reason, info.domain) == (error.reason.upper(), "dragoman")


def test_only_the_servers_own_faults_are_internal() -> None:
    internal = {kind for kind, code in CODES.items() if code == "INTERNAL"}
    assert internal == {errors.EngineFailure, errors.ServiceError}


def details(status: Any) -> Any:
    trailers = dict(status.trailing_metadata)
    return status_pb2.Status.FromString(trailers["grpc-status-details-bin"])


def test_an_invalid_request_names_its_field() -> None:
    status = status_of(errors.TooLong("texts[3] is too long", "texts[3]"))
    message = details(status)
    assert (message.code, message.message) == (3, "texts[3] is too long")
    bad_request = error_details_pb2.BadRequest()
    assert message.details[0].Unpack(bad_request)
    assert bad_request.field_violations[0].field == "texts[3]"
    (only,) = details(status_of(errors.InvalidRequest("no field"))).details
    assert not only.Is(error_details_pb2.BadRequest.DESCRIPTOR)


def test_what_is_not_found_is_named_in_short() -> None:
    resource = error_details_pb2.ResourceInfo()
    assert details(status_of(errors.NotFound("no", "model", "x" * 10_000))).details[0].Unpack(resource)
    assert (resource.resource_type, resource.resource_name) == ("model", "x" * 255)


def test_equal_refusals_are_made_once_and_all_others_for_themselves() -> None:
    first = status_of(errors.Overloaded("full", 1.5))
    assert status_of(errors.Overloaded("full", 1.5)) is first
    others = [errors.Overloaded("Full", 1.5), errors.Overloaded("full", 1.6), errors.QuotaExceeded("full", 1.5)]
    assert len({status_of(each) for each in (*others, errors.Overloaded("full", 1.5))}) == 4


@pytest.mark.parametrize(("seconds", "milliseconds"), [(1.5, 1500), (0.0, 1), (0.0123, 12), (60.0, 60_000)])
def test_an_overloaded_server_says_when_to_come_back(seconds: float, milliseconds: int) -> None:
    status = status_of(errors.Overloaded("full", seconds))
    retry_info = error_details_pb2.RetryInfo()
    assert details(status).details[0].Unpack(retry_info)
    assert retry_info.retry_delay.ToMilliseconds() == milliseconds
    assert dict(status.trailing_metadata)["grpc-retry-pushback-ms"] == str(milliseconds)
