"""The HTTP port of several worker processes: one port, whichever of them answers."""

import signal
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

from tests.http_caller import Reply, call
from tests.http_post import form_of
from tests.servers import ServerProcess, distinct_texts, eventually

pytestmark = pytest.mark.single  # it starts two itself


@pytest.fixture(scope="module")
def server(tiny_models: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tiny_models, "--workers", "2", "--grace-seconds", "10", has_http=True) as process:
        yield process


def test_all_workers_answer_at_one_port_and_are_counted_as_one(server: ServerProcess) -> None:
    asked = {"source_language_code": "en", "target_language_code": "de"}
    replies = [call(server.http_url, "POST", "/v1/translate", {**asked, "text": text}) for text in distinct_texts(20)]
    assert {reply.status for reply in replies} == {200}
    assert f"HTTP API and translation page on {server.http_url}/," in server.ready_line
    name = 'dragoman_requests_total{code="OK",method="http/v1/translate"} 20.0'
    name_other_order = 'dragoman_requests_total{method="http/v1/translate",code="OK"} 20.0'
    eventually(lambda: any(each in server.get("/metrics")[2] for each in (name, name_other_order)))


def send(server: ServerProcess, path: str, name: str = "a.txt", text: str = "station\n", **fields: str) -> Reply:
    """Send a form with a document."""
    body, kind = form_of(name, text, fields)
    return call(server.http_url, "POST", path, body=body, content_type=kind)


def expected(server: ServerProcess) -> bytes:
    asked = {"source_language_code": "en", "target_language_code": "de", "text": "station"}
    reply = call(server.http_url, "POST", "/v1/translate", asked)
    return f"{reply.document['translations'][0]['text']}\n".encode()


def test_a_document_of_deepls_api_is_found_by_whichever_worker_is_asked(server: ServerProcess) -> None:
    translation = expected(server)
    handles = [send(server, "/v2/document", source_lang="EN", target_lang="DE").document for _ in range(4)]
    for handle in handles:
        key = {"document_key": handle["document_key"]}
        path = f"/v2/document/{handle['document_id']}"
        statuses = [call(server.http_url, "POST", path, key).document for _ in range(10)]
        assert [each["status"] for each in statuses] == ["done"] * 10
        wrong = [call(server.http_url, "POST", path, {"document_key": "x"}).status for _ in range(10)]
        assert wrong == [404] * 10
        results = [call(server.http_url, "POST", f"{path}/result", key) for _ in range(10)]
        assert [each.status for each in results] == [200] + [404] * 9  # it is fetched once, from any
        assert results[0].body == translation


def test_why_a_document_failed_every_worker_tells(server: ServerProcess) -> None:
    handle = send(server, "/v2/document", "a.docx", source_lang="EN", target_lang="DE").document
    key = {"document_key": handle["document_key"]}
    path = f"/v2/document/{handle['document_id']}"
    statuses = [call(server.http_url, "POST", path, key).document for _ in range(10)]
    told = {(each["status"], each["error_message"][:40]) for each in statuses}
    assert told == {("error", "file can't be read: it is not a ZIP arch")}
    assert {call(server.http_url, "POST", f"{path}/result", key).status for _ in range(10)} == {400}


def test_a_file_of_libretranslates_api_is_fetched_from_whichever_worker_is_asked(server: ServerProcess) -> None:
    translation = expected(server)
    for _ in range(4):
        reply = send(server, "/translate_file", source="en", target="de")
        path = reply.document["translatedFileUrl"].removeprefix(server.http_url)
        assert {call(server.http_url, "GET", path).body for _ in range(10)} == {translation}
    assert ".docx" in call(server.http_url, "GET", "/frontend/settings").document["supportedFilesFormat"]


def test_a_document_whose_worker_was_killed_has_failed(tiny_models: Path) -> None:
    with ServerProcess(tiny_models, "--workers", "2", "--max-slots", "2", has_http=True) as process:
        long = "".join(f"station window {number}\n" for number in range(20_000))
        handle = send(process, "/v2/document", text=long, source_lang="EN", target_lang="DE").document
        path, key = f"/v2/document/{handle['document_id']}", {"document_key": handle["document_key"]}
        assert call(process.http_url, "POST", path, key).document["status"] == "translating"
        workers = psutil.Process(process.process.pid).children()
        [worker] = [each for each in workers if any(handle["document_id"] in file.path for file in each.open_files())]
        worker.kill()

        def failed() -> bool:
            with suppress(OSError, HTTPException):  # the worker's connections ended with it
                status = call(process.http_url, "POST", path, key).document
                return "its translation is lost" in status.get("error_message", "")
            return False

        eventually(failed)


def test_what_the_workers_keep_goes_with_the_server(tiny_models: Path) -> None:
    with (
        TemporaryDirectory() as folder,
        ServerProcess(tiny_models, "--workers", "2", has_http=True, variables={"TMPDIR": folder}) as process,
    ):
        assert send(process, "/translate_file", source="en", target="de").status == 200
        [documents] = Path(folder).glob("dragoman-*/documents")
        assert documents.stat().st_mode & 0o777 == 0o700
        assert len(list(documents.iterdir())) == 2  # and the lock
        process.signal(signal.SIGTERM)
        assert process.wait()[0] == 0
        assert list(Path(folder).glob("dragoman-*")) == []


def test_a_stop_ends_the_port(server: ServerProcess) -> None:
    server.signal(signal.SIGTERM)
    code, _, errors = server.wait()
    assert (code, errors) == (0, "")
