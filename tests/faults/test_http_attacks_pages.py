"""Pages of other web sites, open in a browser on this machine, against a server that asks for no key."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.api.http_faces import EACH, FACES
from tests.http_caller import Reply, call, raw
from tests.servers import InProcessServer, Serve

REBOUND = "evil.example:8080"
ASKED = {"text": ["station"], "source_lang": "en", "target_lang": "de"}
FORM = "text=station&source_lang=en&target_lang=de"
FORM_TYPE = "application/x-www-form-urlencoded"


@pytest.fixture
def server(serve: Serve, tmp_path: Path) -> InProcessServer:
    (tmp_path / "ours.en-de.tsv").write_text("secret\tgeheim\n")
    controls: dict[str, Any] = {"model_control": "explicit", "load_model": ("*",)}
    return serve(http_port=0, glossaries=tmp_path, **controls)


def asked(server: InProcessServer, method: str, path: str, headers: Mapping[str, str], body: object = None) -> Reply:
    given: dict[str, Any] = {name.replace("-", "_"): value for name, value in headers.items()}
    if isinstance(body, str):
        return call(server.http_url, method, path, body=body.encode(), **given)
    return call(server.http_url, method, path, body, **given)


@EACH
def test_a_page_whose_name_leads_here_translates_nothing(server: InProcessServer, name: str) -> None:
    path, body = FACES[name].path, FACES[name].asked("station")
    page = {"host": REBOUND, "origin": f"http://{REBOUND}", "sec-fetch-site": "same-origin"}
    refused = asked(server, "POST", path, page, body)
    assert refused.status == 403
    assert f"Host is '{REBOUND}'; allowed: addresses, names without a dot and the name" in refused.body.decode()
    wrong = asked(server, "POST", path, {}, "{")  # in the words of the API
    assert refused.document.keys() == wrong.document.keys()
    assert asked(server, "POST", path, {}, body).status == 200
    assert asked(server, "POST", path, {"host": "localhost"}, body).status == 200


def test_it_reads_no_glossaries_and_unloads_no_model(server: InProcessServer) -> None:
    listed = asked(server, "GET", "/v3/glossaries", {}).document["glossaries"]
    entries = f"/v3/glossaries/{listed[0]['glossary_id']}/entries?source_lang=en&target_lang=de"
    for method, path, body in (
        ("GET", "/v3/glossaries", None),
        ("GET", entries, None),
        ("GET", "/v3/projects/p/locations/l/glossaries/ours/glossaryEntries", None),
        ("GET", "/", None),
        ("GET", "/nothing", None),
        ("OPTIONS", "/v1/translate", None),
        ("POST", "/v2/repository/models/tiny/unload", {}),
    ):
        refused = asked(server, method, path, {"host": REBOUND}, body)
        assert (path, refused.status) == (path, 403)
        assert b"geheim" not in refused.body
    assert asked(server, "GET", "/v2/models/tiny/ready", {}).status == 200
    assert "geheim" in asked(server, "GET", entries, {}).body.decode()


@pytest.mark.parametrize(
    "page", [{"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}]
)
def test_a_form_of_another_site_changes_nothing(server: InProcessServer, page: dict[str, str]) -> None:
    """A browser sends a form, or a text that looks like JSON, without asking first."""
    for kind, body in ((FORM_TYPE, FORM), ("text/plain", json.dumps(ASKED))):
        refused = asked(server, "POST", "/v2/translate", {**page, "content-type": kind}, body)
        assert refused.status == 403
        assert "Origin is" in refused.document["message"]
    for method, path in (
        ("POST", "/v2/repository/models/tiny/unload"),
        ("POST", "/translate"),
        ("DELETE", "/v2/glossaries/1"),
        ("PATCH", "/v3/glossaries/1"),
        ("PUT", "/v3/glossaries/1/dictionaries"),
    ):
        assert asked(server, method, path, page, "").status == 403
    assert asked(server, "GET", "/v2/models/tiny/ready", {}).status == 200
    assert asked(server, "POST", "/v2/translate", {"content-type": FORM_TYPE}, FORM).status == 200
    own = {"origin": server.http_url, "content-type": FORM_TYPE}
    assert asked(server, "POST", "/v2/translate", own, FORM).status == 200


def test_nothing_of_the_body_is_waited_for(server: InProcessServer) -> None:
    head = f"POST /v1/translate HTTP/1.1\r\nHost: {REBOUND}\r\nContent-Length: 100000\r\n\r\n"
    assert raw(server.http_url, head.encode(), first_only=True).startswith(b"HTTP/1.1 403 ")


def test_it_reads_no_metrics(server: InProcessServer) -> None:
    url = f"http://127.0.0.1:{server.server.metrics_port}"
    for path in ("/metrics", "/readyz", "/livez"):
        assert call(url, "GET", path, host=REBOUND).status == 403
        assert call(url, "GET", path, host="localhost:9464").status == 200
        assert call(url, "GET", path).status == 200
    assert raw(url, b"GET /readyz HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200")  # as some probes ask
