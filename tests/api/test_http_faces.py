"""All APIs over HTTP, and operators' calls: one text has one translation, and keys, ids and errors are alike."""

import itertools
import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from dragoman_client import FinishReason
from service.domain.errors import Overloaded
from service.faces.http.intake import MAX_UNKNOWN_BYTES
from service.translation.translator import Translator
from tests.api.http_faces import EACH, EVERYWHERE, FACES, send, url_of
from tests.http_caller import Reply, call
from tests.key_files import ALICE
from tests.log_lines import lines
from tests.otlp_collector import otlp_collector
from tests.servers import InProcessServer, Serve, distinct_texts, eventually


@pytest.fixture(scope="module")
def server(share: Serve) -> InProcessServer:
    return share(http_port=0, access_log_ratio=1.0)


def test_one_text_has_one_translation_whatever_the_api(server: InProcessServer) -> None:
    texts = distinct_texts(20)
    with server.client() as client:
        translations = client.translate(texts, "en", "de")
    pairs = zip(texts, translations, strict=True)
    text, expected = next(each for each in pairs if each[1].finish_reason is not FinishReason.STOP)
    replies = {name: send(server, name, text) for name in EVERYWHERE}
    assert {name: reply.status for name, reply in replies.items()} == dict.fromkeys(EVERYWHERE, 200)
    found = {name: EVERYWHERE[name].answered(reply.document) for name, reply in replies.items()}
    assert found == dict.fromkeys(EVERYWHERE, expected.text)
    for name in ("google.v2", "google.v3"):
        assert replies[name].headers["dragoman-finish-reasons"].endswith("=0")


@pytest.mark.parametrize(
    "path",
    [
        "/v3/projects/p:translateText",
        "/v3/projects/a%20b%C3%A4/locations/-:translateText",
        "/v3/projects/p/locations/global%3AtranslateText",
        "/v3/projects/p/locations/g:translateText?$alt=json;enum-encoding%3Dint&prettyPrint=false&%24.xgafv=2",
    ],
)
def test_googles_path_has_many_spellings(server: InProcessServer, path: str) -> None:
    reply = call(server.http_url, "POST", path, FACES["google.v3"].asked("station"))
    assert (reply.status, reply.document) == (200, send(server, "google.v3", "station").document)


@EACH
def test_a_callers_id_is_in_the_answer_and_in_the_log(server: InProcessServer, name: str) -> None:
    given = f"order-66-{name}"
    with lines() as logged:
        reply = send(server, name, "station", x_request_id=given)
        assert reply.headers["x-request-id"] == given
        assert "total;dur=" in reply.headers["server-timing"]
        eventually(lambda: any(given in json.dumps(each) for each in logged.calls()))


METHODS = {
    "kserve": "http/kserve/infer",
    "google.v3": "http/google.v3/TranslateText",
    "openai": "http/openai/chat_completions",
    "responses": "http/openai/responses",
    "operators": "admin/translate",
}


@pytest.mark.parametrize("name", EVERYWHERE)
def test_calls_are_counted_by_the_name_of_their_api(server: InProcessServer, name: str) -> None:
    labels = {"method": METHODS.get(name, f"http/{name}/translate"), "kind": "translate", "code": "OK"}
    before = server.metric("dragoman_requests_total", **labels)
    assert send(server, name, "station").status == 200
    eventually(lambda: server.metric("dragoman_requests_total", **labels) == before + 1)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_what_a_caller_got_wrong_is_a_400_that_says_what(server: InProcessServer, name: str) -> None:
    for body in (b"", b"{", b"[]", b"{}", b"null", b"[" * 50_000, b'{"text": 1}', b"\xff\xfe"):
        reply = call(url_of(server, name), "POST", EVERYWHERE[name].path, body=body, content_type="application/json")
        assert reply.status == 400, (body[:20], reply.status, reply.body)
        assert reply.body


