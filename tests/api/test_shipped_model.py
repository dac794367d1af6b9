"""The shipped models in a real server: quality, and answers that do not depend on the load."""

import asyncio
import functools
import random
from collections.abc import Iterator
from contextlib import AsyncExitStack
from itertools import zip_longest
from typing import Any

import grpc
import pytest
from sacrebleu.metrics.bleu import BLEU

from dragoman_client import Client, Options, SplitSentences
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.grpc_calls import request_of
from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess

MODELS = REPOSITORY / "models"
CHECKPOINT = REPOSITORY / "checkpoints" / "en-de"


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess(MODELS, "--max-slots", "64") as process:  # measured limits may be lower on a busy machine
        yield process


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    """Return 250 everyday sentences and as many others, some of them long, in shuffled order."""
    lines = (CHECKPOINT / "sentences.tsv").read_text(encoding="utf-8").splitlines()
    rows = [(source, target) for source, target, _ in (line.split("\t") for line in lines)]
    random.Random(0).shuffle(rows)
    return rows


@pytest.fixture(scope="module")
def alone(server: ServerProcess, pairs: list[tuple[str, str]]) -> list[str]:
    """Return the reference: every sentence's translation on an otherwise idle server."""
    with Client(server.address) as client:
        return [client.translate([source], "en", "de")[0].text for source, _ in pairs]


def test_it_translates(pairs: list[tuple[str, str]], alone: list[str]) -> None:
    """The floor is well below the released quality: a broken export scores near zero."""
    assert BLEU().corpus_score(alone, [[target for _, target in pairs]]).score > 12


def test_the_language_pair_picks_the_model(server: ServerProcess) -> None:
    """All models share a server; a request for one never gets an answer of the other."""
    lines = (REPOSITORY / "checkpoints" / "en-hi" / "sentences.tsv").read_text(encoding="utf-8").splitlines()[:100]
    sources, references, _ = zip(*(line.split("\t") for line in lines), strict=True)
    with Client(server.address) as client:
        assert [model.name for model in client.models()] == ["de-en", "en-de", "en-hi"]
        texts = [translation.text for translation in client.translate(sources, "en", "hi")]
    assert BLEU().corpus_score(texts, [list(references)]).score > 10


def test_german_becomes_hindi_by_way_of_english(server: ServerProcess) -> None:
    lines = (REPOSITORY / "checkpoints" / "de-en" / "sentences.tsv").read_text(encoding="utf-8").splitlines()[:200]
    sources, references, _ = zip(*(line.split("\t") for line in lines), strict=True)
    options = Options(check_numbers=False)  # else what the first leg protects stays so in the second
    with Client(server.address) as client:
        english = [each.text for each in client.translate(sources, "de", "en", options=options)]
        assert BLEU().corpus_score(english, [list(references)]).score > 20
        whole = functools.partial(client.translate, options=options, split_sentences=SplitSentences.OFF)
        by_hand = whole([each.text for each in whole(sources, "de", "en")], "en", "hi")
        pivoted = whole(sources, "de", "hi")
    assert [each.text for each in pivoted] == [each.text for each in by_hand]
    assert {each.pivot_language_code for each in pivoted} == {"en"}


@pytest.mark.parametrize("num_channels", [1, 50])
def test_a_burst_of_500_calls_to_an_idle_server_is_answered_in_full_and_rightly(
    server: ServerProcess, pairs: list[tuple[str, str]], alone: list[str], num_channels: int
) -> None:
    """They have a minute; the server was given no limits."""

    async def burst() -> list[str]:
        async with AsyncExitStack() as stack:
            options = [("grpc.use_local_subchannel_pool", 1)]  # otherwise they share a connection
            channels = [grpc.aio.insecure_channel(server.address, options=options) for _ in range(num_channels)]
            stubs: list[Any] = [
                pb_grpc.TranslationServiceStub(await stack.enter_async_context(channel)) for channel in channels
            ]
            requests = [request_of([source]) for source, _ in pairs]
            calls = [
                stubs[number % num_channels].Translate(request, timeout=patient(60.0))
                for number, request in enumerate(requests)
            ]
            return [answer.translations[0].text for answer in await asyncio.gather(*calls)]

    assert len(pairs) == 500
    assert asyncio.run(burst()) == alone


def test_beam_search_is_at_least_as_probable_as_greedy(server: ServerProcess, pairs: list[tuple[str, str]]) -> None:
    """This need not hold for every sentence but for nearly all; otherwise scores or search are wrong."""
    sources = [source for source, _ in pairs[:15]]
    with Client(server.address) as client:
        scores = [
            [
                translation.hypotheses[0].score
                for translation in client.translate(
                    sources, "en", "de", options=Options(beam_size=size, return_scores=True)
                )
            ]
            for size in (1, 4)
        ]
    better = sum(
        beam is not None and greedy is not None and beam >= greedy - 1e-5 for greedy, beam in zip_longest(*scores)
    )
    assert better >= 14
