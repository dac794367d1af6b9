"""Requests over HTTP that are refused at sight, in the words of the API that they are for."""

import gzip
import json
from typing import Any

import pytest

from tests.api.http_faces import EACH, FACES, send
from tests.http_caller import call
from tests.servers import InProcessServer, Serve, eventually


@pytest.fixture(scope="module")
def open_server(share: Serve) -> InProcessServer:
    """Return a server that any page may call."""
    return share(http_port=0, http_origin=("*",))


@EACH
def test_too_large_a_body_is_told_in_the_words_of_its_api(server: InProcessServer, name: str) -> None:
    limit = server.server.config.max_request_bytes
    wrong = call(server.http_url, "POST", FACES[name].path, body=b"{", content_type="application/json").document
    reply = call(server.http_url, "POST", FACES[name].path, body=b" " * (limit + 1), content_type="application/json")
    assert reply.status == 413
    assert reply.document.keys() == wrong.keys()
    assert f"the body has {limit + 1} bytes; allowed is {limit}. Send less." in reply.body.decode()
    assert reply.headers["connection"] == "close"
    assert reply.headers["x-request-id"]


@pytest.mark.parametrize(
    ("path", "like"),
    [
        ("/v1/nothing", "v1"),
        ("/nothing", "v1"),
        ("/translate/nothing", "libretranslate"),
        ("/v2/nothing", "deepl"),
        ("/v3/nothing", "deepl"),
        ("/v2/glossaries/a/b/c/d/e", "deepl"),
        ("/language/nothing", "google.v2"),
        ("/v3/projects/p/nothing", "google.v3"),
        ("/v2/models/tiny/nothing", "kserve"),
    ],
)
def test_an_unknown_path_is_told_in_the_words_of_the_api_it_looks_like(
    server: InProcessServer, path: str, like: str
) -> None:
    wrong = call(server.http_url, "POST", FACES[like].path, body=b"{", content_type="application/json").document
    reply = call(server.http_url, "POST", path, {})
    assert reply.status == 404
    assert shape(reply.document) == shape(wrong)
    assert f"'{path}' is not here; /v1/docs lists what is." in reply.body.decode()


def shape(document: Any) -> Any:
    """Return the names in a document, without what only some errors have."""
    if not isinstance(document, dict):
        return ...
    return {name: shape(each) for name, each in document.items() if name not in ("field", "allowed", "advice")}


@EACH
@pytest.mark.parametrize("encoding", ["gzip", "br", "identity, gzip"])
def test_a_compressed_body_is_told_so(server: InProcessServer, name: str, encoding: str) -> None:
    body = gzip.compress(json.dumps(FACES[name].asked("station")).encode())
    given = {"content_type": "application/json", "content_encoding": encoding}
    wrong = call(server.http_url, "POST", FACES[name].path, body=b"{", content_type="application/json").document
    reply = call(server.http_url, "POST", FACES[name].path, body=body, **given)
    assert (reply.status, shape(reply.document)) == (415, shape(wrong))
    assert f"Content-Encoding is '{encoding}'; allowed is identity. Send the body uncompressed." in reply.body.decode()
    for plain in ("Identity", ""):
        assert send(server, name, "station", content_encoding=plain).status == 200


@EACH
def test_pages_of_other_sites_get_no_leave_unless_it_is_configured(server: InProcessServer, name: str) -> None:
    path = FACES[name].path
    page = {"origin": "https://example.org"}
    replies = (
        send(server, name, "station", **page),
        call(server.http_url, "OPTIONS", path, access_control_request_method="POST", **page),  # type: ignore[arg-type]
    )
    assert [reply.status for reply in replies] == [403, 405]
    assert "Origin is 'https://example.org'; allowed is this server's own page." in replies[0].body.decode()
    for reply in replies:
        assert [each for each in reply.headers if each == "vary" or each.startswith("access-control-")] == []


@EACH
def test_another_method_is_told_in_the_words_of_its_api(server: InProcessServer, name: str) -> None:
    wrong = call(server.http_url, "POST", FACES[name].path, body=b"{", content_type="application/json").document
    reply = call(server.http_url, "PATCH", FACES[name].path)
    assert (reply.status, shape(reply.document)) == (405, shape(wrong))
    assert "POST" in reply.headers["allow"]
    assert "PATCH is not possible here" in reply.body.decode()


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "code"),
    [
        ("GET", "/nothing", {}, 404, "NOT_FOUND"),
        ("DELETE", "/v1/translate", {}, 405, "UNIMPLEMENTED"),
        ("TRACE", "/v1/translate", {}, 501, "UNIMPLEMENTED"),
        ("GET", "/v1/models", {f"x_{number}": "" for number in range(101)}, 431, "INVALID_ARGUMENT"),
        ("POST", "/v1/translate", {"content_length": "9999999"}, 413, "INVALID_ARGUMENT"),
        (
            "OPTIONS",
            "/v1/translate",
            {"origin": "https://example.org", "access_control_request_method": "POST"},
            200,
            "OK",
        ),
    ],
    ids=["path", "method", "unknown-method", "headers", "body", "preflight"],
)
def test_what_is_refused_at_sight_has_an_id_and_is_counted(
    open_server: InProcessServer, method: str, path: str, headers: dict[str, Any], status: int, code: str
) -> None:
    server, given = open_server, f"refused-{method}-{status}"
    name = "http/v1/translate" if status == 413 else "http/no_route"
    before = server.metric("dragoman_requests_total", method=name, code=code)
    reply = call(server.http_url, method, path, x_request_id=given, **headers)
    assert reply.status == status
    assert reply.headers["x-request-id"] == given
    assert reply.headers["access-control-allow-origin"] == "*"
    if status != 200:
        assert (reply.error["code"], reply.error["request_id"]) == (code, given)
    eventually(lambda: server.metric("dragoman_requests_total", method=name, code=code) == before + 1)
    methods = {dict(labels).get("method", "") for name, labels in server.metrics() if name == "dragoman_requests_total"}
    assert not any("nothing" in each or "TRACE" in each for each in methods)
    again = call(server.http_url, method, path, **headers)
    assert len(again.headers["x-request-id"]) == 16
