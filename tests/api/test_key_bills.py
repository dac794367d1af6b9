"""What a key is billed for: its counters, and the access log, are equal to what its calls were answered."""

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest

from dragoman_client import ClientError
from service.domain.errors import Overloaded, ServiceError, Unavailable
from service.engine import scheduler
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2_grpc as google_grpc
from service.observe.access_log import LOGGER
from service.translation.translator import Translator
from tests.api.http_faces import FACES, send
from tests.gate import Gate
from tests.grpc_calls import WAYS, google_request, request_of, stub_of, ways_of
from tests.http_caller import call, events
from tests.http_post import form_of
from tests.key_files import ALICE, BOB, write_keys
from tests.patience import patient
from tests.servers import InProcessServer, Serve, distinct_texts, eventually

UNITS = ("source_characters", "source_tokens", "output_tokens")
BY_ALICE = (("x-api-key", ALICE),)

Bill = tuple[float, ...]


@pytest.fixture
def server(serve: Serve, tmp_path: Path) -> InProcessServer:
    return serve(api_keys=write_keys(tmp_path, alice=ALICE, bob=BOB), http_port=0, max_slots=8, access_log_ratio=1.0)


def bill(server: InProcessServer, key: str = "alice") -> Bill:
    """Return the characters, the tokens of sources and the tokens of translations that a key is billed for."""
    metrics, labels = server.metrics(), frozenset({"key": key}.items())
    return tuple(metrics[f"dragoman_key_{unit}_total", labels] for unit in UNITS)


def answered(texts: list[str], translations: Any) -> Bill:
    """Return what texts and their translations, as our client has them, are to be billed as."""
    return (
        sum(map(len, texts)),
        sum(each.num_source_tokens for each in translations),
        sum(each.hypotheses[0].num_tokens for each in translations),
    )


def is_billed(server: InProcessServer, expected: Bill) -> None:
    """Wait for a bill: gRPC's callers have their answer a moment before it is counted."""
    eventually(lambda: bill(server) >= expected)
    assert bill(server) == expected


TEXT = "Where is the train station? Close the window 🚂."


def test_every_way_to_translate_is_billed_once_and_alike(server: InProcessServer) -> None:
    with server.client(api_key=BOB) as client:
        own = answered([TEXT], client.translate([TEXT], "en", "de"))
    eventually(lambda: bill(server, "bob") == own)
    assert own[0] == len(TEXT)
    ways: list[Callable[[], object]] = [partial(send, server, name, TEXT, x_api_key=ALICE) for name in FACES]
    with grpc.insecure_channel(server.address) as channel:
        senders = ways_of(channel)
        ways += [partial(senders[name], [TEXT], metadata=BY_ALICE) for name in WAYS]
        for number, way in enumerate(ways, start=1):
            way()
            is_billed(server, tuple(number * each for each in own))


def test_streams_over_http_are_billed_as_they_tell(server: InProcessServer) -> None:
    body = {"model": "en-de", "stream": True, "messages": [{"role": "user", "content": TEXT}]}
    usage = {"stream_options": {"include_usage": True}}
    reply = call(server.http_url, "POST", "/v1/chat/completions", body | usage, x_api_key=ALICE)
    told = [line for line in reply.body.decode().split("\n") if '"usage":{' in line.replace(" ", "")]
    assert told
    found = events(reply.body.replace(b"data: [DONE]\n\n", b""))
    [counts] = [each["usage"] for _, each in found if each.get("usage")]
    is_billed(server, (len(TEXT), counts["prompt_tokens"], counts["completion_tokens"]))


def test_cached_repeated_and_unchanged_texts_are_billed_as_answered(serve: Serve, tmp_path: Path) -> None:
    server = serve(api_keys=write_keys(tmp_path, alice=ALICE), cache_mib=8)
    texts = [*distinct_texts(3), *distinct_texts(3), ""]
    with server.client(api_key=ALICE) as client:
        first = answered(texts, client.translate(texts, "en", "de"))
        is_billed(server, first)
        assert answered(texts, client.translate(texts, "en", "de")) == first  # from the cache
        is_billed(server, tuple(2 * each for each in first))
        [same] = client.translate(["Guten Tag"], "de", "de")
        assert same.text == "Guten Tag"
    is_billed(server, (2 * first[0] + len("Guten Tag"), 2 * first[1], 2 * first[2]))
    assert server.metric("dragoman_key_tokens_total", key="alice") < 2 * sum(first[1:]), "which quotas don't count"


