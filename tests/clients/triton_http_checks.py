"""Checks of tritonclient over HTTP, with threads and with asyncio. See test_foreign_clients.py."""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException

SETTINGS = json.loads(sys.argv[1])
ADDRESS, EXPLICIT = (SETTINGS[name].removeprefix("http://") for name in ("url", "keyed_url"))
KEYED = {"Authorization": f"Bearer {SETTINGS['key']}"}
GOLDEN_TEXTS = SETTINGS["golden_texts"]
GOLDEN = SETTINGS["golden"]  # version -> translations
SECONDS = SETTINGS["seconds"]

client = triton.InferenceServerClient(ADDRESS, concurrency=4, connection_timeout=SECONDS, network_timeout=SECONDS)
explicit = triton.InferenceServerClient(EXPLICIT, connection_timeout=SECONDS, network_timeout=SECONDS)


def tensor(name: str, values: Sequence[str], binary: bool = True) -> Any:
    given = triton.InferInput(name, [len(values)], "BYTES")
    given.set_data_from_numpy(np.array([value.encode() for value in values], dtype=object), binary_data=binary)
    return given


def inputs(texts: Sequence[str], *, binary: bool = True, source: Sequence[str] = (), target: Sequence[str] = ()) -> Any:
    languages = {"source_language": source, "target_language": target}
    return [tensor("text", texts, binary), *(tensor(name, codes, binary) for name, codes in languages.items() if codes)]


def outputs(*names: str, binary: bool = True) -> list[Any]:
    return [triton.InferRequestedOutput(name, binary_data=binary) for name in names]


def strings(result: Any, name: str = "translation") -> list[str]:
    """Return an output's elements: bytes where they came in binary, else texts."""
    return [value.decode() if isinstance(value, bytes) else value for value in result.as_numpy(name)]


def fails(status: int, *says: str, work: Callable[[], Any]) -> None:
    try:
        answer = work()
    except InferenceServerException as error:
        refusal = error
    else:
        raise AssertionError(f"it was answered: {answer}")
    assert refusal.status() == str(status), refusal
    for each in says:
        assert each in refusal.message(), refusal


def states() -> dict[tuple[str, str], str]:
    return {(each["name"], each["version"]): each["state"] for each in explicit.get_model_repository_index(KEYED)}


# One server that serves what is on disk: tiny in versions 1 and 2, and many.


def check_server() -> None:
    assert client.is_server_live() is True
    assert client.is_server_ready() is True
    metadata = client.get_server_metadata()
    assert metadata["name"] == "dragoman"
    assert re.match(r"\d+\.\d+", metadata["version"])
    extensions = {"statistics", "model_repository", "model_configuration", "binary_tensor_data", "parameters"}
    assert extensions <= set(metadata["extensions"])


def check_metadata_and_config() -> None:
    metadata, config = client.get_model_metadata("tiny"), client.get_model_config("tiny")
    assert metadata["versions"] == ["1", "2"]
    assert (config["name"], config["max_batch_size"], config["backend"]) == ("tiny", 0, metadata["platform"])
    assert [each["data_type"] for each in config["output"]] == ["TYPE_STRING", "TYPE_FP32", "TYPE_STRING"]


def check_infer_in_binary() -> None:
    for version in ("1", "2"):
        result = client.infer("tiny", inputs(GOLDEN_TEXTS), model_version=version, request_id="mine")
        assert strings(result) == GOLDEN[version]
        assert set(strings(result, "finish_reason")) <= {"stop", "ratio"}
        assert result.as_numpy("score") is None
        response = result.get_response()
        assert (response["model_name"], response["model_version"], response["id"]) == ("tiny", version, "mine")
        assert all("binary_data_size" in each["parameters"] for each in response["outputs"])
    result = client.infer("tiny", inputs(GOLDEN_TEXTS))
    assert strings(result) == GOLDEN["2"]
    assert "id" not in result.get_response()


def check_infer_in_json() -> None:
    asked = outputs("translation", "score", binary=False)
    result = client.infer("tiny", inputs(GOLDEN_TEXTS, binary=False), outputs=asked)
    assert strings(result) == GOLDEN["2"]
    in_binary = client.infer("tiny", inputs(GOLDEN_TEXTS), outputs=outputs("score"))
    assert (result.as_numpy("score") == in_binary.as_numpy("score")).all()


def check_compression() -> None:
    for algorithm in ("gzip", "deflate"):
        result = client.infer("tiny", inputs(GOLDEN_TEXTS), response_compression_algorithm=algorithm)
        assert strings(result) == GOLDEN["2"]


def check_asyncio() -> None:
    async def scenario() -> None:
        async with triton_aio.InferenceServerClient(ADDRESS, conn_timeout=SECONDS) as each:
            calls = [
                each.infer("tiny", inputs([text], binary=binary), outputs=outputs("translation", binary=out))
                for text in GOLDEN_TEXTS
                for binary in (True, False)
                for out in (True, False)
            ]
            results = await asyncio.gather(*calls)
            assert [strings(result)[0] for result in results] == [text for text in GOLDEN["2"] for _ in range(4)]

    asyncio.run(asyncio.wait_for(scenario(), SECONDS))


# A server whose callers have keys and load its models. Its tests run in this order.


def check_keys() -> None:
    assert explicit.is_server_ready() is True
    fails(401, "API key", work=partial(explicit.infer, "tiny", inputs(["Hello"])))
    assert strings(explicit.infer("tiny", inputs(GOLDEN_TEXTS), headers=dict(KEYED))) == GOLDEN["2"]
    assert explicit.is_model_ready("tiny", headers=KEYED) is True


def check_models_are_loaded_and_unloaded() -> None:
    assert states() == {("tiny", "2"): "READY", ("many", "1"): "UNAVAILABLE"}
    fails(404, "'nobody'", "many, tiny", work=lambda: explicit.load_model("nobody", KEYED))
    explicit.load_model("many", KEYED)
    assert states() == {("tiny", "2"): "READY", ("many", "1"): "READY"}
    assert strings(explicit.infer("many", inputs(["Hello"], source=["fr"], target=["it"]), headers=dict(KEYED)))[0]
    explicit.unload_model("many", KEYED, unload_dependents=True)
    assert states() == {("tiny", "2"): "READY", ("many", "1"): "UNAVAILABLE"}
