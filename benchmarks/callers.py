"""How load generators call a server: over gRPC with a light client, or over HTTP: our API or LibreTranslate's.

Each yields a function that makes one call and returns its status by name and the answer, empty unless that is OK.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from benchmarks.http_channel import HttpChannel
from benchmarks.light_channel import LightChannel
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb

OWN_API = "/v1"
TRANSLATE = "/dragoman.v1.TranslationService/Translate"

Translate = Callable[[pb.TranslateRequest], Awaitable[tuple[str, pb.TranslateResponse]]]


@contextlib.asynccontextmanager
async def grpc_callers(address: str, timeout_seconds: float, connections: int) -> AsyncIterator[Translate]:
    """Call at a fraction of the CPU of gRPC's client, over as many connections in turns."""
    async with contextlib.AsyncExitStack() as stack:
        channels = [await stack.enter_async_context(await LightChannel.connect(address)) for _ in range(connections)]
        turns = itertools.cycle(channels)

        async def translate(request: pb.TranslateRequest) -> tuple[str, pb.TranslateResponse]:
            answer = await next(turns).call(TRANSLATE, request.SerializeToString(), timeout_seconds)
            return answer.status, pb.TranslateResponse.FromString(answer.message)

        yield translate


@contextlib.asynccontextmanager
async def http_callers(address: str, timeout_seconds: float, connections: int) -> AsyncIterator[Translate]:
    """Call LibreTranslate's API, or our own if the address ends with /v1; plain texts only. Answers of the former say
    nothing of tokens: they count 0."""
    is_ours = address.endswith(OWN_API)

    def asked(request: pb.TranslateRequest) -> tuple[str, Any]:
        source, target = request.source_language_code, request.target_language_code
        if is_ours:
            options = {field.name: value for field, value in request.options.ListFields()}
            languages = {"source_language_code": source, "target_language_code": target}
            return f"{OWN_API}/translate", {"texts": list(request.texts), **languages, "options": options}
        return "/translate", {"q": list(request.texts), "source": source, "target": target, "format": "text"}

    def answered(answer: Any) -> pb.TranslateResponse:
        found = answer["translations"] if is_ours else [{"text": text} for text in answer["translatedText"]]
        return pb.TranslateResponse(
            translations=[pb.Translation(text=e["text"], hypotheses=[pb.Hypothesis(text=e["text"])]) for e in found]
        )

    async with HttpChannel(address, connections) as channel:

        async def translate(request: pb.TranslateRequest) -> tuple[str, pb.TranslateResponse]:
            try:
                async with asyncio.timeout(timeout_seconds):
                    code, answer = await channel.post(*asked(request))
            except TimeoutError:
                return "DEADLINE_EXCEEDED", pb.TranslateResponse()
            except (OSError, EOFError):
                return "UNAVAILABLE", pb.TranslateResponse()
            if code != 200:
                return f"HTTP {code}", pb.TranslateResponse()
            return "OK", answered(answer)

        yield translate