def test_googles_two_translations_are_of_one_text(serve: Serve, tmp_path: Path) -> None:
    glossaries = tmp_path / "glossaries"
    glossaries.mkdir()
    (glossaries / "own.en-de.tsv").write_text("window\tZqfenster\n", encoding="utf-8")
    server = serve(api_keys=write_keys(tmp_path, alice=ALICE), glossaries=glossaries)
    request = google_request(["Close the window"])
    request.glossary_config.glossary = "projects/p/locations/global/glossaries/own"
    with grpc.insecure_channel(server.address) as channel:
        stub = google_grpc.TranslationServiceStub(channel)
        stub.TranslateText(request, metadata=BY_ALICE, timeout=patient(30))
    eventually(lambda: bill(server)[0] > 0)
    assert bill(server)[0] == len("Close the window")


def test_what_is_only_detected_or_listed_is_free(server: InProcessServer) -> None:
    with server.client(api_key=ALICE) as client:
        client.detect([TEXT])
        client.models()
        call(server.http_url, "POST", "/v1/detect", {"texts": [TEXT]}, x_api_key=ALICE)
        call(server.http_url, "POST", "/detect", {"q": TEXT}, x_api_key=ALICE)
        call(server.http_url, "POST", "/language/translate/v2/detect", {"q": TEXT}, x_api_key=ALICE)
        call(
            server.http_url,
            "POST",
            "/v3/projects/p/locations/global:detectLanguage",
            {"content": TEXT},
            x_api_key=ALICE,
        )
        expected = answered(["Hello"], client.translate(["Hello"], "en", "de"))
    is_billed(server, expected)


@pytest.mark.parametrize("error", [Unavailable("restarting"), Overloaded("full", 0.01)], ids=["down", "busy"])
def test_a_call_that_is_tried_again_is_billed_once(
    server: InProcessServer, monkeypatch: pytest.MonkeyPatch, error: ServiceError
) -> None:
    """The first attempts fail after the models have worked for them."""
    translate, failures = Translator.translate, [error, error]

    async def failing(self: Translator, request: Any) -> Any:
        result = await translate(self, request)
        if failures:
            raise failures.pop()
        return result

    monkeypatch.setattr(Translator, "translate", failing)
    with server.client(api_key=ALICE, patience_seconds=patient(20)) as client:
        expected = answered([TEXT], client.translate([TEXT], "en", "de"))
    assert not failures
    is_billed(server, expected)
    work = server.metric("dragoman_key_tokens_total", key="alice")
    assert work == 3 * sum(expected[1:]), "what the models did is another number"


