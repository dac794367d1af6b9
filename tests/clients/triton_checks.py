"""Checks of tritonclient over gRPC. See test_foreign_clients.py."""

import asyncio
import json
import os
import queue
import re
import signal
import sys
import time
import urllib.request
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
WORDS = ["station", "file", "window", "keys", "train", "close", "help", "find"]
SECONDS = SETTINGS["seconds"]  # for anything that has to happen

client = triton.InferenceServerClient(ADDRESS)
explicit = triton.InferenceServerClient(SETTINGS["keyed_address"])  # asks for keys; callers load and unload its models


def tensor(name: str, values: list[str], shape: Any = None) -> Any:
    given = triton.InferInput(name, shape or [len(values)], "BYTES")
    given.set_data_from_numpy(np.array([value.encode() for value in values], dtype=object).reshape(given.shape()))
    return given


def inputs(texts: list[str], **languages: list[str]) -> list[Any]:
    return [tensor("text", texts), *(tensor(name, codes) for name, codes in languages.items())]


def outputs(*names: str) -> list[Any]:
    return [triton.InferRequestedOutput(name) for name in names]


def strings(result: Any, name: str = "translation") -> list[str]:
    return [value.decode() for value in result.as_numpy(name)]


def fails(status: str, *says: str, work: Callable[[], Any]) -> None:
    with pytest.raises(InferenceServerException) as raised:
        work()
    assert raised.value.status() == f"StatusCode.{status}", raised.value
    for each in says:
        assert each in raised.value.message()


def infer_fails(status: str, *says: str, texts: list[str] | None = None, **asked: Any) -> None:
    fails(status, *says, work=lambda: client.infer("tiny", inputs(texts or ["Hello"]), **asked))


