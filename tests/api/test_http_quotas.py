"""A caller's quotas are one for all APIs, and each tells in its own words that one is used up."""

from pathlib import Path

import grpc
import pytest
from google.rpc import error_details_pb2

from service.calls.keys import Quotas, new_key
from tests.api.http_faces import FACES, send
from tests.gate import Gate
from tests.grpc_calls import detail_of, refused, request_of, retry_seconds, stub_of
from tests.http_caller import Reply, call
from tests.http_post import form_of
from tests.key_files import BOB, write_keys
from tests.patience import patient
from tests.servers import InProcessServer, Serve, distinct_texts

METADATA = (("x-api-key", BOB),)


def send_file(server: InProcessServer) -> Reply:
    body, content_type = form_of("a.txt", "station", {"target_language_code": "de"})
    return call(server.http_url, "POST", "/v1/files", body=body, content_type=content_type, x_api_key=BOB)


@pytest.mark.parametrize(
    ("quotas", "problem", "status_of_deepl"),
    [
        (Quotas(requests_per_minute=1), "requests", 429),
        (Quotas(tokens_per_minute=1), "tokens", 456),  # waiting for a second or two is no use
        (Quotas(concurrent_calls=1), "1 calls in progress, and at most 1", 429),
    ],
    ids=["requests", "tokens", "concurrent"],
)
def test_what_is_used_up_is_used_up_on_every_api(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quotas: Quotas, problem: str, status_of_deepl: int
) -> None:
    server = serve(http_port=0, api_keys=write_keys(tmp_path, quotas, bob=BOB), max_slots=1)
    gate = Gate(server, monkeypatch)
    with stub_of(server.address) as stub:
        first = stub.Translate.future(request_of(distinct_texts(1)), timeout=patient(60), metadata=METADATA)
        gate.wait()
        if not quotas.concurrent_calls:
            gate.open()
            first.result()
        replies = {name: send(server, name, "station", x_api_key=BOB) for name in FACES}
        replies["files"] = send_file(server)
        error = refused(stub.Translate, request_of(distinct_texts(1)), metadata=METADATA)
        gate.open()
        first.result()
    for name, reply in replies.items():
        assert reply.status == (status_of_deepl if name == "deepl" else 429), (name, reply.body)
        assert 0 < int(reply.headers["retry-after"]) <= 120
        assert "key bob has" in reply.body.decode()
        assert problem in reply.body.decode()
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert problem in error.details()
    assert detail_of(error, error_details_pb2.ErrorInfo).reason == "QUOTA"
    assert 0 < retry_seconds(error) <= 120
    assert server.metric("dragoman_key_refused_total", key="bob") == len(replies) + 1


QUICK = ("/v2/usage", "/v2/languages", "/v2/glossaries", "/v1/models", "/language/translate/v2/languages")


def test_who_has_used_up_the_tokens_may_ask_what_takes_none(serve: Serve, tmp_path: Path) -> None:
    """Otherwise DeepL's clients could not find out, nor fetch the document that has used them up."""
    server = serve(http_port=0, api_keys=write_keys(tmp_path, Quotas(tokens_per_minute=1), bob=BOB))
    body, content_type = form_of("a.txt", "station", {"target_lang": "DE"})
    upload = call(server.http_url, "POST", "/v2/document", body=body, content_type=content_type, x_api_key=BOB)
    assert send(server, "deepl", "station", x_api_key=BOB).status == 456
    usage = call(server.http_url, "GET", "/v2/usage", x_api_key=BOB).document
    assert usage["character_count"] >= usage["character_limit"] == 1
    for path in QUICK:
        assert call(server.http_url, "GET", path, x_api_key=BOB).status == 200, path
    key, path = {"document_key": upload.document["document_key"]}, f"/v2/document/{upload.document['document_id']}"
    assert call(server.http_url, "POST", path, key, x_api_key=BOB).document["status"] == "done"
    assert call(server.http_url, "POST", f"{path}/result", key, x_api_key=BOB).status == 200


def test_what_takes_no_tokens_is_a_call(serve: Serve, tmp_path: Path) -> None:
    keys = {f"of_{number}": new_key() for number in range(len(QUICK))}
    server = serve(http_port=0, api_keys=write_keys(tmp_path, Quotas(requests_per_minute=1), **keys))
    for path, key in zip(QUICK, keys.values(), strict=True):
        assert [call(server.http_url, "GET", path, x_api_key=key).status for _ in range(2)] == [200, 429], path
