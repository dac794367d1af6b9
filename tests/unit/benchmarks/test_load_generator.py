import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from benchmarks import load_generator
from benchmarks.callers import Translate
from benchmarks.load_generator import Load, Outcome, generate
from benchmarks.workload import held_out_texts
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb


class Peer:
    """Answers in upper case, once as many calls are there as it waits for."""

    def __init__(self, most: int = 1) -> None:
        self.requests: list[pb.TranslateRequest] = []
        self._all_there = asyncio.Barrier(most)

    @contextlib.asynccontextmanager
    async def callers(self, _: Load) -> AsyncIterator[Translate]:
        async def translate(request: pb.TranslateRequest) -> tuple[str, pb.TranslateResponse]:
            self.requests.append(request)
            await self._all_there.wait()
            answers = [
                pb.Translation(text=text.upper(), hypotheses=[pb.Hypothesis(num_tokens=3)]) for text in request.texts
            ]
            return "OK", pb.TranslateResponse(translations=answers)

        yield translate


def generated(monkeypatch: pytest.MonkeyPatch, peer: Peer, load: Load) -> Outcome:
    monkeypatch.setattr(load_generator, "_callers", peer.callers)
    return asyncio.run(asyncio.wait_for(generate(load), 30))


def test_all_calls_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = Peer(most=20)  # none is answered before all are there
    outcome = generated(monkeypatch, peer, Load("", 1.0, calls_at_once=20, texts_per_call=30, keeps_answers=True))
    texts = held_out_texts()
    assert [call[0] for call in outcome.calls] == [0.0] * 20
    assert {call[3] for call in outcome.calls} == {90}
    assert sorted(outcome.first_texts) == sorted(number * 30 % len(texts) for number in range(20))
    assert [text for request in peer.requests for text in request.texts][:600] == (texts * 2)[:600]
    by_first = dict(zip(outcome.first_texts, outcome.answers, strict=True))
    assert by_first[30] == [text.upper() for text in texts[30:60]]


@pytest.mark.parametrize("more", [{"rate": 400.0}, {"callers": 2}])
def test_each_call_has_its_text_and_answers_only_if_kept(monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]) -> None:
    peer = Peer()
    outcome = generated(monkeypatch, peer, Load("", 0.1, **more))
    texts = held_out_texts()
    assert len(outcome.calls) == len(outcome.first_texts) == len(outcome.behind_seconds) > 0
    assert [request.texts[0] for request in peer.requests] == [texts[first] for first in outcome.first_texts]
    assert not outcome.answers
