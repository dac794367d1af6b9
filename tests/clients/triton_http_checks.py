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


def check_json_and_binary_mixed() -> None:
    given = [tensor("text", GOLDEN_TEXTS, False), tensor("source_language", ["en"]), tensor("target_language", ["de"])]
    asked = [*outputs("score", binary=False), *outputs("translation"), *outputs("finish_reason", binary=False)]
    result = client.infer("tiny", given, outputs=asked)
    assert strings(result) == GOLDEN["2"]
    listed = result.get_response()["outputs"]
    assert [each["name"] for each in listed] == ["score", "translation", "finish_reason"]
    assert ["data" in each for each in listed] == [True, False, True]
    assert set(strings(result, "finish_reason")) <= {"stop", "ratio"}


def check_texts_outside_of_ascii() -> None:
    texts, answers = ["Bonjour à tous \u2014 \U0001f600 \"'\\\n", ""], []
    for binary, out in ((False, False), (False, True), (True, False), (True, True)):
        given = inputs(texts, binary=binary, source=["fr"], target=["it"])
        answers.append(strings(client.infer("many", given, outputs=outputs("translation", binary=out))))
    assert answers[0][0]
    assert answers == [answers[0]] * 4
    assert answers[0][1] == ""


def check_parameters() -> None:
    shortest = client.infer("tiny", inputs(GOLDEN_TEXTS), parameters={"max_output_tokens": 2})
    assert strings(shortest, "finish_reason") == ["length"] * 3
    client.infer("tiny", inputs(["Hello"]), priority=3, timeout=SECONDS * 1_000_000)
    client.infer("tiny", inputs(["Hello"]), sequence_id=7, sequence_start=True, sequence_end=True)


def check_bad_tensors() -> None:
    """Check what only this client makes of arrays: raw bytes of the wrong length, and data in JSON."""
    in_json = triton.InferInput("text", [1], "INT32")
    in_json.set_data_from_numpy(np.array([1], dtype=np.int32), binary_data=False)
    more, fewer = tensor("text", ["a"]).set_shape([2]), tensor("text", ["a", "b"]).set_shape([1])
    for says, given in (
        ("'text' is of datatype 'INT32'", in_json),
        ("'text' has shape [2] and 1 element", more),
        ("'text' has 5 bytes of raw contents after its 1 element", fewer),
    ):
        fails(400, says, work=partial(client.infer, "tiny", [given]))


def check_compression() -> None:
    for algorithm in ("gzip", "deflate"):
        compressed = partial(client.infer, "tiny", inputs(["Hello"]), request_compression_algorithm=algorithm)
        fails(415, "Content-Encoding", algorithm, "identity", work=compressed)
        result = client.infer("tiny", inputs(GOLDEN_TEXTS), response_compression_algorithm=algorithm)
        assert strings(result) == GOLDEN["2"]


def check_statistics() -> None:
    before = client.get_inference_statistics("tiny", "1")["model_stats"][0]["inference_count"]
    client.infer("tiny", inputs(GOLDEN_TEXTS), model_version="1")
    assert client.get_inference_statistics("tiny", "1")["model_stats"][0]["inference_count"] == before + 3
    assert {each["name"] for each in client.get_inference_statistics()["model_stats"]} == {"tiny", "many"}


def check_asyncio() -> None:
    async def scenario() -> None:
        async with triton_aio.InferenceServerClient(ADDRESS, conn_timeout=SECONDS) as each:
            assert await each.is_server_ready() is True
            assert await each.is_model_ready("nobody") is False
            assert (await each.get_model_metadata("tiny"))["versions"] == ["1", "2"]
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
    for headers in (None, {"Authorization": "Bearer dgm_wrong"}):
        fails(401, "API key", work=partial(explicit.infer, "tiny", inputs(["Hello"]), headers=headers))
        fails(401, "API key", work=partial(explicit.unload_model, "tiny", headers))
    assert strings(explicit.infer("tiny", inputs(GOLDEN_TEXTS), headers=dict(KEYED))) == GOLDEN["2"]
    assert explicit.is_model_ready("tiny", headers=KEYED) is True


def check_models_are_loaded_and_unloaded() -> None:
    assert states() == {("tiny", "2"): "READY", ("many", "1"): "UNAVAILABLE"}
    reasons = {each["name"]: each["reason"] for each in explicit.get_model_repository_index(KEYED)}
    assert reasons == {"tiny": "", "many": "it is not loaded"}
    assert explicit.is_model_ready("many", headers=KEYED) is False
    fails(404, "'nobody'", "many, tiny", work=lambda: explicit.load_model("nobody", KEYED))
    explicit.load_model("many", KEYED)
    assert states() == {("tiny", "2"): "READY", ("many", "1"): "READY"}
    assert strings(explicit.infer("many", inputs(["Hello"], source=["fr"], target=["it"]), headers=dict(KEYED)))[0]
    explicit.unload_model("many", KEYED, unload_dependents=True)
    assert states() == {("tiny", "2"): "READY", ("many", "1"): "UNAVAILABLE"}