@dataclass(frozen=True)
class Refusal:
    """A text that every API refuses: its languages, the statuses that are not 400, and words of the answer."""

    text: str
    source: str
    target: str
    words: str
    statuses: Mapping[str, int] = field(default_factory=dict)


NOT_FOUND = dict.fromkeys(("v1", "openai", "responses", "kserve", "operators"), 404)
NO_PAIR = "targets from '[Ee][Nn]': de|served: en to de|lists pairs, such as en-de"  # OpenAI's models are pairs
NO_CODE = "expected a BCP 47 code|lists pairs, such as en-de"
TOO_LARGE = dict.fromkeys(("deepl", "operators"), 413)
REFUSALS = {
    "target": Refusal("station", "en", "xx", NO_PAIR, NOT_FOUND),
    "source": Refusal("station", "xx", "de", NO_PAIR, NOT_FOUND),
    "code": Refusal("station", "en", "d!", NO_CODE, {"openai": 404, "responses": 404}),
    "long": Refusal("a" * 140_000, "en", "de", "characters in total; allowed: 131072|140075 bytes", TOO_LARGE),
}


@pytest.mark.parametrize("name", EVERYWHERE)
@pytest.mark.parametrize("case", REFUSALS)
def test_what_is_refused_is_told_with_what_there_is(server: InProcessServer, name: str, case: str) -> None:
    refusal = REFUSALS[case]
    reply = send(server, name, refusal.text, refusal.source, refusal.target)
    assert reply.status == refusal.statuses.get(name, 400), reply.body
    assert re.search(refusal.words, reply.body.decode())


def test_a_text_in_no_known_language_is_refused(server: InProcessServer) -> None:
    for name in EVERYWHERE.keys() - {"kserve"}:  # whose model names the language
        reply = send(server, name, "\u16a0\u16a2\u16a6\u16a8\u16b1\u16b2", "")
        assert (reply.status, b"is in none of the languages that can be" in reply.body) == (400, True), name


def test_a_deadline_that_can_not_be_met_is_a_504(serve: Serve) -> None:
    server = serve(http_port=0, default_deadline_seconds=0.001)
    assert {name: send(server, name, "station").status for name in EVERYWHERE} == dict.fromkeys(EVERYWHERE, 504)


FREE = ("/health", "/languages", "/frontend/settings")  # of LibreTranslate's API


def test_a_server_that_loads_says_so(serve: Serve) -> None:
    server = serve(load=False, http_port=0)
    replies = [send(server, name, "station") for name in EVERYWHERE]
    replies += [call(server.http_url, "GET", path) for path in FREE]
    replies.append(call(server.http_url, "POST", "/detect", {"q": "station"}))
    assert {reply.status for reply in replies} == {503}
    assert all(b"the server is loading" in reply.body or b"still loading its models" in reply.body for reply in replies)
    server.load()
    assert {call(server.http_url, "GET", path).status for path in FREE} == {200}
    assert {send(server, name, "station").status for name in EVERYWHERE} == {200}


def test_a_full_queue_is_told_and_no_matter_to_what_waits_for_no_model(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Translator, "overload", lambda *_: Overloaded("the queue is full", 2.5))
    server = serve(http_port=0)
    replies = {name: send(server, name, "station") for name in FACES}
    for name, reply in replies.items():
        assert (reply.status, reply.headers["retry-after"]) == (429, "3"), name
        assert b"the queue is full" in reply.body
    for path in ("/", "/v1/docs", "/v1/openapi.json", "/v1/languages", "/v1/models", *FREE):
        assert call(server.http_url, "GET", path).status == 200, path


