"""Google's asyncio client."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.cloud.translate_v3 import TranslationServiceAsyncClient
from google.cloud.translate_v3.services.translation_service.transports import TranslationServiceGrpcAsyncIOTransport
from google.rpc import error_details_pb2

PARENT = "projects/any/locations/global"
GOOD: dict[str, Any] = {
    "parent": PARENT,
    "contents": ["Hello"],
    "mime_type": "text/plain",
    "source_language_code": "en",
    "target_language_code": "de",
}
Work = Callable[[TranslationServiceAsyncClient], Awaitable[None]]


@pytest.fixture
def run(address: str) -> Callable[[Work], None]:
    async def with_client(work: Work) -> None:
        async with grpc.aio.insecure_channel(address) as channel:
            transport = TranslationServiceGrpcAsyncIOTransport(channel=channel)
            await asyncio.wait_for(work(TranslationServiceAsyncClient(transport=transport)), 60)

    return lambda work: asyncio.run(with_client(work))


def test_calls_at_the_same_time(run: Callable[[Work], None]) -> None:
    async def work(client: TranslationServiceAsyncClient) -> None:
        texts = ["Hello", "Save the file.", "Where is the train station?", ""]
        alone = [(await client.translate_text(request=GOOD | {"contents": [text]})).translations for text in texts]
        at_once = await asyncio.gather(
            *(client.translate_text(request=GOOD | {"contents": [text]}) for text in texts * 4)
        )
        assert [answer.translations[0] for answer in at_once] == [each[0] for each in alone] * 4

    run(work)


def test_the_other_calls(run: Callable[[Work], None]) -> None:
    async def work(client: TranslationServiceAsyncClient) -> None:
        assert (await client.detect_language(parent=PARENT, content="Where is the train station?")).languages[
            0
        ].language_code == "en"
        languages = (await client.get_supported_languages(parent=PARENT, display_language_code="en")).languages
        assert [each.display_name for each in languages] == ["German", "English"]
        assert [each async for each in await client.list_glossaries(parent=PARENT)] == []

    run(work)


def test_errors(run: Callable[[Work], None], many: list[str]) -> None:
    async def work(client: TranslationServiceAsyncClient) -> None:
        with pytest.raises(exceptions.InvalidArgument) as raised:
            await client.translate_text(request=GOOD | {"contents": ["a"] * 1025})
        violations = [detail for detail in raised.value.details if isinstance(detail, error_details_pb2.BadRequest)]
        assert violations[0].field_violations[0].field == "contents"
        with pytest.raises(exceptions.NotFound):
            await client.translate_text(request=GOOD | {"model": f"{PARENT}/models/huge"})
        with pytest.raises(exceptions.MethodNotImplemented, match="CreateGlossary is not supported"):
            await client.create_glossary(request={"parent": PARENT})
        with pytest.raises(exceptions.DeadlineExceeded):
            await client.translate_text(request=GOOD | {"contents": many}, timeout=0.05)

    run(work)


def test_a_call_that_is_given_up(run: Callable[[Work], None], many: list[str]) -> None:
    async def work(client: TranslationServiceAsyncClient) -> None:
        call = asyncio.ensure_future(client.translate_text(request=GOOD | {"contents": many}))
        await client.translate_text(request=GOOD)  # takes turns with the many texts, so they have begun
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await client.translate_text(request=GOOD)).translations

    run(work)
