"""Documents over HTTP, in every API that has them: each format, what is refused, and whose they are."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from service.calls.keys import Quotas
from service.documents import DocumentOptions, open_document
from service.documents.document import Doubt
from tests.http_caller import Reply, call
from tests.http_post import form_of
from tests.key_files import ALICE, BOB, write_keys
from tests.servers import InProcessServer, Serve, eventually
from tests.unit.documents.formats.office import word

PAIR = {"source_language_code": "en", "target_language_code": "de"}
TABLE = b"1,2\nstation,window\n"  # whose columns have numbers as names
FRONT_MATTER = b"---\ntitle: station\nother: station\n---\nwindow\n"
# Documents with the fields that are sent with them, and the options that these are.
DOCUMENTS: list[tuple[str, bytes, dict[str, str], dict[str, Any]]] = [
    ("a.csv", b"n,text\n1,station\n", {"columns": "text"}, {"columns": ("text",)}),
    ("a.csv", TABLE, {"columns": "2", "has_header": "true"}, {"columns": ("2",), "has_header": True}),
    ("a.csv", TABLE, {"columns": "2", "has_header": "false"}, {"columns": ("2",), "has_header": False}),
    ("a.docx", word("<w:p><w:r><w:t>station</w:t></w:r></w:p>"), {}, {}),
    ("a.html", b"<p>station <b>window</b></p><pre>code</pre>", {}, {}),
    ("a.md", b"# station\n\n```\ncode\n```\n\nwindow *keys*\n", {}, {}),
    ("a.md", FRONT_MATTER, {"front_matter": "title, description"}, {"front_matter": ("title",)}),
    (
        "a.json",
        b'{"a": "station", "icon": "a-b"}',
        {"keys": "ic*", "skip_keys": "a"},
        {"keys": ("ic*",), "skip_keys": ("a",)},
    ),
    ("a.txt", "window\n".encode("utf-16-le"), {"encoding": "utf-16-le"}, {"encoding": "utf-16-le"}),
]


def send(
    server: InProcessServer,
    path: str,
    name: str,
    data: bytes,
    key: str = "",
    headers: Mapping[str, str] = MappingProxyType({}),
    **fields: str,
) -> Reply:
    """Send a form with a document."""
    headers = {**headers, "x_api_key": key} if key else headers
    body, kind = form_of(name, data, fields)
    return call(server.http_url, "POST", path, body=body, content_type=kind, **headers)


def translate(server: InProcessServer, name: str, data: bytes, **fields: str) -> Reply:
    return send(server, "/v1/files", name, data, "", {}, **{**PAIR, **fields})


def expected(server: InProcessServer, name: str, data: bytes, **options: Any) -> bytes:
    """Return the document with what /v1/translate makes, and says, of its texts."""
    document = open_document(name, data, DocumentOptions(target="de", **options))
    found, doubts = [], {}
    for number, each in enumerate(document.texts):
        asked = {**PAIR, "text": each.text, "mime_type": each.mime_type.value, "return_segments": True}
        [translation] = call(server.http_url, "POST", "/v1/translate", asked).document["translations"]
        found.append(translation["text"])
        flags = (flag for segment in translation["segments"] for flag in segment["flags"])
        if (doubt := Doubt(tuple(dict.fromkeys(flags)), translation["finish_reason"])) != Doubt():
            doubts[number] = doubt
    assert found
    return document.written(found, doubts)


@pytest.mark.parametrize(("name", "source", "fields", "options"), DOCUMENTS)
def test_documents_come_back_translated(
    server: InProcessServer, name: str, source: bytes, fields: dict[str, str], options: dict[str, Any]
) -> None:
    reply = translate(server, name, source, **fields)
    assert reply.status == 200, reply.body
    assert reply.body == expected(server, name, source, **options) != source
    assert reply.headers["content-disposition"] == f'attachment; filename="a.de{name[1:]}"'
    assert "total;dur=" in reply.headers["server-timing"]


def test_options_are_those_of_a_text(server: InProcessServer) -> None:
    options = {"options": json.dumps({"max_output_tokens": 1, "max_length_ratio": 0.0})}
    short = translate(server, "a.txt", b"station window keys", **options)
    assert short.status == 200
    whole = translate(server, "a.txt", b"station window keys")
    assert len(short.body) < len(whole.body)
    told = {"place": "line 1", "flags": ["empty"], "finish_reason": "length"}
    report = {"num_texts": 1, "flags": {"empty": 1}, "finish_reasons": {"length": 1}, "texts": [told]}
    assert json.loads(short.headers["x-document-report"]) == report
    assert short.headers["x-document-notes"] == "1 text was flagged: 1 empty. 1 text was cut off: 1 length."


def test_a_language_is_detected(server: InProcessServer) -> None:
    reply = send(server, "/v1/files", "a.txt", b"Where is the station?\nok\n", target_language_code="de")
    assert reply.body == expected(server, "a.txt", b"Where is the station?\nok\n")


@pytest.mark.parametrize(
    ("name", "data", "fields", "message", "field"),
    [
        ("a.exe", b"MZ", {}, "file ends in '.exe'; allowed: .arb, .ass,", "file"),
        ("a.docx", b"PK", {}, "file can't be read: it is not a ZIP archive", "file"),
        ("a.txt", b"a", {"mime_type": "text/html"}, "mime_type is unknown; leave it out.", "mime_type"),
        (
            "a.docx",
            b"PK",
            {"encoding": "cp1252"},
            "encoding is for text, tsv, csv, md, rst, srt, vtt, ass; leave it out.",
            "encoding",
        ),
        (
            "a.txt",
            "station é\n".encode("windows-1252"),
            {"encoding": "windows-1252"},
            "file can't be written: the translation has '⁇', which windows-1252 lacks; convert the file to UTF-8.",
            "file",
        ),
        ("a.txt", b"a", {"options": "{"}, "options is not JSON: EOF", "options"),
        ("a.txt", b"a", {"options": '{"x": 1}'}, "options.x is unknown", "options.x"),
        ("a.txt", b"a", {"options": '{"beam_size": 99}'}, "options.beam_size is 99", "options.beam_size"),
        ("a.txt", b"a", {"deadline": "-1"}, "deadline is -1.0; allowed: milliseconds above 0.", "deadline"),
        ("a.txt", b"a", {"deadline": "soon"}, "deadline is 'soon'; allowed: a number.", "deadline"),
        ("a.txt", b"a b " * 40_000, {}, "file (line 1) has 159999 characters without a break", "file (line 1)"),
    ],
)
def test_what_is_refused(
    server: InProcessServer, name: str, data: bytes, fields: dict[str, str], message: str, field: str
) -> None:
    reply = translate(server, name, data, **fields)
    assert reply.status == 400
    assert reply.error["message"].startswith(message)
    assert reply.error["field"] == field


def test_fields_that_are_missing(server: InProcessServer) -> None:
    reply = send(server, "/v1/files", "a.txt", b"a")
    assert (reply.status, reply.error["message"]) == (400, "target_language_code is missing.")
    reply = call(server.http_url, "POST", "/v1/files", {})
    assert reply.error["message"] == "Content-Type is 'application/json'; allowed: multipart/form-data."


def test_uploads_may_be_larger_than_other_calls(server: InProcessServer) -> None:
    limit = server.server.config.max_request_bytes
    assert translate(server, "a.html", b"<p>station</p><!--" + b"x" * limit + b"-->").status == 200
    reply = translate(server, "a.html", b"x" * (33 * 2**20))
    assert (reply.status, b"the body has" in reply.body) == (413, True)


def test_a_deadline_is_kept(server: InProcessServer) -> None:
    reply = translate(server, "a.txt", b"station\n" * 10_000, deadline="1")
    assert (reply.status, reply.error["code"]) == (504, "DEADLINE_EXCEEDED")
    eventually(lambda: server.metric("dragoman_inflight_requests") == 0)


def test_without_a_deadline_there_is_the_time_for_a_document(serve: Serve) -> None:
    running = serve(http_port=0, default_deadline_seconds=0.001)
    assert call(running.http_url, "POST", "/v1/translate", {**PAIR, "text": "station"}).status == 504
    assert translate(running, "a.txt", b"station\n").status == 200
    assert translate(running, "a.txt", b"station\n", deadline="1").status == 504


def raw_upload(server: InProcessServer, data: bytes, key: str = "") -> Reply:
    return send(server, "/v2/document", "a.txt", data, key, source_lang="EN", target_lang="DE")


def translation_count(server: InProcessServer, code: str) -> float:
    """Return how many translations of documents of DeepL's API ended with this code."""
    return server.metric(
        "dragoman_requests_total", code=code, kind="document", method="http/deepl/document_translation"
    )