def test_a_call_is_part_of_its_caller_s_trace(serve: Serve) -> None:
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with otlp_collector() as collector:
        server = serve(http_port=0, otlp_endpoint=collector.endpoint)
        for name in EVERYWHERE:
            send(server, name, "station", traceparent=f"00-{trace}-{parent}-01", x_request_id=f"of-{name}")
        server.close()  # flushes what is left
        calls = [span for span in collector.spans if span.parent_id == parent]
    assert {span.trace_id for span in calls} == {trace}
    assert {span.attributes["dragoman.request_id"] for span in calls} == {f"of-{name}" for name in EVERYWHERE}
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
    reply = call(server.http_url, "POST", FACES[name].path, body=b" " * (limit + 1), content_type="application/json")
    assert (reply.status, shape(reply.document)) == (413, shape_of_errors(server, name))
    assert f"the body has {limit + 1} bytes; allowed: {limit}. Send less." in reply.body.decode()
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
    reply = call(server.http_url, "POST", path, {})
    assert (reply.status, shape(reply.document)) == (404, shape_of_errors(server, like))
    assert f"unknown path '{path}'; /v1/docs lists what is." in reply.body.decode()


def shape(document: Any) -> Any:
    """Return the names in a document, without what only some errors have."""
    if not isinstance(document, dict):
        return ...
    return {name: shape(each) for name, each in document.items() if name not in ("field", "allowed", "advice")}


def shape_of_errors(server: InProcessServer, name: str) -> Any:
    return shape(call(server.http_url, "POST", FACES[name].path, body=b"{", content_type="application/json").document)


ENCODINGS = ("gzip", "br", "identity, gzip")


@pytest.mark.parametrize(("name", "encoding"), [*zip(FACES, itertools.cycle(ENCODINGS), strict=False)])
def test_a_compressed_body_is_told_so(server: InProcessServer, name: str, encoding: str) -> None:
    reply = send(server, name, "station", content_encoding=encoding)
    assert (reply.status, shape(reply.document)) == (415, shape_of_errors(server, name))
    assert f"Content-Encoding is '{encoding}'; allowed: identity. Send the body uncompressed." in reply.body.decode()
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
    assert "Origin is 'https://example.org'; allowed: this server's own page." in replies[0].body.decode()
    for reply in replies:
        assert [each for each in reply.headers if each == "vary" or each.startswith("access-control-")] == []


@EACH
def test_another_method_is_told_in_the_words_of_its_api(server: InProcessServer, name: str) -> None:
    reply = call(server.http_url, "PATCH", FACES[name].path)
    assert (reply.status, shape(reply.document)) == (405, shape_of_errors(server, name))
    assert "POST" in reply.headers["allow"]
    assert "PATCH is not supported by this path" in reply.body.decode()


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


NO_KEY = "requires an API key"
UNKNOWN_KEY = "the API key is unknown"


@EACH
def test_without_a_good_key_nothing_is_translated(keyed: InProcessServer, name: str) -> None:
    wrong: list[tuple[dict[str, str], str]] = [
        ({}, NO_KEY),
        ({"x_api_key": "dgm_wrong"}, UNKNOWN_KEY),
        ({"authorization": "Bearer wrong"}, UNKNOWN_KEY),
    ]
    for headers, words in wrong:
        reply = send(keyed, name, "station", **headers)
        assert reply.status == FACES[name].no_key
        assert words in reply.body.decode()
        asks_for_one = reply.status == 401 and name not in ("openai", "responses")
        assert reply.headers.get("www-authenticate") == ("Bearer" if asks_for_one else None)
    for headers in ({"x_api_key": ALICE}, {"x_goog_api_key": ALICE}, {"authorization": f"Bearer {ALICE}"}):
        assert send(keyed, name, "station", **headers).status == 200


