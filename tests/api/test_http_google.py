"""Google Cloud Translation over HTTP, by plain requests: paths, bodies, forms, queries, keys and errors."""

from typing import Any
from urllib.parse import quote, urlencode

import pytest

from service.faces.google.rules import UNSUPPORTED_RULES, Rule
from tests.http_caller import Reply, call
from tests.servers import InProcessServer, Serve

PARENT = "projects/p/locations/global"
V3, V2 = f"/v3/{PARENT}:translateText", "/language/translate/v2"
FORM = "application/x-www-form-urlencoded"
ASKED = {"contents": ["station"], "mimeType": "text/plain", "sourceLanguageCode": "en", "targetLanguageCode": "de"}
ASKED_V2 = {"q": "station", "source": "en", "target": "de", "format": "text"}


@pytest.fixture(scope="module")
def server(share: Serve, tmp_path_factory: pytest.TempPathFactory) -> InProcessServer:
    folder = tmp_path_factory.mktemp("glossaries")
    (folder / "files.en-de.tsv").write_text("file\tAkte\n", encoding="utf-8")
    return share(glossaries=folder, http_port=0)


@pytest.fixture(scope="module")
def expected(server: InProcessServer) -> str:
    with server.client() as client:
        [translation] = client.translate(["station"], "en", "de")
    return translation.text


def get(server: InProcessServer, path: str, **headers: Any) -> Reply:
    return call(server.http_url, "GET", path, **headers)


def post(server: InProcessServer, path: str, document: Any = None, **more: Any) -> Reply:
    return call(server.http_url, "POST", path, document, **more)


@pytest.mark.parametrize(
    "path",
    [
        V3,
        "/v3/projects/p:translateText",
        "/v3/projects/a%20b%C3%A4/locations/-:translateText",
        f"/v3/{quote(PARENT + ':translateText')}",
        f"{V3}?$alt=json;enum-encoding%3Dint&prettyPrint=false&%24.xgafv=2",
    ],
)
def test_v3_translates_under_every_spelling_of_its_path(server: InProcessServer, path: str, expected: str) -> None:
    reply = post(server, path, ASKED)
    assert reply.status == 200, reply.body
    assert reply.document == {"translations": [{"translatedText": expected}]}
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["dragoman-finish-reasons"] == "ratio=0"  # the tiny model continues until it is stopped


def test_v3_reads_glossaries(server: InProcessServer) -> None:
    name = f"{PARENT}/glossaries/files.en-de"
    reply = get(server, f"/v3/{PARENT}/glossaries?pageSize=1&filter={quote('src=en AND tgt=de')}")
    assert reply.document == {
        "glossaries": [
            {
                "name": name,
                "languagePair": {"sourceLanguageCode": "en", "targetLanguageCode": "de"},
                "entryCount": 1,
                "displayName": "files",
            }
        ]
    }
    assert get(server, f"/v3/{name}").document == reply.document["glossaries"][0]
    entry = {
        "name": f"{name}/glossaryEntries/1",
        "termsPair": {
            "sourceTerm": {"languageCode": "en", "text": "file"},
            "targetTerm": {"languageCode": "de", "text": "Akte"},
        },
    }
    assert get(server, f"/v3/{name}/glossaryEntries").document == {"glossaryEntries": [entry]}
    assert get(server, f"/v3/{name}/glossaryEntries/1").document == entry
    both = post(server, V3, ASKED | {"contents": ["file"], "glossaryConfig": {"glossary": name}}).document
    assert both["glossaryTranslations"][0]["glossaryConfig"] == {"glossary": name}
    assert "Akte" in both["glossaryTranslations"][0]["translatedText"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (V3, b'{"contents": ["\\ud800"], "targetLanguageCode": "de"}', "contents[0]"),
        (V3, b'{"contents": [' + b'"",' * 1024 + b'""]}', "contents"),
        (f"{V3}?alt=proto", b'{"contents": ["a"]}', "alt"),
        ("/v3/projects/a%2Fb%2Fc/locations/l:translateText", b'{"contents": ["a"]}', "parent"),
    ],
)
def test_v3_a_wrong_request_is_googles_400(server: InProcessServer, path: str, body: bytes, field: str) -> None:
    reply = post(server, path, body=body, content_type="application/json")
    assert reply.status == 400, reply.body
    assert (reply.error["code"], reply.error["status"]) == (400, "INVALID_ARGUMENT")
    violations = [each["fieldViolations"][0]["field"] for each in reply.error["details"] if "fieldViolations" in each]
    assert violations == ([field] if field else [])


@pytest.mark.parametrize("rule", UNSUPPORTED_RULES, ids=lambda rule: f"{rule.method} {rule.template}")
def test_v3_every_other_method_says_what_there_is_instead(server: InProcessServer, rule: Rule) -> None:
    path = rule.path.format_map({f"part{number}": f"x{number}" for number in range(5)})
    reply = call(server.http_url, rule.method, path)
    assert (reply.status, reply.error["status"]) == (501, "UNIMPLEMENTED")
    assert reply.error["message"].startswith(f"{rule.name} is not supported by this server; ")


def test_v2_takes_json_a_form_and_a_query(server: InProcessServer, expected: str) -> None:
    form = urlencode(ASKED_V2)
    replies = [
        post(server, V2, ASKED_V2),
        post(server, V2, ASKED_V2 | {"q": ["station"], "model": None, "cid": []}),
        post(server, V2, body=form.encode(), content_type=FORM),
        post(server, V2, body=form.encode(), content_type=FORM, x_http_method_override="GET"),
        post(server, f"{V2}?{form}", body=b""),
        get(server, f"{V2}?{form}&alt=json&prettyPrint=true"),
    ]
    for reply in replies:
        assert reply.status == 200, reply.body
        assert reply.document == {"data": {"translations": [{"translatedText": expected}]}}
        assert reply.headers["dragoman-finish-reasons"] == "ratio=0"
    several = get(server, f"{V2}?{form}&q=&model=base").document["data"]["translations"]
    assert several == [{"translatedText": expected, "model": "base"}, {"translatedText": "", "model": "base"}]


@pytest.mark.parametrize(
    ("changes", "code", "reason", "location"),
    [
        ({"q": ["a"] * 1025}, 400, "invalid", "q"),
        ({"q": ["Где вокзал?"], "source": ""}, 400, "invalid", "q[0]"),
        ({"model": "huge"}, 404, "notFound", ""),
        ({"cid": "c"}, 501, "notImplemented", ""),
    ],
)
def test_v2_a_wrong_request_is_googles_error(
    server: InProcessServer, changes: dict[str, Any], code: int, reason: str, location: str
) -> None:
    reply = post(server, V2, ASKED_V2 | changes)
    assert (reply.status, reply.error["code"]) == (code, code), reply.body
    (about,) = reply.error["errors"]
    assert (about["message"], about["domain"], about["reason"]) == (reply.error["message"], "global", reason)
    assert about.get("location", "") == location
