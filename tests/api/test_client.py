"""The clients against a real server: the same answers with asyncio and without, and how calls end."""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman_client import AsyncClient, ClientError, NotSecure, Options, Tls
from tests.certificates import Authority
from tests.gate import Gate
from tests.key_files import ALICE, write_keys
from tests.servers import TIMEOUT_SECONDS, InProcessServer, LoopThread, Serve, distinct_texts, eventually

LONG = Options(max_output_tokens=24, max_repeats=0, max_length_ratio=0.0)


@pytest.fixture(scope="module")
def slow(share: Serve) -> InProcessServer:
    return share(max_slots=1, max_waiting=4000)  # room for two calls of one caller


def num_running(server: InProcessServer) -> int:
    return server.server.models[0].engine.snapshot().num_running


def test_a_stream_that_is_closed_leaves_the_engine(slow: InProcessServer) -> None:
    with (
        slow.client() as client,
        contextlib.closing(client.stream(distinct_texts(500), "en", "de", options=LONG)) as it,
    ):
        assert next(it).model == "tiny"
        eventually(lambda: num_running(slow) > 0)  # it is not between two turns, in which all may end
        it.close()
        eventually(lambda: num_running(slow) == 0)  # before the channel closes


def test_closing_fails_the_calls_under_way(slow: InProcessServer, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(slow, monkeypatch)
    with ThreadPoolExecutor() as threads, slow.client() as client:
        translations = threads.submit(client.translate, distinct_texts(500), "en", "de", options=LONG)
        events = threads.submit(lambda: list(client.stream(distinct_texts(500), "en", "de", options=LONG)))
        eventually(lambda: slow.metric("dragoman_inflight_requests") == 2)
        client.close()
        for call in (translations, events):
            error = call.exception(TIMEOUT_SECONDS)
            assert isinstance(error, ClientError)
            assert error.code == "CANCELLED"
    gate.open()
    eventually(lambda: num_running(slow) == 0)


def test_what_waits_for_room_ends_as_the_client_is_closed(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(max_slots=1, max_waiting=500)
    gate = Gate(server, monkeypatch)
    with ThreadPoolExecutor() as threads, server.client() as busy, server.client() as client:
        threads.submit(busy.translate, distinct_texts(500), "en", "de", options=LONG)
        gate.wait()
        call = threads.submit(client.translate, distinct_texts(500), "en", "de", options=LONG)
        eventually(lambda: server.metric("dragoman_rejected_total", reason="queue_full") >= 1)
        client.close()
        error = call.exception(TIMEOUT_SECONDS)
        busy.close()
        gate.open()
    assert isinstance(error, ClientError)
    assert error.code in ("RESOURCE_EXHAUSTED", "CANCELLED")  # whether it was waiting or retrying


TEXTS = ["Hello", "", "Save the file before you close the window. Find my keys."]
OPTIONS = Options(beam_size=2, return_scores=True)
Run = Callable[[Any], Any]


@pytest.fixture
def run(loop_thread: LoopThread) -> Run:
    return loop_thread.run


def test_it_answers_as_the_synchronous_one(server: InProcessServer, run: Run) -> None:
    async def ask() -> list[Any]:
        async with AsyncClient(server.address) as client:
            assert client.server == server.address
            events = [event async for event in client.stream(TEXTS, "en", "de", options=OPTIONS)]
            translations = await client.translate(TEXTS, "en", "de", options=OPTIONS)
            return [translations, events, await client.detect(TEXTS), await client.models()]

    translations, events, detected, models = run(ask())
    with server.client() as client:
        assert client.translate(TEXTS, "en", "de", options=OPTIONS) == translations
        ended = {event.text_index: event.translation for event in client.stream(TEXTS, "en", "de", options=OPTIONS)}
        assert [ended[index] for index in range(len(TEXTS))] == translations
        assert client.detect(TEXTS) == detected
        assert client.models() == models
    assert all(hypothesis.score is not None for hypothesis in translations[0].hypotheses)
    for index, translation in enumerate(translations):
        own = [event for event in events if event.text_index == index]
        assert "".join(event.delta for event in own) == translation.text
        assert [event.translation for event in own] == [None] * (len(own) - 1) + [translation]
        assert {event.model for event in own} == {models[0].name}


def test_it_needs_an_event_loop() -> None:
    with pytest.raises(RuntimeError, match="create it inside a coroutine"):
        AsyncClient("127.0.0.1:1")


def test_a_task_that_is_cancelled_leaves_the_engine(
    slow: InProcessServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(slow, monkeypatch)

    async def ask() -> None:
        async with AsyncClient(slow.address) as client:
            task = asyncio.create_task(client.translate(distinct_texts(500), "en", "de", options=LONG))
            await asyncio.to_thread(gate.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(ask())
    gate.open()
    eventually(lambda: num_running(slow) == 0)


def test_a_stream_of_asyncio_that_is_closed_leaves_the_engine(slow: InProcessServer, run: Run) -> None:
    async def ask() -> None:
        async with (
            AsyncClient(slow.address) as client,
            contextlib.aclosing(client.stream(distinct_texts(500), "en", "de", options=LONG)) as events,
        ):
            assert (await anext(events)).model
            await events.aclose()
            await asyncio.to_thread(eventually, lambda: num_running(slow) == 0)  # before the channel closes

    run(ask())


def test_closing_fails_the_calls_of_asyncio_under_way(
    slow: InProcessServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(slow, monkeypatch)

    async def ask() -> list[Any]:
        client = AsyncClient(slow.address)

        async def stream() -> list[Any]:
            return [event async for event in client.stream(distinct_texts(150), "en", "de", options=LONG)]

        calls = [client.translate(distinct_texts(150), "en", "de", options=LONG), stream()]
        tasks = [asyncio.create_task(call) for call in calls]
        await asyncio.to_thread(gate.wait)
        await asyncio.to_thread(eventually, lambda: slow.metric("dragoman_inflight_requests") == 2)
        await client.close()
        return list(await asyncio.gather(*tasks, return_exceptions=True))

    for outcome in run(ask()):
        assert isinstance(outcome, ClientError)
        assert outcome.code == "CANCELLED"
    gate.open()
    eventually(lambda: num_running(slow) == 0)


def test_it_waits_for_room_as_long_as_it_is_patient(serve: Serve, run: Run) -> None:
    server = serve(max_slots=1, max_waiting=40)

    async def ask() -> list[int]:
        async with (
            AsyncClient(server.address) as patient,
            AsyncClient(server.address, patience_seconds=0.0) as impatient,
        ):
            options = Options(max_output_tokens=24)
            calls = [patient.translate(distinct_texts(40), "en", "de", options=options) for _ in range(3)]
            busy = [asyncio.create_task(call) for call in calls]
            await asyncio.to_thread(
                eventually, lambda: server.metric("dragoman_rejected_total", reason="queue_full") >= 2
            )
            with pytest.raises(ClientError) as raised:
                await impatient.translate(distinct_texts(40), "en", "de")
            assert raised.value.code == "RESOURCE_EXHAUSTED"
            assert raised.value.retry_after_seconds
            return [len(translations) for translations in await asyncio.gather(*busy)]

    assert run(ask()) == [40] * 3


def test_tls_and_api_keys(serve: Serve, run: Run, tmp_path: Path) -> None:
    authority, trusted = Authority(), tmp_path / "ca.crt"
    certificate, key = authority.pair().write(tmp_path)
    trusted.write_bytes(authority.certificate)
    server = serve(tls_certificate=certificate, tls_key=key, api_keys=write_keys(tmp_path, alice=ALICE))

    async def ask() -> None:
        async with AsyncClient(server.address, tls=Tls(trusted), api_key=ALICE) as client:
            assert len(await client.translate(["Hello"], "en", "de")) == 1
        async with AsyncClient(server.address, tls=Tls(trusted)) as client:
            with pytest.raises(ClientError) as raised:
                await client.models()
            assert raised.value.code == "UNAUTHENTICATED"
        async with AsyncClient(server.address, tls=Tls(), api_key=ALICE) as client:
            with pytest.raises(NotSecure, match=r"name its certificate authority with Tls\(authorities"):
                await client.models()

    run(ask())
