"""Every message to any method of any API is answered or rejected, and the server keeps running."""

import contextlib
import logging
import re
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from service.faces.google.rules import UNSUPPORTED_RULES
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.any_message import any_message, change, changes, damaged
from tests.any_request import GOOGLE_REQUESTS, REQUESTS, kserve_requests
from tests.faults.any_call import METHODS, Call, judge
from tests.faults.proofs import Proved
from tests.grpc_calls import request_of
from tests.patience import patient
from tests.servers import InProcessServer, Serve, eventually
from tests.tiny_bundle import write_tiny_bundle

# For texts of 100,000 letters.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

PLAIN = request_of(["Hello"])
WORDS = (
    *("tiny", "other", "1", "en", "de", "fr", "products", "text/html", "text/plain", "Hello", "Save the file."),
    *("projects/p/locations/global", "projects/p/locations/global/glossaries/products", "base", "BYTES"),
    *("projects/p/locations/global/glossaries/products/glossaryEntries/1", "src=en AND tgt=de"),
    *("text", "source_language", "target_language", "beam_size", "timeout", "translation", "score"),
    *("dragoman.v1.TranslationService", "grpc.health.v1.Health", "dragoman/v1/translation.proto"),
)
OTHERS = (
    *(f"/{rule.service}/{rule.name}" for rule in UNSUPPORTED_RULES),
    *("/", "//", "/x/y", "/dragoman.v1.TranslationService/None", "/%00/\u007f"),
)
OWN = "/dragoman.v1.TranslationService"
STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"

DEADLINES = st.sampled_from([None, None, None, None, 1e-6, 0.001, 0.02, 0.2, 3600.0])
METADATA = st.lists(
    st.sampled_from(
        [
            ("x-request-id", "x" * 1000),
            ("x-request-id", "a b"),
            ("x-request-id", ""),
            ("traceparent", "00-x-y-z"),
            ("authorization", "Bearer x"),
            ("odd-bin", b"\x00\xff"),
            ("x-goog-request-params", "parent=%"),
            ("user-agent", "x"),
        ]
    ),
    max_size=2,
).map(tuple)


def _sent(message: Any) -> bytes:
    """Serialize the message, but never let it unload `tiny`."""
    if message.DESCRIPTOR.name == "RepositoryModelUnloadRequest" and message.model_name == "tiny":
        message.model_name = "other"
    return bytes(message.SerializeToString())


def well_typed() -> st.SearchStrategy[Call]:
    """Generate calls of any method with any fields of its message."""

    def of(method: str) -> st.SearchStrategy[Call]:
        message = any_message(METHODS[method].input_type, WORDS).map(_sent)
        messages = st.lists(message, min_size=1, max_size=3).map(tuple)
        return st.builds(Call, st.just(method), messages, DEADLINES, METADATA)

    return st.one_of([of(method) for method in sorted(METHODS)])


def meaningful() -> st.SearchStrategy[Call]:
    """Generate valid or nearly valid requests."""
    of = {
        f"{OWN}/Translate": REQUESTS,
        f"{OWN}/TranslateStream": REQUESTS,
        f"{OWN}/DetectLanguage": st.builds(pb.DetectLanguageRequest, texts=REQUESTS.map(lambda each: each.texts)),
        "/google.cloud.translation.v3.TranslationService/TranslateText": GOOGLE_REQUESTS,
        "/inference.GRPCInferenceService/ModelInfer": kserve_requests(),
        STREAM: kserve_requests(),
    }

    def call(method: str) -> st.SearchStrategy[Call]:
        messages = st.lists(of[method].map(_sent), min_size=1, max_size=4 if method == STREAM else 1).map(tuple)
        return st.builds(Call, st.just(method), messages, DEADLINES, METADATA)

    return st.one_of([call(method) for method in sorted(of)])


