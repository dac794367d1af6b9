"""Today's client and a server of the first version: what it lacks, and what it leaves out of its answers."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from dragoman_client import (
    AsyncClient,
    Client,
    ClientError,
    FinishReason,
    Hypothesis,
    MimeType,
    Model,
    Options,
    Placeholder,
    Priority,
    SplitSentences,
    Term,
    Translation,
)
from tests.patience import patient

FIRST = Path(__file__).with_name("first_contract.proto")
SERVICE = "dragoman.v1.TranslationService"
NEWER: dict[str, Any] = {
    "priority": Priority.LOW,
    "mime_type": MimeType.HTML,
    "split_sentences": SplitSentences.OFF,
    "terms": [Term("file", "Akte")],
    "placeholders": [Placeholder(start="<<", end=">>")],
    "return_alignments": True,
    "keep_other_languages": True,
}


def first_messages(folder: Path) -> Any:
    """Return the message types of the first contract, which share nothing with those of today."""
    compiled = folder / "first.bin"
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"-I{FIRST.parent}", f"--descriptor_set_out={compiled}"]
    subprocess.run([*protoc, FIRST.name], check=True, timeout=patient(30))
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(compiled.read_bytes()).file:
        pool.Add(file)
    names = ("TranslateRequest", "TranslateResponse", "ListModelsRequest", "ListModelsResponse")
    found = {name: pool.FindMessageTypeByName(f"dragoman.v1.{name}") for name in names}
    return SimpleNamespace(**{name: message_factory.GetMessageClass(each) for name, each in found.items()})


class FirstServer:
    """Translates to upper case, and refuses the text "full" without any detail of a status."""

    def __init__(self, types: Any) -> None:
        self.asked: list[Any] = []
        self._types = types
        methods = {
            "Translate": grpc.unary_unary_rpc_method_handler(
                self._translate, types.TranslateRequest.FromString, types.TranslateResponse.SerializeToString
            ),
            "ListModels": grpc.unary_unary_rpc_method_handler(
                self._list, types.ListModelsRequest.FromString, types.ListModelsResponse.SerializeToString
            ),
        }
        self.server = grpc.server(ThreadPoolExecutor(2))
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def _translate(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.asked.append(request)
        if "full" in request.texts:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "the queue is full")
        answer = self._types.TranslateResponse(model="m")
        for text in request.texts:
            answer.translations.add(text=text.upper(), finish_reason=1, num_source_tokens=2).hypotheses.add(
                text=text.upper(), num_tokens=3
            )
        return answer

    def _list(self, _: Any, __: grpc.ServicerContext) -> Any:
        answer = self._types.ListModelsResponse()
        model = answer.models.add(name="m", version="1", max_source_tokens=4, max_output_tokens=5, precision="int8")
        model.language_pairs.add(source_language_code="en", target_language_code="de")
        model.default_options.beam_size = 4
        return answer


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FirstServer]:
    server = FirstServer(first_messages(tmp_path_factory.mktemp("first")))
    yield server
    server.server.stop(None).wait(patient(10))


def test_it_reads_what_it_knows_and_what_it_does_not_return_is_empty(first: FirstServer) -> None:
    with Client(first.address) as client:
        answers = client.translate(["Hello"], "en", "de", options=Options(beam_size=2, seed=7), **NEWER)
    assert answers == [Translation("HELLO", (Hypothesis("HELLO", None, 3),), FinishReason.STOP, 2)]
    asked = first.asked[-1]
    assert {field.name for field, _ in asked.ListFields()} == {
        *("texts", "source_language_code", "target_language_code", "options")
    }
    assert [(field.name, value) for field, value in asked.options.ListFields()] == [("beam_size", 2)]


def test_its_models_have_no_more_than_it_says(first: FirstServer) -> None:
    with Client(first.address) as client:
        assert client.models() == [Model("m", "1", (("en", "de"),), 4, 5, Options(beam_size=4), "int8")]


def test_an_error_without_details_is_raised_at_once(first: FirstServer) -> None:
    num_asked = len(first.asked)
    with Client(first.address) as client, pytest.raises(ClientError) as raised:
        client.translate(["full"], "en", "de")
    error = raised.value
    assert (str(error), error.code) == ("the queue is full", "RESOURCE_EXHAUSTED")
    assert (error.request_id, error.field, error.retry_after_seconds) == ("", "", None)
    assert len(first.asked) == num_asked + 1


def test_calls_that_it_lacks_say_what_to_do(first: FirstServer) -> None:
    advice = f"{first.address} has no such call (Method not found!): upgrade it, or give the address of a Dragoman "

    async def detect() -> None:
        async with AsyncClient(first.address) as client:
            await client.detect(["Hello"])

    with Client(first.address) as client:
        calls: list[Callable[[], object]] = [
            lambda: client.detect(["Hello"]),
            lambda: list(client.stream(["Hello"], "en", "de")),
            lambda: asyncio.run(detect()),
        ]
        for work in calls:
            with pytest.raises(ClientError, match=re.escape(advice)) as raised:
                work()
            assert raised.value.code == "UNIMPLEMENTED"
