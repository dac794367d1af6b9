"""Every message to any method of any API is answered or rejected, and the server keeps running."""

import contextlib
import itertools
import logging
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
from tests.any_message import any_message, damaged
from tests.any_request import GOOGLE_REQUESTS, REQUESTS, kserve_requests
from tests.faults.any_call import METHODS, Call, judge
from tests.grpc_calls import request_of
from tests.http_caller import call
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
    """Generate valid or nearly valid requests; those to translate by our own API are in tests/api/test_any_input.py."""
    of = {
        f"{OWN}/DetectLanguage": st.builds(pb.DetectLanguageRequest, texts=REQUESTS.map(lambda each: each.texts)),
        "/google.cloud.translation.v3.TranslationService/TranslateText": GOOGLE_REQUESTS,
        "/inference.GRPCInferenceService/ModelInfer": kserve_requests(),
        STREAM: kserve_requests(),
    }

    def call_of(method: str) -> st.SearchStrategy[Call]:
        messages = st.lists(of[method].map(_sent), min_size=1, max_size=4 if method == STREAM else 1).map(tuple)
        return st.builds(Call, st.just(method), messages, DEADLINES, METADATA)

    return st.one_of([call_of(method) for method in sorted(of)])


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
    def any_call(each: Call) -> None:
        status = judge(channel, each)
        statuses[status] += 1
        event(f"{each.method} {status}")

    any_call()
    return statuses


@pytest.mark.parametrize("times", [1, pytest.param(25, marks=[pytest.mark.full, pytest.mark.timeout(3600)])])
@pytest.mark.parametrize("level", LEVELS)
def test_any_call_is_answered_or_refused(server: InProcessServer, level: str, times: int) -> None:
    calls, num_cases = LEVELS[level]
    with watched(server) as channel:
        statuses = fuzz(channel, calls(), times * num_cases, derandomize=times == 1)
    assert statuses["OK"] >= num_cases // 100, statuses
    assert statuses["INVALID_ARGUMENT"] >= num_cases // 20, statuses


def test_an_error_in_the_server_is_noticed(server: InProcessServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: these tests do find an error, both in the answer and in the log."""

    async def fail(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(server.server.translator, "detect", fail)
    detection = Call(f"{OWN}/DetectLanguage", (pb.DetectLanguageRequest(texts=["Hello"]).SerializeToString(),))
    with (
        pytest.raises(AssertionError, match="planted"),
        watched(server) as channel,
        pytest.raises(AssertionError, match="INTERNAL"),
    ):
        judge(channel, detection)


PATHS = (
    *("/", "/metrics", "/readyz", "/livez", "/status", "/status.json", "/api/models", "/api/translate", "/api/reload"),
    *("*", "//", "/api/models/other/unload", "/api/models/other/load", "/api/models/x/load", "/api/models//load"),
    *("http://x/", "/api/models/%ff%00/load", "/api/models/..%2f..%2fetc/load", "/?" + "x" * 1000, "/%", "/#"),
)
BODIES = (
    *(b"", b"[]", b"null", b'{"texts": 1}', b"[" * 100_000, b'{"texts":["\\ud800"]}', b'{"x":1e999}', b"\xff"),
    b'{"options": {"temperature": "NaN", "seed": "' + b"9" * 5000 + b'"}, "texts": ["Hello"]}',
    json_format.MessageToJson(PLAIN).encode(),
)


@pytest.mark.parametrize("port", ["metrics_port", "admin_port"])
def test_any_http_request_to_operators_ports_is_answered_or_refused(server: InProcessServer, port: str) -> None:
    """Bytes of any kind are sent to such a port by tests/fuzz: `http`, `requests` and `same-site`."""
    url, statuses = f"http://127.0.0.1:{getattr(server.server, port)}", Counter[int]()
    with watched(server):
        sent = [*itertools.product(("GET", "PUT"), PATHS, (b"",)), *itertools.product(("POST",), PATHS, BODIES)]
        for method, path, body in sent:
            status = call(url, method, path, body=body, content_type="application/json").status
            assert status < 500 or status == 501, (method, path, body[:100])  # unknown method
            statuses[status] += 1
    assert statuses[200] >= 3, statuses
