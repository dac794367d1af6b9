"""The HTTP port of several worker processes: one port, whichever of them answers."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http_caller import call
from tests.servers import ServerProcess, distinct_texts, eventually

pytestmark = pytest.mark.single  # it starts two itself


@pytest.fixture(scope="module")
def server(tiny_models: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tiny_models, "--workers", "2", "--grace-seconds", "10", has_http=True)
    yield process
    process.kill()


def test_all_workers_answer_at_one_port_and_are_counted_as_one(server: ServerProcess) -> None:
    asked = {"source_language_code": "en", "target_language_code": "de"}
    replies = [call(server.http_url, "POST", "/v1/translate", {**asked, "text": text}) for text in distinct_texts(20)]
    assert {reply.status for reply in replies} == {200}
    assert f"HTTP API and translation page on {server.http_url}/," in server.ready_line
    name = 'dragoman_requests_total{code="OK",method="http/v1/translate"} 20.0'
    name_other_order = 'dragoman_requests_total{method="http/v1/translate",code="OK"} 20.0'
    eventually(lambda: any(each in server.get("/metrics")[2] for each in (name, name_other_order)))


def test_no_worker_keeps_documents_that_another_would_be_asked_for(server: ServerProcess) -> None:
    form = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nstation\r\n'
        b'--b\r\nContent-Disposition: form-data; name="target_language_code"\r\n\r\nde\r\n--b--\r\n'
    )
    kind = "multipart/form-data; boundary=b"
    paths = {"/v1/files": 200, "/v2/document": 400, "/translate_file": 403}
    replies = {path: call(server.http_url, "POST", path, body=form, content_type=kind) for path in paths}
    assert {path: reply.status for path, reply in replies.items()} == paths
    for path in ("/v2/document", "/translate_file"):
        assert b"several workers" in replies[path].body
        assert b"/v1/files" in replies[path].body
    assert not call(server.http_url, "GET", "/frontend/settings").document["filesTranslation"]


def test_a_stop_ends_the_port(server: ServerProcess) -> None:
    server.signal(signal.SIGTERM)
    code, _, errors = server.wait()
    assert (code, errors) == (0, "")