def raw() -> st.SearchStrategy[Call]:
    """Generate damaged messages for any method, including nonexistent ones."""

    def of(method: str) -> st.SearchStrategy[Call]:
        kind = METHODS.get(method, METHODS[f"{OWN}/Translate"]).input_type
        near = {f"{OWN}/Translate": REQUESTS, STREAM: kserve_requests()}.get(method, any_message(kind, WORDS))
        messages = st.lists(damaged(near.map(_sent)), min_size=1, max_size=3).map(tuple)
        return st.builds(Call, st.just(method), messages, DEADLINES, METADATA)

    return st.one_of([of(method) for method in (*sorted(METHODS), *OTHERS)])


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fuzzed")
    write_tiny_bundle(root / "models" / "tiny" / "1")
    write_tiny_bundle(root / "models" / "other" / "1", "other", "en", "fr")
    (root / "glossaries").mkdir()
    (root / "glossaries" / "products.en-de.tsv").write_text("keys\tTasten\nDragoman\nFILE\tAkte\tcase\n")
    return root


@pytest.fixture(scope="module")
def server(share: Serve, models: Path) -> InProcessServer:
    folders = {"models": models / "models", "glossaries": models / "glossaries"}
    return share(**folders, model_control="explicit", load_model=("*",), triton_metrics=True, max_slots=8)


