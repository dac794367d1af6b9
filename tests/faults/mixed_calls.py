"""Calls of every kind from a seed: all three APIs, unary and streams, all with different texts and options."""

import random
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import grpc

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as google_pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2_grpc as google_grpc
from service.faces.grpc.pb.inference import grpc_service_pb2 as kserve_pb
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as kserve_grpc

TIMEOUT_SECONDS = 3600.0  # deliberately too long to expire; tests bound their waits themselves

_SENTENCES = (
    "Where is the train station? Save file before you close window. Hello, can help me find my keys? Please open door "
    "now and wait for train at station with keys"
)
_WORDS = _SENTENCES.split()
_PREFIXES = ("Wo", "Wo ist", "Hallo", "Speichern Sie")
_KINDS = ("unary",) * 5 + ("stream",) * 3 + ("kserve", "google")


@dataclass(frozen=True, slots=True)
class MixedCall:
    """One call: its method and its request."""

    kind: str
    request: Any

    def start(self, channel: grpc.aio.Channel) -> Any:
        """Start the call; the type is `Any` because gRPC's stubs do not declare it."""
        match self.kind:
            case "unary":
                method = pb_grpc.TranslationServiceStub(channel).Translate
            case "stream":
                method = pb_grpc.TranslationServiceStub(channel).TranslateStream
            case "kserve":
                method = kserve_grpc.GRPCInferenceServiceStub(channel).ModelInfer
            case _:
                method = google_grpc.TranslationServiceStub(channel).TranslateText
        return method(self.request, timeout=TIMEOUT_SECONDS)

    async def answer(self, channel: grpc.aio.Channel) -> bytes:
        """Return the whole answer, as bytes.

        Raises:
            grpc.RpcError: there is none.
        """
        call = self.start(channel)
        if self.kind == "stream":
            return await joined(call)
        return bytes((await call).SerializeToString(deterministic=True))


async def joined(parts: AsyncIterator[pb.TranslateStreamResponse]) -> bytes:
    """Return Translate's equivalent answer; each text's deltas must add up to its text."""
    deltas: dict[int, str] = {}
    translations: dict[int, pb.Translation] = {}
    async for part in parts:
        index = part.text_index
        assert index not in translations, "something after the end"
        deltas[index] = deltas.get(index, "") + part.delta
        if part.HasField("translation"):
            translations[index] = part.translation
            assert deltas[index] == part.translation.text, "the deltas do not make the text"
    whole = pb.TranslateResponse(translations=[each for _, each in sorted(translations.items())])
    return bytes(whole.SerializeToString(deterministic=True))


def mixed_calls(count: int, seed: int, model: str = "tiny", most_words: int = 12) -> list[MixedCall]:
    """Return so many calls, each with texts that no other has."""
    chance, texts = random.Random(seed), _texts(seed, most_words)
    return [_call(chance, texts, model) for _ in range(count)]


def _texts(seed: int, most_words: int) -> Iterator[str]:
    chance, known = random.Random(-seed - 1), {""}
    while True:
        text = ""
        while text in known:
            text = " ".join(chance.choices(_WORDS, k=chance.randint(2, most_words)))
        known.add(text)
        yield text


def _call(chance: random.Random, texts: Iterator[str], model: str) -> MixedCall:
    kind = chance.choice(_KINDS)
    asked = [next(texts) for _ in range(chance.choice((1, 1, 1, 1, 1, 2, 3, 5)))]
    if kind == "kserve":
        infer = kserve_pb.ModelInferRequest(model_name=model)
        tensor = infer.inputs.add(name="text", datatype="BYTES", shape=[len(asked)])
        tensor.contents.bytes_contents.extend(text.encode() for text in asked)
        return MixedCall(kind, infer)
    codes = {"source_language_code": "en", "target_language_code": "de"}
    if kind == "google":
        is_html = chance.random() < 0.3
        contents = [f"<p>{text}</p>" for text in asked] if is_html else asked
        mime_type = "text/html" if is_html else "text/plain"
        return MixedCall(
            kind,
            google_pb.TranslateTextRequest(parent="projects/p", contents=contents, mime_type=mime_type, **codes),  # type: ignore[arg-type]
        )
    request = pb.TranslateRequest(
        model=model,
        priority=chance.choice((pb.PRIORITY_LOW, pb.PRIORITY_NORMAL, pb.PRIORITY_HIGH)),
        preserve_formatting=chance.random() < 0.2,
        return_alignments=chance.random() < 0.15,
        options=_options(chance),
        **codes,  # type: ignore[arg-type]
    )
    if chance.random() < 0.15:
        request.mime_type = "text/html"
        asked = [_html(text) for text in asked]
    elif chance.random() < 0.2:
        request.target_prefixes.extend(chance.choice(_PREFIXES) for _ in asked)
    if chance.random() < 0.2:
        request.terms.add(source="keys", target=f"Term{chance.randrange(1000)}")
    request.texts.extend(asked)
    return MixedCall(kind, request)


def _options(chance: random.Random) -> pb.DecodingOptions:
    options = pb.DecodingOptions(max_output_tokens=chance.randint(12, 24), return_scores=chance.random() < 0.3)
    draw = chance.random()
    if draw < 0.3:
        options.beam_size = chance.randint(2, 4)
        options.num_hypotheses = chance.randint(1, options.beam_size)
        options.length_penalty = round(chance.uniform(0, 2), 2)
    elif draw < 0.5:
        options.temperature = round(chance.uniform(0.5, 1.5), 2)
        options.seed = chance.randrange(2**63)
        options.num_hypotheses = chance.randint(1, 3)
        options.top_k = chance.randint(2, 64)
    if chance.random() < 0.2:
        options.max_repeats = chance.randint(1, 5)
    if chance.random() < 0.2:
        options.repetition_penalty = round(chance.uniform(0.7, 1.5), 2)
        options.no_repeat_ngram_size = chance.randint(0, 3)
        options.min_output_tokens = chance.randint(0, 8)
    return options


def _html(text: str) -> str:
    first, *rest = text.split()
    return f"<p><b>{first}</b> {' '.join(rest)}</p>"
