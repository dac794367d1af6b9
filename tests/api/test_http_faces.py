"""All APIs over HTTP: one text has one translation, and keys, quotas, ids and errors are alike on each."""

import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from service.faces.http.intake import MAX_UNKNOWN_BYTES
from tests.api.http_faces import EACH, FACES, send
from tests.http_caller import Reply, call
from tests.key_files import ALICE
from tests.log_lines import lines
from tests.otlp_collector import otlp_collector
from tests.servers import InProcessServer, Serve, distinct_texts, eventually


@pytest.fixture(scope="module")
def server(share: Serve) -> InProcessServer:
    return share(http_port=0, access_log_ratio=1.0)


def test_one_text_has_one_translation_whatever_the_api(server: InProcessServer) -> None:
    [text] = distinct_texts(1)
    with server.client() as client:
        [expected] = client.translate([text], "en", "de")
    replies = {name: send(server, name, text) for name in FACES}
    assert {name: reply.status for name, reply in replies.items()} == dict.fromkeys(FACES, 200)
    found = {name: FACES[name].answered(reply.document) for name, reply in replies.items()}
    assert found == dict.fromkeys(FACES, expected.text)


@EACH
def test_a_callers_id_is_in_the_answer_and_in_the_log(server: InProcessServer, name: str) -> None:
    given = f"order-66-{name}"
    with lines() as logged:
        reply = send(server, name, "station", x_request_id=given)
        assert reply.headers["x-request-id"] == given
        assert "total;dur=" in reply.headers["server-timing"]
        eventually(lambda: any(given in json.dumps(each) for each in logged.calls()))


@EACH
def test_calls_are_counted_by_the_name_of_their_api(server: InProcessServer, name: str) -> None:
    last = {"kserve": "infer", "google.v3": "TranslateText", "openai": "chat_completions"}.get(name, "translate")
    labels = {"method": f"http/{name}/{last}", "code": "OK"}
    before = server.metric("dragoman_requests_total", **labels)
    assert send(server, name, "station").status == 200
    eventually(lambda: server.metric("dragoman_requests_total", **labels) == before + 1)


@EACH
def test_what_a_caller_got_wrong_is_a_400_that_says_what(server: InProcessServer, name: str) -> None:
    for body in (b"", b"{", b"[]", b"{}", b"null", b"[" * 50_000, b'{"text": 1}', b"\xff\xfe"):
        reply = call(server.http_url, "POST", FACES[name].path, body=body, content_type="application/json")
        assert reply.status == 400, (body[:20], reply.status, reply.body)
        assert reply.body


def test_a_call_is_part_of_its_caller_s_trace(serve: Serve) -> None:
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with otlp_collector() as collector:
        server = serve(http_port=0, otlp_endpoint=collector.endpoint)
        for name in FACES:
            send(server, name, "station", traceparent=f"00-{trace}-{parent}-01", x_request_id=f"of-{name}")
        server.close()  # flushes what is left
        calls = [span for span in collector.spans if span.parent_id == parent]
    assert {span.trace_id for span in calls} == {trace}
    assert {span.attributes["dragoman.request_id"] for span in calls} == {f"of-{name}" for name in FACES}
    assert all(collector.children(span) for span in calls)


def test_many_callers_of_all_apis_at_once_each_get_their_own_answers(server: InProcessServer) -> None:
    texts = distinct_texts(240)
    with server.client() as client:
        expected = dict(zip(texts, (each.text for each in client.translate(texts, "en", "de")), strict=True))
    names = list(FACES)

    def ask(number: int) -> tuple[str, str]:
        name, text = names[number % len(names)], texts[number]
        reply = send(server, name, text, x_request_id=f"n-{number}")
        assert (reply.status, reply.headers["x-request-id"]) == (200, f"n-{number}"), reply.body
        return text, FACES[name].answered(reply.document)

    with ThreadPoolExecutor(24) as pool:
        found = dict(pool.map(ask, range(len(texts))))
    assert found == expected


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


LARGE = b"Where is the station?\n" * (2 * MAX_UNKNOWN_BYTES // 22)


def sent(keyed: InProcessServer, path: str, *fields: tuple[str, bytes], **headers: str) -> Reply:
    parts = [b"--b\r\nContent-Disposition: form-data; name=%s\r\n\r\n%s\r\n" % (n.encode(), c) for n, c in fields]
    body = b"".join(parts) + b"--b--\r\n"
    about = {"content_type": "multipart/form-data; boundary=b", **headers}
    return call(keyed.http_url, "POST", path, body=body, **about)


FILE = ('file; filename="a.txt"', LARGE)


def test_a_form_may_begin_with_its_key(keyed: InProcessServer) -> None:
    path, own, to = "/v2/document", ("auth_key", ALICE.encode()), ("target_lang", b"DE")
    assert sent(keyed, path, own, to, FILE).status == 200
    assert sent(keyed, path, to, FILE, x_api_key=ALICE).status == 200
    for fields in ([to, FILE], [to, FILE, own]):
        reply = sent(keyed, path, *fields)
        assert reply.status == 403, reply.body
        assert "there is no API key in the first 65536 bytes; send it in a header" in reply.body.decode()
    assert sent(keyed, path, ("auth_key", b"wrong"), to, FILE).status == 403


def test_a_small_body_may_have_its_key_anywhere(keyed: InProcessServer) -> None:
    asked = {"q": "station", "source": "en", "target": "de", "api_key": ALICE}
    assert call(keyed.http_url, "POST", "/translate", asked).status == 200
    assert sent(keyed, "/translate", *((name, value.encode()) for name, value in asked.items())).status == 200


def test_a_large_body_without_fields_needs_its_key_in_a_header(keyed: InProcessServer) -> None:
    text = LARGE.decode()[: MAX_UNKNOWN_BYTES + 100]
    asked = {"q": text, "source": "en", "target": "de"}
    assert call(keyed.http_url, "POST", "/translate", asked, x_api_key=ALICE).status == 200
    reply = call(keyed.http_url, "POST", "/translate", {**asked, "api_key": ALICE})
    assert reply.status == 403
    assert "there is no API key in the first 65536 bytes" in reply.document["error"]
    chunks = iter([json.dumps({**asked, "api_key": ALICE}).encode()])
    assert call(keyed.http_url, "POST", "/translate", body=chunks, content_type="application/json").status == 403  # type: ignore[arg-type]