class Complaints(logging.Handler):
    """Keeps everything logged as an error, by any module."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@contextlib.contextmanager
def watched(server: InProcessServer) -> Iterator[grpc.Channel]:
    """Yield a connection; then check that the server is as before: nothing waits or runs, and nothing went wrong."""
    complaints = Complaints()
    logging.getLogger().addHandler(complaints)
    try:
        with grpc.insecure_channel(server.address) as channel:
            stub = pb_grpc.TranslationServiceStub(channel)
            before = stub.Translate(PLAIN, timeout=patient(30))
            yield channel
            assert stub.Translate(PLAIN, timeout=patient(30)) == before
        eventually(server.is_idle)
        assert server.get("/readyz")[0] == 200
    finally:
        logging.getLogger().removeHandler(complaints)
    assert complaints.lines == []


FEW = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
LEVELS = {"well-typed": (well_typed, 400), "meaningful": (meaningful, 100), "raw": (raw, 300)}


def fuzz(channel: grpc.Channel, calls: st.SearchStrategy[Call], num_cases: int, derandomize: bool) -> Counter[str]:
    statuses: Counter[str] = Counter()

    @settings(FEW, max_examples=num_cases, derandomize=derandomize)
    @given(calls)
    def any_call(call: Call) -> None:
        status = judge(channel, call)
        statuses[status] += 1
        event(f"{call.method} {status}")

    any_call()
    return statuses


@pytest.mark.parametrize("times", [1, pytest.param(25, marks=[pytest.mark.full, pytest.mark.timeout(3600)])])
@pytest.mark.parametrize("level", LEVELS)
def test_any_call_is_answered_or_refused(server: InProcessServer, proved: Proved, level: str, times: int) -> None:
    calls, num_cases = LEVELS[level]
    with watched(server) as channel:
        statuses = fuzz(channel, calls(), times * num_cases, derandomize=times == 1)
    assert statuses["OK"] >= num_cases // 100, statuses
    assert statuses["INVALID_ARGUMENT"] >= num_cases // 20, statuses
    proved("fuzz-requests", cases=statuses.total(), answered=statuses["OK"])


def test_an_error_in_the_server_is_noticed(server: InProcessServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: these tests do find an error, both in the answer and in the log."""

    async def fail(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(server.server.translator, "detect", fail)
    call = Call(f"{OWN}/DetectLanguage", (pb.DetectLanguageRequest(texts=["Hello"]).SerializeToString(),))
    with (
        pytest.raises(AssertionError, match="planted"),
        watched(server) as channel,
        pytest.raises(AssertionError, match="INTERNAL"),
    ):
        judge(channel, call)


GOOD_PATHS = ("/", "/metrics", "/readyz", "/livez", "/status", "/status.json", "/api/models")
PATHS = (
    *("/api/translate", "/api/reload", "*", "//"),
    *("/api/models/other/unload", "/api/models/other/load", "/api/models/x/load", "/api/models//load", "http://x/"),
    *("/api/models/%ff%00/load", "/api/models/..%2f..%2fetc/load", "/?" + "x" * 1000, "/%", "/\x80", "", "/#"),
)
HEADERS = (
    *("Content-Type: application/json", "Content-Type: text/plain", "Origin: http://127.0.0.1", "Origin: null"),
    *("Content-Length: -1", "Content-Length: 99999999999999999999", "Content-Length: 0x1", "Content-Length: 1"),
    *("Transfer-Encoding: chunked", "Connection: keep-alive", "Expect: 100-continue", "x-request-id: \x80"),
    *("x" * 70_000, ": x", "Host: [", "Accept: */*", "Accept: application/openmetrics-text; version=x; q=NaN"),
    "\0: \0",
)
BODIES = st.one_of(
    REQUESTS.map(lambda each: json_format.MessageToJson(each).encode()),
    damaged(REQUESTS.map(lambda each: json_format.MessageToJson(each).encode())),
    st.sampled_from(
        [b"", b"[]", b"null", b'{"texts": 1}', b"[" * 100_000, b'{"texts":["\\ud800"]}', b'{"x":1e999}', b"\xff"]
    ),
    st.just(b'{"options": {"temperature": "NaN", "seed": "' + b"9" * 5000 + b'"}, "texts": ["Hello"]}'),
)


GOOD_REQUESTS = st.builds(
    lambda method, path, query, more: f"{method} {path}{query} HTTP/1.1\r\nHost: [::1]\r\n{more}\r\n\r\n".encode(),
    st.sampled_from(["GET", "HEAD"]),
    st.sampled_from(GOOD_PATHS),
    st.sampled_from(["", "?x"]),
    st.sampled_from(["Accept: */*", "Accept: application/openmetrics-text; version=x; q=NaN", "Connection: close"]),
)


@st.composite
def http_requests(draw: st.DrawFn) -> bytes:
    method = draw(st.sampled_from(["GET", "GET", "POST", "POST", "POST", "HEAD", "PUT", "OPTIONS", "\x80", ""]))
    path = draw(st.one_of(st.sampled_from(GOOD_PATHS), st.sampled_from(PATHS)))
    version = draw(st.sampled_from(["HTTP/1.1"] * 40 + ["HTTP/1.0", "HTTP/9.9", "HTTP/x", ""]))
    body = draw(BODIES) if method == "POST" else b""
    headers = draw(st.one_of(st.just([]), st.lists(st.sampled_from(HEADERS), max_size=3)))
    if method == "POST":
        headers = ["Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    if draw(st.integers(0, 11)):
        headers = ["Host: 127.0.0.1", *headers]
    head = "\r\n".join([f"{method} {path} {version}", *headers, "", ""]).encode("latin-1")
    data = head + body
    return change(data, draw(changes())) if draw(st.integers(0, 2)) == 0 else data


def http_status(port: int, data: bytes) -> int:
    """Return the status of a port's answer; 0 if it hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=patient(30)) as connection:
        answer = bytearray()
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65_536):
                answer += part
        except TimeoutError:
            raise
        except OSError:  # it hung up before all was sent
            pass
    if not answer:
        return 0
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    assert found, answer[:200]
    return int(found[1])


@pytest.mark.parametrize("number", [60, pytest.param(2_000, marks=[pytest.mark.full, pytest.mark.timeout(1800)])])
@pytest.mark.parametrize("port", ["metrics_port", "admin_port"])
def test_any_http_request_is_answered_or_refused(
    server: InProcessServer, proved: Proved, port: str, number: int
) -> None:
    with watched(server):
        statuses = fuzz_http(getattr(server.server, port), number, derandomize=number == 60)
    assert statuses[200] > 3, statuses
    proved("fuzz-requests", cases=statuses.total())


def fuzz_http(port: int, num_cases: int, derandomize: bool) -> Counter[int]:
    statuses: Counter[int] = Counter()

    @settings(FEW, max_examples=num_cases, derandomize=derandomize)
    @given(st.one_of(GOOD_REQUESTS, http_requests()))
    def any_request(data: bytes) -> None:
        status = http_status(port, data)
        assert status < 500 or status == 501, (status, data[:200])  # unknown method
        statuses[status] += 1

    any_request()
    return statuses
