"""Who sends a body is known before more than its beginning is received."""

import json

from service.faces.http.intake import MAX_UNKNOWN_BYTES
from tests.http_caller import Reply, call
from tests.key_files import ALICE
from tests.servers import InProcessServer

LARGE = b"Where is the station?\n" * (2 * MAX_UNKNOWN_BYTES // 22)


def send(keyed: InProcessServer, path: str, *fields: tuple[str, bytes], **headers: str) -> Reply:
    parts = [b"--b\r\nContent-Disposition: form-data; name=%s\r\n\r\n%s\r\n" % (n.encode(), c) for n, c in fields]
    body = b"".join(parts) + b"--b--\r\n"
    about = {"content_type": "multipart/form-data; boundary=b", **headers}
    return call(keyed.http_url, "POST", path, body=body, **about)


FILE = ('file; filename="a.txt"', LARGE)


def test_a_form_may_begin_with_its_key(keyed: InProcessServer) -> None:
    path, own, to = "/v2/document", ("auth_key", ALICE.encode()), ("target_lang", b"DE")
    assert send(keyed, path, own, to, FILE).status == 200
    assert send(keyed, path, to, FILE, x_api_key=ALICE).status == 200
    for fields in ([to, FILE], [to, FILE, own]):
        reply = send(keyed, path, *fields)
        assert reply.status == 403, reply.body
        assert "there is no API key in the first 65536 bytes; send it in a header" in reply.body.decode()
    assert send(keyed, path, ("auth_key", b"wrong"), to, FILE).status == 403


def test_a_small_body_may_have_its_key_anywhere(keyed: InProcessServer) -> None:
    asked = {"q": "station", "source": "en", "target": "de", "api_key": ALICE}
    assert call(keyed.http_url, "POST", "/translate", asked).status == 200
    assert send(keyed, "/translate", *((name, value.encode()) for name, value in asked.items())).status == 200


def test_a_large_body_without_fields_needs_its_key_in_a_header(keyed: InProcessServer) -> None:
    text = LARGE.decode()[: MAX_UNKNOWN_BYTES + 100]
    asked = {"q": text, "source": "en", "target": "de"}
    assert call(keyed.http_url, "POST", "/translate", asked, x_api_key=ALICE).status == 200
    reply = call(keyed.http_url, "POST", "/translate", {**asked, "api_key": ALICE})
    assert reply.status == 403
    assert "there is no API key in the first 65536 bytes" in reply.document["error"]
    chunks = iter([json.dumps({**asked, "api_key": ALICE}).encode()])
    assert call(keyed.http_url, "POST", "/translate", body=chunks, content_type="application/json").status == 403  # type: ignore[arg-type]