def upload(server: InProcessServer, key: str = "", data: bytes = b"station\n") -> dict[str, str]:
    reply = raw_upload(server, data, key)
    assert reply.status == 200, reply.body
    return dict(reply.document)


def ask(server: InProcessServer, handle: dict[str, str], key: str = "", result: str = "") -> Reply:
    headers: Any = {"x_api_key": key} if key else {}
    document = {"document_key": handle["document_key"]}
    return call(server.http_url, "POST", f"/v2/document/{handle['document_id']}{result}", document, **headers)


def test_a_document_belongs_to_its_key(keyed: InProcessServer) -> None:
    handle = upload(keyed, ALICE)
    for result in ("", "/result"):
        assert ask(keyed, handle, BOB, result).status == 404
        assert ask(keyed, handle, "", result).status == 403
        wrong = {**handle, "document_key": "x"}
        assert "not that of this document" in ask(keyed, wrong, ALICE, result).document["message"]
    assert ask(keyed, handle, ALICE).document["status"] == "done"


def test_a_document_in_work_is_told_and_ended_by_a_stop(serve: Serve) -> None:
    running = serve(http_port=0, max_slots=1, grace_seconds=0.0)
    handle = upload(running, data=b"".join(b"station window %d\n" % number for number in range(5000)))
    status = ask(running, handle).document
    assert status["status"] == "translating"
    reply = ask(running, handle, result="/result")
    assert (reply.status, reply.headers.get("retry-after")) == (503, None)


