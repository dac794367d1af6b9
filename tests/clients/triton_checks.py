"""Checks of tritonclient over gRPC. See test_foreign_clients.py."""

import asyncio
import json
import os
import queue
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from descriptors import differences, file_of, methods_of  # type: ignore[import-not-found]  # beside this module
from google.protobuf import descriptor_pb2, descriptor_pool
from tritonclient.utils import InferenceServerException

SETTINGS = json.loads(sys.argv[1])
ADDRESS = SETTINGS["address"]
KEYED = {"authorization": f"Bearer {SETTINGS['key']}"}
GOLDEN_TEXTS = SETTINGS["golden_texts"]
GOLDEN = SETTINGS["golden"]  # version -> translations
MANY = ["station file window keys train close"] * 1024
SECONDS = SETTINGS["seconds"]  # for anything that has to happen

client = triton.InferenceServerClient(ADDRESS)
explicit = triton.InferenceServerClient(SETTINGS["keyed_address"])  # asks for keys; callers load and unload its models


def inputs(texts: list[str], **languages: list[str]) -> list[Any]:
    given = []
    for name, values in {"text": texts, **languages}.items():
        given.append(triton.InferInput(name, [len(values)], "BYTES"))
        given[-1].set_data_from_numpy(np.array([value.encode() for value in values], dtype=object))
    return given


def strings(result: Any, name: str = "translation") -> list[str]:
    return [value.decode() for value in result.as_numpy(name)]


def fails(status: str, *says: str, work: Callable[[], Any]) -> None:
    with pytest.raises(InferenceServerException) as raised:
        work()
    assert raised.value.status() == f"StatusCode.{status}", raised.value
    for each in says:
        assert each in raised.value.message()


def statistics(name: str = "tiny", version: str = "2") -> Any:
    (found,) = client.get_inference_statistics(name, version).model_stats
    return found


# One server that serves what is on disk: tiny in versions 1 and 2, and many.


def check_server() -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    metadata = client.get_server_metadata()
    assert metadata.name == "dragoman"
    assert re.match(r"\d+\.\d+", metadata.version)
    assert {"statistics", "model_repository", "model_configuration"} <= set(metadata.extensions)
    ready = [client.is_model_ready(*model) for model in (("tiny",), ("tiny", "1"), ("tiny", "3"), ("nobody",))]
    assert ready == [True, True, False, False]


def check_our_messages_are_the_client_s_in_name_number_and_type() -> None:
    file = file_of(Path(SETTINGS["descriptors"], "triton.pb"))
    assert len(file.message_type) > 50
    assert differences(file) == []
    theirs = descriptor_pb2.ServiceDescriptorProto()
    descriptor_pool.Default().FindServiceByName("inference.GRPCInferenceService").CopyToProto(theirs)
    assert methods_of(file.service[0]) == methods_of(theirs)


def check_metadata_and_config() -> None:
    metadata = client.get_model_metadata("tiny", as_json=True)
    assert metadata["versions"] == ["1", "2"]
    inputs, outputs = ("text", "source_language", "target_language"), ("translation", "score", "finish_reason")
    tensors = [(each["name"], each["datatype"], each["shape"]) for each in metadata["inputs"] + metadata["outputs"]]
    assert tensors == [(name, "FP32" if name == "score" else "BYTES", ["-1"]) for name in (*inputs, *outputs)]
    config = client.get_model_config("tiny").config
    assert (config.name, config.max_batch_size, config.backend) == ("tiny", 0, metadata["platform"])
    assert [(each.name, each.optional) for each in config.input] == list(zip(inputs, (False, True, True), strict=True))
    assert not config.model_transaction_policy.decoupled
    assert config.WhichOneof("scheduling_choice") is None  # perf_analyzer: no sequences, no ensemble


def check_infer() -> None:
    for version in ("1", "2"):
        result = client.infer("tiny", inputs(GOLDEN_TEXTS), model_version=version, request_id="mine")
        assert strings(result) == GOLDEN[version]
        assert set(strings(result, "finish_reason")) <= {"stop", "ratio"}
        assert result.as_numpy("score") is None
        response = result.get_response()
        assert (response.model_name, response.model_version, response.id) == ("tiny", version, "mine")
    assert strings(client.infer("tiny", inputs(GOLDEN_TEXTS))) == GOLDEN["2"]


def check_the_others_are_unimplemented() -> None:
    fails("UNIMPLEMENTED", "shared memory is not supported", work=client.get_system_shared_memory_status)
    fails("UNIMPLEMENTED", "tracing", work=client.get_trace_settings)
    fails("UNIMPLEMENTED", "--log-level", work=client.get_log_settings)


