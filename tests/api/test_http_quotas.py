"""A caller's quotas are one for all APIs, and each tells in its own words that one is used up."""

from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from service.calls.keys import Quotas, key_lines, new_key
from service.config.server_config import ServerConfig
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from tests.api.http_faces import FACES, send
from tests.grpc_calls import refused, request_of, stub_of
from tests.http_caller import Reply, call
from tests.patience import patient
from tests.servers import InProcessServer, LoopThread, distinct_texts, eventually, in_process

KEY = new_key()
METADATA = (("x-api-key", KEY),)


def test_a_quota_is_one_for_all_apis(loop_thread: LoopThread, tiny_models: Path, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(key_lines(KEY, "bob", None, Quotas(requests_per_minute=len(FACES))))
    path.chmod(0o600)
    config = ServerConfig(models=tiny_models, num_threads=1, http_port=0, api_keys=path)
    with in_process(loop_thread, config) as server:
        for name, face in FACES.items():
            assert send(server, name, "station").status == face.no_key, name
            assert send(server, name, "station", x_api_key=KEY).status == 200, name
        for name in FACES:
            refused = send(server, name, "station", authorization=f"Bearer {KEY}")
            assert refused.status == 429, (name, refused.body)
            assert 0 < int(refused.headers["retry-after"]) <= 60
            assert "bob" in refused.body.decode()


def send_file(server: InProcessServer) -> Reply:
    parts = ('name="file"; filename="a.txt"\r\n\r\nstation', 'name="target_language_code"\r\n\r\nde')
    body = "".join(f"--x\r\nContent-Disposition: form-data; {part}\r\n" for part in parts) + "--x--\r\n"
    about = {"content_type": "multipart/form-data; boundary=x", "x_api_key": KEY}
    return call(server.http_url, "POST", "/v1/files", body=body.encode(), **about)


def grpc_request(num_texts: int) -> pb.TranslateRequest:
    texts = distinct_texts(num_texts)
    return request_of(texts)


@pytest.mark.parametrize(
    ("quotas", "num_texts", "problem", "status_of_deepl"),
    [
        (Quotas(requests_per_minute=1), 1, "requests", 429),
        (Quotas(tokens_per_minute=1), 1, "tokens", 456),  # waiting for a second or two is no use
        (Quotas(concurrent_calls=1), 400, "1 calls in progress, and at most 1", 429),
    ],
    ids=["requests", "tokens", "concurrent"],
)
def test_what_is_used_up_is_used_up_on_every_api(
    serve: Callable[..., InProcessServer],
    tmp_path: Path,
    quotas: Quotas,
    num_texts: int,
    problem: str,
    status_of_deepl: int,
) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(key_lines(KEY, "bob", None, quotas))
    path.chmod(0o600)
    server = serve(http_port=0, api_keys=path, max_slots=1)
    with stub_of(server.address) as stub:
        first = stub.Translate.future(grpc_request(num_texts), timeout=patient(60), metadata=METADATA)
        eventually(lambda: server.metric("dragoman_key_requests_total", key="bob") == 1)
        if not quotas.concurrent_calls:
            first.result()
        replies = {name: send(server, name, "station", x_api_key=KEY) for name in FACES}
        replies["files"] = send_file(server)
        error = refused(stub.Translate, grpc_request(1), metadata=METADATA)
        assert first.done() is not bool(quotas.concurrent_calls)  # else it proves nothing
        first.cancel()
    for name, reply in replies.items():
        assert reply.status == (status_of_deepl if name == "deepl" else 429), (name, reply.body)
        assert 0 < int(reply.headers["retry-after"]) <= 120
        assert "key bob has" in reply.body.decode()
        assert problem in reply.body.decode()
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert problem in str(error.details())
    assert server.metric("dragoman_key_refused_total", key="bob") == len(replies) + 1