def test_a_key_has_as_many_documents_in_work_as_calls(serve: Serve, tmp_path: Path) -> None:
    keys = write_keys(tmp_path, Quotas(concurrent_calls=1), alice=ALICE)
    running = serve(http_port=0, max_slots=1, grace_seconds=0.0, api_keys=keys)
    handle = upload(running, ALICE, b"".join(b"station window %d\n" % number for number in range(5000)))
    assert ask(running, handle, ALICE).document["status"] == "translating"
    refused = raw_upload(running, b"station\n", ALICE)
    assert (refused.status, "1 document in progress" in refused.document["message"]) == (429, True)


def test_why_a_document_failed_is_counted_and_noted_with_its_id(server: InProcessServer) -> None:
    before = translation_count(server, "INVALID_ARGUMENT")
    reply = send(server, "/v2/document", "a.docx", b"PK", source_lang="EN", target_lang="DE")
    eventually(lambda: translation_count(server, "INVALID_ARGUMENT") == before + 1)
    noted = [(each.request_id, each.method) for each in server.server.errors.latest()]
    assert (reply.headers["x-request-id"], "http/deepl/document_translation") in noted


@pytest.mark.parametrize(
    ("url", "of_here", "of_others"),
    [("", "http://127.0.0.1:1", ""), ("https://mt.example.org/", "https://mt.example.org", "https://mt.example.org")],
)
def test_the_address_of_a_file_is_not_made_of_what_somebody_claims(
    serve: Serve, url: str, of_here: str, of_others: str
) -> None:
    """D6: `Host` is taken if it is no name; of other names the server knows only the one that it is told."""
    running = serve(http_port=0, http_without_keys=True, http_url=url)
    for host, begins in (("127.0.0.1:1", of_here), ("evil.example.org", of_others)):
        headers = {"host": host}
        reply = send(running, "/translate_file", "a.md", b"# station\n", headers=headers, source="en", target="de")
        assert reply.document["translatedFileUrl"].startswith(f"{begins}/download_file/")


def test_the_address_of_a_file_leads_to_no_document_of_another_api(server: InProcessServer) -> None:
    """That address needs no key, and without API keys the document's own key is all that protects it."""
    handle = upload(server)
    assert call(server.http_url, "GET", f"/download_file/{handle['document_id'].lower()}.de.txt").status == 404
    reply = send(server, "/translate_file", "a.txt", b"station\n", source="en", target="de")
    file_id = reply.document["translatedFileUrl"].rpartition("/")[2].partition(".")[0].upper()
    assert ask(server, {"document_id": file_id, "document_key": "x"}).document["message"].startswith("there is no such")
    assert ask(server, handle, result="/result").status == 200


def test_a_proxy_tells_how_it_was_reached(server: InProcessServer) -> None:
    headers = {"x_forwarded_proto": "https"}
    reply = send(server, "/translate_file", "a.txt", b"station", headers=headers, source="en", target="de")
    assert reply.document["translatedFileUrl"].startswith(f"https://{server.http_url[7:]}/download_file/")