def check_statistics() -> None:
    before = statistics(version="1")
    client.infer("tiny", inputs(["Find keys", "Help"]), model_version="1")
    after = statistics(version="1")
    assert after.inference_count - before.inference_count == 2
    new = after.inference_stats
    assert new.success.count - before.inference_stats.success.count == 1
    for phase in ("queue", "compute_input", "compute_infer", "compute_output"):
        assert getattr(new, phase).count == new.success.count, phase  # or perf_analyzer fails
    assert after.execution_count == sum(each.compute_infer.count for each in after.batch_stats)
    assert abs(after.last_inference / 1000 - time.time()) < SECONDS
    listed = [(each.name, each.version) for each in client.get_inference_statistics().model_stats]
    assert listed == [("many", "1"), ("tiny", "2"), ("tiny", "1")]


def check_async_infer_and_cancellation() -> None:
    answers: queue.Queue[Any] = queue.Queue()

    def tell(result: Any, error: Any) -> None:
        answers.put((result, error))

    for _ in range(8):
        client.async_infer("tiny", inputs(GOLDEN_TEXTS), tell)
    for _ in range(8):
        result, error = answers.get(timeout=SECONDS)
        assert error is None
        assert strings(result) == GOLDEN["2"]
    client.async_infer("tiny", inputs(MANY), tell).cancel()
    assert answers.get(timeout=SECONDS)[1].status() == "StatusCode.CANCELLED"


def check_stream() -> None:
    answers: queue.Queue[Any] = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    try:
        for number in range(200):  # more than may be in progress at a time
            client.async_stream_infer("tiny", inputs(GOLDEN_TEXTS[: 1 + number % 3]), request_id=str(number))
        for number in range(200):
            result, error = answers.get(timeout=SECONDS)
            assert error is None, error
            assert result.get_response().id == str(number)  # in order
            assert strings(result) == GOLDEN["2"][: 1 + number % 3]
        client.async_stream_infer("nobody", inputs(["Hello"]))
        client.async_stream_infer("tiny", inputs(GOLDEN_TEXTS), enable_empty_final_response=True)
        assert answers.get(timeout=SECONDS)[1].message().startswith("NOT_FOUND: model 'nobody'")
        result, _ = answers.get(timeout=SECONDS)
        assert result.get_response().parameters["triton_final_response"].bool_param
    finally:
        client.stop_stream()


def check_asyncio() -> None:
    async def scenario() -> None:
        async with triton_aio.InferenceServerClient(ADDRESS) as each:
            results = await asyncio.gather(*(each.infer("tiny", inputs(GOLDEN_TEXTS)) for _ in range(20)))
            assert all(strings(result) == GOLDEN["2"] for result in results)

            async def requests() -> AsyncIterator[Any]:
                for name in ("tiny", "nobody", "tiny"):
                    yield {"model_name": name, "inputs": inputs(GOLDEN_TEXTS)}

            answers = [answer async for answer in each.stream_infer(requests(), stream_timeout=SECONDS)]
            assert [error is None for _, error in answers] == [True, False, True]

    asyncio.run(asyncio.wait_for(scenario(), SECONDS))


# One server with explicit model control, which starts with tiny.


def states() -> dict[tuple[str, str], str]:
    return {(each.name, each.version): each.state for each in explicit.get_model_repository_index(KEYED).models}


def check_models_are_loaded_and_unloaded() -> None:
    languages = {"source_language": ["fr"], "target_language": ["it"]}
    fails("UNAUTHENTICATED", "API key", work=lambda: explicit.unload_model("tiny"))
    assert states() == {("tiny", "2"): "READY", ("many", "1"): "UNAVAILABLE"}
    os.kill(SETTINGS["keyed_pid"], signal.SIGHUP)  # changes no models, as the server's log says
    fails("UNIMPLEMENTED", "'config'", work=lambda: explicit.load_model("many", KEYED, config="{}"))
    explicit.load_model("many", KEYED)
    assert states() == {("tiny", "2"): "READY", ("many", "1"): "READY"}
    explicit.infer("many", inputs(["Hello"], **languages), headers=KEYED)
    explicit.unload_model("many", KEYED, unload_dependents=True)
    assert states() == {("tiny", "2"): "READY", ("many", "1"): "UNAVAILABLE"}
    assert not explicit.is_model_ready("many", headers=KEYED)
    explicit.unload_model("tiny", KEYED)
    fails("NOT_FOUND", "served: none", work=lambda: explicit.infer("tiny", inputs(["Hello"]), headers=KEYED))