GOOGLE_V2, GOOGLE_V3 = FACES["google.v2"].path, FACES["google.v3"].path
WITH_KEYS: list[tuple[str, str, Any, dict[str, str]]] = [  # API, path, body (none: GET), headers; KEY is the key
    ("deepl", "/v2/translate", "text=station&target_lang=DE&auth_key=KEY", {}),
    ("deepl", "/v2/translate?auth_key=KEY", "text=station&target_lang=DE", {}),
    ("deepl", "/v2/translate", "text=station&target_lang=DE", {"authorization": "DeepL-Auth-Key KEY"}),
    ("deepl", "/v2/translate", {**FACES["deepl"].asked("station"), "auth_key": "KEY"}, {}),
    ("deepl", "/v2/usage?auth_key=KEY", None, {}),
    ("deepl", "/v3/languages?resource=glossary&auth_key=KEY", None, {}),
    ("libretranslate", "/translate", {**FACES["libretranslate"].asked("station"), "api_key": "KEY"}, {}),
    ("libretranslate", "/translate?api_key=KEY&q=station&source=en&target=de", "", {}),
    ("google.v2", f"{GOOGLE_V2}?key=KEY", FACES["google.v2"].asked("station"), {}),
    ("google.v2", GOOGLE_V2, "q=station&source=en&target=de&key=KEY", {}),
    ("google.v2", f"{GOOGLE_V2}/detect?key=KEY", {"q": "station"}, {}),
    ("google.v2", f"{GOOGLE_V2}/languages", None, {"x_goog_api_key": "KEY"}),
    ("google.v3", f"{GOOGLE_V3}?key=KEY", FACES["google.v3"].asked("station"), {}),
    ("google.v3", f"{GOOGLE_V3}?%24.key=KEY", FACES["google.v3"].asked("station"), {}),
    ("google.v3", "/v3/projects/p/locations/global/glossaries", None, {"x_goog_api_key": "KEY"}),
    ("v1", "/v1/models", None, {"x_api_key": "KEY"}),
]


@pytest.mark.parametrize(("name", "path", "body", "headers"), WITH_KEYS)
def test_a_key_comes_in_every_way_of_its_api(
    keyed: InProcessServer, name: str, path: str, body: Any, headers: dict[str, str]
) -> None:
    for key, status in ((ALICE, 200), ("dgm_wrong", FACES[name].no_key), ("", FACES[name].no_key)):
        given = {header: value.replace("KEY", key) for header, value in headers.items()}
        method, content = "GET" if body is None else "POST", body
        if body is not None:
            is_form = isinstance(body, str)
            content = (body if is_form else json.dumps(body)).replace("KEY", key).encode()
            given["content_type"] = "application/x-www-form-urlencoded" if is_form else "application/json"
        reply = call(keyed.http_url, method, path.replace("KEY", key), body=content, **given)
        assert reply.status == status, (key, reply.body)


def test_what_tells_about_the_apis_needs_no_key(server: InProcessServer, keyed: InProcessServer) -> None:
    assert call(keyed.http_url, "GET", "/v1/openapi.json").status == 200
    assert call(keyed.http_url, "GET", "/v3/projects/p/locations/global/models").status == 401
    for each, asks_for_keys in ((server, False), (keyed, True)):
        assert call(each.http_url, "GET", "/health").document == {"status": "ok"}
        settings = call(each.http_url, "GET", "/frontend/settings").document
        assert (settings["keyRequired"], settings["charLimit"]) == (asks_for_keys, 131_072)


LARGE = b"12345\n" * (2 * MAX_UNKNOWN_BYTES // 6)  # which no model reads


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


def test_a_large_body_without_fields_needs_its_key_in_a_header(keyed: InProcessServer) -> None:
    text = LARGE.decode()[: MAX_UNKNOWN_BYTES + 100]
    asked = {"q": text, "source": "en", "target": "de"}
    assert call(keyed.http_url, "POST", "/translate", asked, x_api_key=ALICE).status == 200
    reply = call(keyed.http_url, "POST", "/translate", {**asked, "api_key": ALICE})
    assert reply.status == 403
    assert "there is no API key in the first 65536 bytes" in reply.document["error"]
    chunks = iter([json.dumps({**asked, "api_key": ALICE}).encode()])
    assert call(keyed.http_url, "POST", "/translate", body=chunks, content_type="application/json").status == 403  # type: ignore[arg-type]