def long_work(num_texts: int = 1024, seed: int = 0, num_words: int = 6) -> list[str]:
    """Return texts never requested before, which take seconds to decode, and longer with more words."""
    return [
        " ".join(WORDS[(seed + number) // 8 ** (place % 6) % 8] for place in range(num_words))
        for number in range(num_texts)
    ]


def metric(name: str, **labels: str) -> float:
    with urllib.request.urlopen(SETTINGS["metrics"], timeout=SECONDS) as response:
        lines = response.read().decode()
    listed = ",".join(f'{key}="{value}"' for key, value in sorted((labels or {"model": "tiny"}).items()))
    found = re.search(rf"^{name}{{{listed}}} (\S+)$", lines, re.MULTILINE)
    return float(found[1]) if found else 0.0


def is_idle() -> bool:
    return metric("dragoman_sequences_running") + metric("dragoman_queue_sequences") == 0


def eventually(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.005)


def under_way(condition: Callable[[], bool], answers: "queue.Queue[Any]") -> None:
    """Wait until the work has progressed as far as `condition` says; it must not be answered before."""
    eventually(lambda: condition() or not answers.empty())
    assert answers.empty(), answers.get()


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
    assert [each.name for each in config.output] == list(outputs)
    assert all(list(each.dims) == [-1] for each in (*config.input, *config.output))
    assert config.HasField("model_transaction_policy")
    assert not config.model_transaction_policy.decoupled
    assert config.WhichOneof("scheduling_choice") is None  # perf_analyzer: no sequences, no ensemble
    assert config.parameters["language_pairs"].string_value == "en:de"
    fails("NOT_FOUND", "'7'", "tiny", work=lambda: client.get_model_metadata("tiny", "7"))


def check_infer() -> None:
    for version in ("1", "2"):
        result = client.infer("tiny", inputs(GOLDEN_TEXTS), model_version=version, request_id="mine")
        assert strings(result) == GOLDEN[version]
        assert set(strings(result, "finish_reason")) <= {"stop", "ratio"}
        assert result.as_numpy("score") is None
        response = result.get_response()
        assert (response.model_name, response.model_version, response.id) == ("tiny", version, "mine")
    assert strings(client.infer("tiny", inputs(GOLDEN_TEXTS))) == GOLDEN["2"]


def check_outputs_are_those_asked_for_in_that_order() -> None:
    result = client.infer("tiny", inputs(["Hello", "", "Find"]), outputs=outputs("score", "translation"))
    assert [each.name for each in result.get_response().outputs] == ["score", "translation"]
    scores = result.as_numpy("score")
    assert scores.dtype == np.float32
    assert scores[0] < 0
    assert scores[1] == 0
    assert strings(result)[1] == ""


def check_languages() -> None:
    texts, sources, targets = ["Hello", "Find keys", "Help"], ["fr", "it", "fr"], ["it", "es", "it"]
    several = inputs(texts, source_language=sources, target_language=targets)  # of two pairs
    mixed = strings(client.infer("many", several))
    alone = [
        strings(client.infer("many", inputs([text], source_language=[source], target_language=[target])))[0]
        for text, source, target in zip(texts, sources, targets, strict=True)
    ]
    assert mixed == alone
    assert len(set(mixed)) == 3
    fails("INVALID_ARGUMENT", "'target_language'", "'many'", work=lambda: client.infer("many", inputs(["Hello"])))


def check_parameters_and_deadlines() -> None:
    shortest = client.infer("tiny", inputs(GOLDEN_TEXTS), parameters={"max_output_tokens": 2})
    assert strings(shortest, "finish_reason") == ["length"] * 3
    client.infer("tiny", inputs(["Hello"]), parameters={"temperature": 1, "top_p": 0.9, "seed": 1}, priority=3)
    client.infer("tiny", inputs(["Hello"]), sequence_id=7, sequence_start=True, sequence_end=True)
    infer_fails("DEADLINE_EXCEEDED", texts=long_work(seed=100_000), timeout=20_000)
    infer_fails("DEADLINE_EXCEEDED", texts=long_work(seed=110_000), client_timeout=0.02)
    eventually(is_idle)


def check_the_others_are_unimplemented() -> None:
    fails("UNIMPLEMENTED", "shared memory is not supported", work=client.get_system_shared_memory_status)
    fails("UNIMPLEMENTED", "tracing", work=client.get_trace_settings)
    fails("UNIMPLEMENTED", "--log-level", work=client.get_log_settings)


def check_statistics() -> None:
    before = statistics(version="1")
    for _ in range(3):
        client.infer("tiny", inputs(long_work(2, seed=200_000)), model_version="1")
    after = statistics(version="1")
    assert after.inference_count - before.inference_count == 6
    assert after.execution_count > before.execution_count
    assert abs(after.last_inference / 1000 - time.time()) < SECONDS
    old, new = before.inference_stats, after.inference_stats
    assert new.success.count - old.success.count == 3
    for phase in ("queue", "compute_input", "compute_infer", "compute_output"):
        assert getattr(new, phase).count == new.success.count, phase  # or perf_analyzer fails
    assert after.execution_count == sum(each.compute_infer.count for each in after.batch_stats)
    all_of_them = client.get_inference_statistics().model_stats
    assert [(each.name, each.version) for each in all_of_them] == [("many", "1"), ("tiny", "2"), ("tiny", "1")]
    assert len(client.get_inference_statistics("tiny").model_stats) == 2


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
    failed = statistics().inference_stats.fail.count
    call = client.async_infer("tiny", inputs(long_work(seed=300_000, num_words=10)), tell)
    under_way(lambda: metric("dragoman_sequences_running") > 0, answers)
    call.cancel()
    assert answers.get(timeout=SECONDS)[1].status() == "StatusCode.CANCELLED"
    eventually(is_idle)
    eventually(lambda: statistics().inference_stats.fail.count == failed + 1)


def check_stream() -> None:
    counted = {"method": "inference.GRPCInferenceService/ModelStreamInfer", "kind": "translate"}
    num_before = metric("dragoman_requests_total", code="OK", **counted)
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
            assert not result.get_response().parameters
        client.async_stream_infer("nobody", inputs(["Hello"]))
        client.async_stream_infer("tiny", inputs(GOLDEN_TEXTS), enable_empty_final_response=True)
        _, error = answers.get(timeout=SECONDS)
        assert error.message().startswith("NOT_FOUND: model 'nobody'")
        result, error = answers.get(timeout=SECONDS)
        assert error is None
        assert strings(result) == GOLDEN["2"]
        assert result.get_response().parameters["triton_final_response"].bool_param
    finally:
        client.stop_stream()
    assert answers.empty()
    assert metric("dragoman_requests_total", code="OK", **counted) == num_before + 201
    assert metric("dragoman_requests_total", code="NOT_FOUND", **counted) >= 1


def check_a_cancelled_stream_takes_its_work_back() -> None:
    answers: queue.Queue[Any] = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    for number in range(3):
        client.async_stream_infer("tiny", inputs(long_work(300, seed=500_000 + 1000 * number, num_words=10)))
    under_way(lambda: metric("dragoman_queue_sequences") > 600, answers)  # so the third is there, too
    client.stop_stream(cancel_requests=True)
    eventually(is_idle)
    assert strings(client.infer("tiny", inputs(GOLDEN_TEXTS))) == GOLDEN["2"]


def check_asyncio() -> None:
    async def scenario() -> None:
        async with triton_aio.InferenceServerClient(ADDRESS) as each:
            assert await each.is_model_ready("tiny")
            assert len((await each.get_model_repository_index()).models) == 3
            results = await asyncio.gather(*(each.infer("tiny", inputs(GOLDEN_TEXTS)) for _ in range(20)))
            assert all(strings(result) == GOLDEN["2"] for result in results)

            async def requests() -> AsyncIterator[Any]:
                for number in range(30):
                    name = "nobody" if number == 7 else "tiny"
                    yield {"model_name": name, "inputs": inputs(GOLDEN_TEXTS), "request_id": str(number)}

            answers = [answer async for answer in each.stream_infer(requests(), stream_timeout=SECONDS)]
            _, error = answers.pop(7)
            assert "nobody" in error.message()
            found = [(int(result.get_response().id), error) for result, error in answers]
            assert found == [(number, None) for number in range(30) if number != 7]

    asyncio.run(asyncio.wait_for(scenario(), SECONDS))


def check_without_model_control_nothing_is_loaded_by_call() -> None:
    index = client.get_model_repository_index().models
    assert [(each.name, each.version, each.state) for each in index] == [
        ("many", "1", "READY"),
        ("tiny", "1", "READY"),
        ("tiny", "2", "READY"),
    ]
    fails("FAILED_PRECONDITION", "--model-control explicit", work=lambda: client.load_model("tiny"))


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
