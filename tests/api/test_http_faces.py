"""All APIs over HTTP: one text has one translation, and keys, quotas, ids and errors are alike on each."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.api.http_faces import EACH, FACES, send
from tests.http_caller import call
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