def test_failed_calls_are_free(server: InProcessServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.client(api_key=ALICE, patience_seconds=0) as client:
        for texts, target in (([TEXT], "xx"), ([TEXT] * 2000, "de")):
            with pytest.raises(ClientError):
                client.translate(texts, "en", target)
        gate = Gate(server, monkeypatch)
        with stub_of(server.address) as stub:
            left = stub.Translate.future(request_of([TEXT]), timeout=patient(30), metadata=BY_ALICE)
            gate.wait()
            left.cancel()
            late = stub.Translate.future(request_of([TEXT]), timeout=0.2, metadata=BY_ALICE)
            failure: Any = late.exception(timeout=patient(30))
            assert failure.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        gate.open()
        expected = answered(["Hello"], client.translate(["Hello"], "en", "de"))
    is_billed(server, expected)
    assert server.metric("dragoman_key_requests_total", key="alice") >= 4


def test_a_stream_that_its_caller_leaves_is_billed_for_its_texts(
    server: InProcessServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise who leaves just before the last piece would have everything for nothing."""
    monkeypatch.setattr(scheduler, "_MOST_STEPS", 1)  # or a sentence would end in its first run
    texts = distinct_texts(40)
    request = request_of(texts, options=pb.DecodingOptions(max_output_tokens=96, max_length_ratio=0, max_repeats=0))
    ended: list[int] = []
    with stub_of(server.address) as stub:
        parts = stub.TranslateStream(request, timeout=patient(60), metadata=BY_ALICE)
        for part in parts:
            if part.HasField("translation"):
                ended.append(part.text_index)
                break
        assert ended
        parts.cancel()
        eventually(lambda: bill(server)[0] > 0)
    characters, *tokens = bill(server)
    assert characters == sum(map(len, texts))
    assert all(tokens), "of the texts that ended"


def test_a_stream_that_the_server_breaks_is_free(server: InProcessServer, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Translator._stream

    async def breaking(self: Translator, part: Any) -> Any:
        async for event in stream(self, part):
            yield event
            raise Unavailable("restarting")

    monkeypatch.setattr(Translator, "_stream", breaking)
    with server.client(api_key=ALICE, patience_seconds=0) as client:
        with pytest.raises(ClientError):
            list(client.stream([TEXT], "en", "de"))
        monkeypatch.undo()
        expected = answered(["Hello"], client.translate(["Hello"], "en", "de"))
    is_billed(server, expected)


def test_documents_are_billed_by_the_characters_of_their_texts(server: InProcessServer) -> None:
    document = "# Where is the **station**?\n\nHello\n\n```\ncode\n```\n"
    body, content_type = form_of("a.md", document, {"source_lang": "EN", "target_lang": "DE"})
    how: dict[str, Any] = {"body": body, "content_type": content_type, "x_api_key": ALICE}
    handle = call(server.http_url, "POST", "/v2/document", **how).document
    key = {"document_key": handle["document_key"]}

    def status() -> Any:
        return call(server.http_url, "POST", f"/v2/document/{handle['document_id']}", key, x_api_key=ALICE).document

    eventually(lambda: status()["status"] == "done")
    told = status()["billed_characters"]
    eventually(lambda: bill(server)[0] == told)
    once = bill(server)
    assert len("Where is the station?Hello") <= told < len(document)
    assert all(once)
    body, content_type = form_of("a.md", document, {"source_language_code": "en", "target_language_code": "de"})
    how |= {"body": body, "content_type": content_type}
    assert call(server.http_url, "POST", "/v1/files", **how).status == 200
    is_billed(server, tuple(2 * each for each in once))
    body, content_type = form_of("a.docx", b"broken", {"source_language_code": "en", "target_language_code": "de"})
    how |= {"body": body, "content_type": content_type}
    assert call(server.http_url, "POST", "/v1/files", **how).status == 400
    is_billed(server, tuple(2 * each for each in once))


@pytest.mark.parametrize("num_calls", [120, pytest.param(3000, marks=pytest.mark.full)])
def test_counters_answers_and_the_access_log_agree(
    server: InProcessServer, caplog: pytest.LogCaptureFixture, num_calls: int
) -> None:
    """Calls of all kinds at the same time, some wrong, some with a deadline that passes, streams among them."""
    chance = random.Random(7)
    texts = distinct_texts(50)
    plans = [(chance.choice("csw"), chance.choices(texts, k=chance.randint(1, 5))) for _ in range(num_calls)]

    def make(plan: tuple[str, list[str]]) -> Bill:
        kind, own = plan
        with server.client(api_key=ALICE) as client:
            if kind == "c":
                return answered(own, client.translate(own, "en", "de"))
            if kind == "s":
                ends = [event.translation for event in client.stream(own, "en", "de") if event.translation]
                return answered(own, ends)
            with pytest.raises(ClientError):
                client.translate(own, "en", "de", glossary="none")
            return (0, 0, 0)

    with caplog.at_level("INFO", LOGGER), ThreadPoolExecutor(8) as pool:
        bills = list(pool.map(make, plans))
        expected = tuple(map(sum, zip(*bills, strict=True)))
        is_billed(server, expected)
        eventually(lambda: sum(record.name == LOGGER for record in caplog.records) >= num_calls)
    logged: Counter[str] = Counter()
    for record in caplog.records:
        fields = vars(record).get("fields", {}) if record.name == LOGGER else {}
        if fields.get("code") == "OK":
            logged.update({name: fields.get(name, 0) for name in ("characters", "source_tokens", "output_tokens")})
    assert tuple(logged[name] for name in ("characters", "source_tokens", "output_tokens")) == expected
