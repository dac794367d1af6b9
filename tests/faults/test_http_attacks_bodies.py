"""Bodies of the allowed size that took the event loop seconds, and the server hundreds of MiB, to refuse."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from service.faces.json_text import MAX_VALUES
from tests.faults.bystanders import Peak, SmallCaller
from tests.http_caller import Reply, call
from tests.patience import patient
from tests.servers import ServerProcess

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
MOST_BYTES = 2**20 - 200
DECODING = b'{"target_language_code":"de","text":"x",'

# Where a value of JSON may stand in a body.
PLACES: Mapping[str, tuple[str, bytes]] = {
    "v1 texts": ("/v1/translate", b'{"target_language_code":"de","texts":%s}'),
    "v1 terms": ("/v1/translate", DECODING + b'"terms":%s}'),
    "v1 prefixes": ("/v1/translate/stream", DECODING + b'"target_prefixes":%s}'),
    "v1 labels": ("/v1/translate", DECODING + b'"labels":%s}'),
    "v1 options": ("/v1/translate", DECODING + b'"options":{"beam_size":%s}}'),
    "v1 detect": ("/v1/detect", b'{"texts":%s}'),
    "v1": ("/v1/translate", b"%s"),
    "deepl text": ("/v2/translate", b'{"target_lang":"de","text":%s}'),
    "deepl tags": ("/v2/translate", b'{"target_lang":"de","text":"x","ignore_tags":%s}'),
    "deepl unknown": ("/v2/translate", b'{"target_lang":"de","text":"x","other":%s}'),
    "google v2": ("/language/translate/v2", b'{"target":"de","q":%s}'),
    "google v3": ("/v3/projects/p:translateText", b'{"targetLanguageCode":"de","contents":%s}'),
    "kserve inputs": ("/v2/models/tiny/infer", b'{"inputs":%s}'),
    "kserve outputs": ("/v2/models/tiny/infer", b'{"inputs":[],"outputs":%s}'),
    "kserve shape": ("/v2/models/tiny/infer", b'{"inputs":[{"name":"text","datatype":"BYTES","shape":%s}]}'),
    "kserve data": ("/v2/models/tiny/infer", b'{"inputs":[{"name":"text","datatype":"BYTES","shape":[1],"data":%s}]}'),
    "kserve parameters": ("/v2/models/tiny/infer", b'{"inputs":[],"parameters":%s}'),
    "libretranslate": ("/translate", b'{"source":"en","target":"de","q":%s}'),
    "libretranslate source": ("/translate", b'{"target":"de","q":"x","source":%s}'),
}


def listed(value: bytes) -> bytes:
    return b"[" + b",".join([value] * (MOST_BYTES // (len(value) + 1))) + b"]"


def keyed(number: int) -> bytes:
    return b"{" + b",".join(b'"%d":0' % each for each in range(number)) + b"}"


VALUES: Mapping[str, bytes] = {
    "numbers": listed(b"0"),
    "objects": listed(b"{}"),
    "lists": listed(b"[]"),
    "nested lists": listed(b"[" * 100 + b"]" * 100),
    "empty texts": listed(b'""'),
    "keys": keyed(80_000),
    "as many numbers as may be": b"[" + b"0," * (MAX_VALUES - 10) + b"0]",
    "as many keys as may be": keyed((MAX_VALUES - 10) // 2),
    "as many objects as may be": b"[" + b"{}," * (MAX_VALUES // 2 - 5) + b"{}]",
    "digits": b"9" * MOST_BYTES,
    "long numbers": listed(b"9" * 4000),
    "exponent": b"1e999999",
    "commas": b'"' + b"," * MOST_BYTES + b'"',
    "a long name": b'"' + b"a-" * (MOST_BYTES // 2) + b'"',
    "deep": b"[" * (MOST_BYTES // 2) + b"]" * (MOST_BYTES // 2),
}
FORMS: Mapping[str, bytes] = {
    "percents": b"q=" + b"%" * MOST_BYTES,
    "encoded": b"text=" + b"%41" * (MOST_BYTES // 3),
    "fields": b"&".join(b"q%d=%%41" % number for number in range(4096)),
    "separators": b"&" * MOST_BYTES,
}


def posted(server: ServerProcess, path: str, body: bytes, content_type: str) -> Reply:
    return call(server.http_url, "POST", path, body=body, content_type=content_type)


@pytest.fixture
def server(tiny_models: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tiny_models, has_http=True) as process:
        yield process


def attacks() -> Iterator[tuple[str, str, bytes, str]]:
    for place, (path, body) in PLACES.items():
        for name, value in VALUES.items():
            yield f"{place}: {name}", path, body % value, JSON
    for path in ("/translate", "/v2/translate", "/language/translate/v2"):
        for name, form in FORMS.items():
            yield f"{path}: {name}", path, form, FORM


@pytest.mark.parametrize(
    ("every", "times"), [(7, 1), pytest.param(1, 3, marks=[pytest.mark.full, pytest.mark.timeout(600)])]
)
def test_no_body_of_the_allowed_size_delays_others(server: ServerProcess, every: int, times: int) -> None:
    """400,000 wrong elements took 0.6 to 7 s and up to 1,300 MiB."""
    chosen = list(attacks())[::every] * times
    for _, path, _, content_type in chosen[:: len(chosen) // 8]:  # what runs for the first time
        posted(server, path, b"", content_type)
    assert posted(server, "/v1/translate", b'{"text": "station", "target_language_code": "de"}', JSON).status < 500
    with SmallCaller(server.address) as caller:
        peak = Peak(server)
        for name, path, body, content_type in chosen:
            reply = posted(server, path, body, content_type)
            assert reply.status in (200, 400, 404, 413, 429), f"{name}: {reply.status} {reply.body[:200]!r}"
            assert len(reply.body) < 16_384 or reply.status == 200, name
        grown = peak.grown()
        caller.stop()
    assert grown < 60
    assert every == 7 or caller.p99_seconds() < 0.1
    assert caller.seconds[-1] < (patient(0.4) if every == 7 else 0.2)
