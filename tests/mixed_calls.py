"""Calls of every kind from a seed: all APIs of gRPC, and our own over HTTP; each with texts and options of its own."""

import asyncio
import dataclasses
import itertools
import json
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import grpc
from google.protobuf.json_format import MessageToDict

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as google_pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2_grpc as google_grpc
from service.faces.grpc.pb.inference import grpc_service_pb2 as kserve_pb
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as kserve_grpc
from tests.grpc_calls import google_request, infer_request
from tests.http_caller import events
from tests.http_post import JSON, begun, form_of

DAY_SECONDS = 86_400.0  # deliberately too long to expire; tests bound their waits themselves
MOMENTS = ("at once", "at some time", "at a part", "at the last part")  # to give up a call
GLOSSARY = "mixed"

# How often each kind is called, as weights.
GRPC_KINDS: Mapping[str, float] = {"unary": 5, "stream": 3, "kserve": 1, "google": 1}
HTTP_KINDS: Mapping[str, float] = {"http": 6, "http stream": 4, "http file": 2}
ALL_KINDS: Mapping[str, float] = {
    "one": 40,
    "unary": 35,
    "many": 0.2,
    "passages": 3,
    "glossary": 3,
    "detected": 3,
    "detect": 3,
    "stream": 6,
    "google": 4,
    "google glossary": 2,
    "google detect": 1,
    "kserve": 4,
    "kserve stream": 2,
    "state": 2,
    "http": 8,
    "http stream": 4,
    "http file": 1,
    "bad": 4,
}

_SENTENCES = (
    "Where is the train station? Save file before you close window. Hello, can help me find my keys? Please open door "
    "now and wait for train at station with keys"
)
_WORDS = _SENTENCES.split()
_PREFIXES = ("Wo", "Wo ist", "Hallo", "Speichern Sie")
_NUM_MANY = 300
_LATE_SECONDS = 30.0  # for an answer over HTTP, after the deadline
_PARENT = "projects/p/locations/l"
_TRANSLATE, _STREAM, _FILES = "/v1/translate", "/v1/translate/stream", "/v1/files"
_STUBS: Mapping[str, Any] = {
    "own": pb_grpc.TranslationServiceStub,
    "google": google_grpc.TranslationServiceStub,
    "kserve": kserve_grpc.GRPCInferenceServiceStub,
}


class Place(NamedTuple):
    """Where a server is: a channel to it, and its address over HTTP."""

    channel: grpc.aio.Channel
    http_url: str = ""


class Model(NamedTuple):
    """The model that calls are for."""

    name: str = "tiny"
    source: str = "en"
    target: str = "de"


TINY = Model()


class Refused(Exception):
    """A call, or the request on its stream, was refused with the status of this name."""


@dataclass(frozen=True, slots=True)
class GrpcCall:
    kind: str
    api: str  # a key of `_STUBS`
    method: str
    request: Any

    def start(self, channel: grpc.aio.Channel, timeout_seconds: float = DAY_SECONDS) -> Any:
        """Start the call; the type is `Any` because gRPC's stubs do not declare it."""
        method = getattr(_STUBS[self.api](channel), self.method)
        return method(
            _once(self.request) if self.method == "ModelStreamInfer" else self.request, timeout=timeout_seconds
        )

    async def answer(self, place: Place, timeout_seconds: float = DAY_SECONDS) -> Any:
        """Return the whole answer, of those that tell the state of a server nothing.

        Raises:
            Refused: there is none.
        """
        call = self.start(place.channel, timeout_seconds)
        try:
            if self.method == "TranslateStream":
                return await _joined(call)
            if self.method == "ModelStreamInfer":
                return [_inferred(each) async for each in call]
            answer = MessageToDict(await call)
        except grpc.aio.AioRpcError as error:
            raise Refused(error.code().name) from error
        return None if self.kind == "state" else answer

    async def give_up(self, place: Place, moment: str, seconds: float) -> None:
        """Cancel the call at one of `MOMENTS`; at some time is after these seconds."""
        call = self.start(place.channel)
        try:
            if moment == "at some time":
                await asyncio.wait({asyncio.ensure_future(call.code())}, timeout=seconds)
            elif moment != "at once" and self.method == "TranslateStream":
                num_left = len(self.request.texts)
                async for part in call:
                    num_left -= part.HasField("translation")
                    if not num_left or moment == "at a part":
                        break
            elif moment == "at the last part":
                await call.initial_metadata()  # comes with the answer
        except asyncio.CancelledError:  # of the call, not of this task
            pass
        call.cancel()
        await call.code()

    def uncached(self, number: int) -> "GrpcCall":
        """Return a call with the same answer that a server's cache, for another number, does not have."""
        request = type(self.request).FromString(self.request.SerializeToString())
        if isinstance(request, pb.TranslateRequest):
            request.options.length_penalty *= _almost_one(number)
        elif isinstance(request, kserve_pb.ModelInferRequest):
            request.parameters["length_penalty"].double_param *= _almost_one(number)
        return dataclasses.replace(self, request=request)


@dataclass(frozen=True, slots=True)
class HttpCall:
    kind: str
    path: str
    fields: Mapping[str, Any]  # of a document `name` and `content`, too

    async def answer(self, place: Place, timeout_seconds: float = DAY_SECONDS) -> Any:
        """Return the whole answer.

        Raises:
            Refused: there is none.
            TimeoutError: nor is it refused, long after the deadline.
        """
        url, body = place.http_url, self._body(timeout_seconds)
        async with asyncio.timeout(timeout_seconds + _LATE_SECONDS), begun(url, self.path, *body) as call:
            status, _ = await call.head()
            answer = await call.rest()
        if status != 200:
            raise Refused(json.loads(answer)["error"]["code"])
        if self.path == _FILES:
            return answer.decode()
        return _streamed(answer) if self.path == _STREAM else json.loads(answer)

    async def give_up(self, place: Place, moment: str, seconds: float) -> None:
        """Leave at one of `MOMENTS`, before the answer is complete; at some time is after these seconds."""
        async with begun(place.http_url, self.path, *self._body(DAY_SECONDS)) as call:
            if moment == "at some time":
                with suppress(TimeoutError):
                    await asyncio.wait_for(call.head(), seconds)
            elif moment != "at once":
                await call.head()
                if moment == "at a part":
                    await call.part()

    def uncached(self, number: int) -> "HttpCall":
        """Return a call with the same answer that a server's cache, for another number, does not have."""
        return dataclasses.replace(self, fields={**self.fields, "options": {"length_penalty": _almost_one(number)}})

    def _body(self, timeout_seconds: float) -> tuple[bytes, str]:
        fields = {**self.fields, "deadline": 1000.0 * timeout_seconds}
        if self.path == _FILES:
            return form_of(fields.pop("name"), fields.pop("content"), fields)
        return json.dumps(fields).encode(), JSON


MixedCall = GrpcCall | HttpCall


def mixed_calls(
    count: int, seed: int, kinds: Mapping[str, float] = GRPC_KINDS, model: Model = TINY, most_words: int = 12
) -> list[MixedCall]:
    """Return so many calls, each with texts that no other has."""
    maker = _Maker(seed, model, most_words)
    return [maker.call(kind) for kind in random.Random(seed).choices([*kinds], [*kinds.values()], k=count)]


def calls_of_each_kind(per_kind: int, models: Sequence[Model]) -> list[MixedCall]:
    """Return so many calls of each kind for each model, and all that must be refused."""
    makers = [_Maker(seed, model, most_words=12) for seed, model in enumerate(models)]
    kinds = [kind for kind in ALL_KINDS for _ in range(len(_BAD) if kind == "bad" else per_kind)]
    return [maker.call(kind) for maker in makers for kind in kinds]


def glossary_of(model: Model) -> tuple[str, str]:
    """Return name and contents of the glossary that calls for this model name."""
    codes = [code.replace("-", "_") for code in (model.source, model.target)]
    return f"{GLOSSARY}.{codes[0]}-{codes[1]}.tsv", "".join(f"{word}\tXy{len(word)}\n" for word in ("train", "keys"))


class _Maker:
    """Makes calls for one model."""

    def __init__(self, seed: int, model: Model, most_words: int) -> None:
        self._model = model
        self._codes = {"source_language_code": model.source, "target_language_code": model.target}
        self._chance = random.Random(seed)
        self._texts = _distinct_texts(seed, most_words)
        self._bad = itertools.cycle(_BAD)

    def call(self, kind: str) -> MixedCall:
        api, _, rest = kind.partition(" ")
        if api == "http":
            return self._http(kind, rest)
        if api == "kserve":
            return GrpcCall(kind, api, "ModelStreamInfer" if rest else "ModelInfer", self._infer(self._model.name))
        if kind == "google detect":
            request = google_pb.DetectLanguageRequest(parent=_PARENT, content=next(self._texts))
            return GrpcCall(kind, api, "DetectLanguage", request)
        if api == "google":
            return GrpcCall(kind, api, "TranslateText", self._google(with_glossary=bool(rest)))
        if kind == "detect":
            return GrpcCall(kind, "own", "DetectLanguage", pb.DetectLanguageRequest(texts=[next(self._texts)]))
        if kind == "state":
            return self._chance.choice(
                [
                    GrpcCall(kind, "own", "ListModels", pb.ListModelsRequest()),
                    GrpcCall(kind, "kserve", "ModelReady", kserve_pb.ModelReadyRequest(name=self._model.name)),
                    GrpcCall(kind, "kserve", "ModelStatistics", kserve_pb.ModelStatisticsRequest()),
                ]
            )
        if kind == "bad":
            return next(self._bad)(self)
        return GrpcCall(kind, "own", "TranslateStream" if kind == "stream" else "Translate", self._own(kind))

    def own_request(self, *texts: str, **fields: Any) -> pb.TranslateRequest:
        options = pb.DecodingOptions(length_penalty=1.0)
        options.MergeFrom(fields.pop("options", pb.DecodingOptions()))
        return pb.TranslateRequest(
            **{"texts": texts, "model": self._model.name, "options": options, **self._codes, **fields}
        )

    def _own(self, kind: str) -> pb.TranslateRequest:
        match kind:
            case "one":
                return self.own_request(next(self._texts), priority=pb.PRIORITY_HIGH)
            case "many":
                texts = itertools.islice(self._texts, _NUM_MANY)
                return self.own_request(*texts, priority=pb.PRIORITY_LOW)
            case "passages":
                return self.own_request("\n\n".join(". ".join(itertools.islice(self._texts, 4)) for _ in range(3)))
            case "glossary":
                return self.own_request(f"Find my keys, {next(self._texts)}", glossary=GLOSSARY)
            case "detected":
                return self.own_request(f"{_SENTENCES}. {next(self._texts)}", "12:30", source_language_code="")
            case _:
                return self._with_options()

    def _with_options(self) -> pb.TranslateRequest:
        chance = self._chance
        texts = self._some_texts()
        request = self.own_request(
            priority=chance.choice((pb.PRIORITY_LOW, pb.PRIORITY_NORMAL, pb.PRIORITY_HIGH)),
            preserve_formatting=chance.random() < 0.2,
            return_alignments=chance.random() < 0.15,
            options=_options(chance),
        )
        if chance.random() < 0.15:
            request.mime_type = "text/html"
            texts = [_html(text) for text in texts]
        elif chance.random() < 0.2:
            request.target_prefixes.extend(chance.choice(_PREFIXES) for _ in texts)
        if chance.random() < 0.2:
            request.terms.add(source="keys", target=f"Term{chance.randrange(1000)}")
        request.texts.extend(texts)
        return request

    def _google(self, with_glossary: bool) -> google_pb.TranslateTextRequest:
        is_html = self._chance.random() < 0.3
        texts = self._some_texts()
        request = google_request(
            [f"<p>{text}</p>" for text in texts] if is_html else texts,
            parent=_PARENT,
            model=f"{_PARENT}/models/{self._model.name}",
            mime_type="text/html" if is_html else "text/plain",
            **self._codes,
        )
        if with_glossary:
            request.glossary_config.glossary = f"{_PARENT}/glossaries/{GLOSSARY}"
        return request

    def _infer(self, model: str) -> kserve_pb.ModelInferRequest:
        request = infer_request(*self._some_texts())
        request.model_name = model
        request.parameters["length_penalty"].double_param = 1.0
        return request

    def _http(self, kind: str, rest: str) -> HttpCall:
        fields: dict[str, Any] = {"model": self._model.name, **self._codes, "options": {"length_penalty": 1.0}}
        if rest == "file":
            content = "\n\n".join(["# Keys", *self._some_texts(), "```\nkeys\n```\n"])
            return HttpCall(kind, _FILES, {**fields, "name": "a.md", "content": content})
        return HttpCall(kind, _STREAM if rest else _TRANSLATE, {**fields, "texts": self._some_texts()})

    def _some_texts(self) -> list[str]:
        return [*itertools.islice(self._texts, self._chance.choice((1, 1, 1, 1, 1, 2, 3, 5)))]


def _bad_request(**changes: Any) -> Callable[[_Maker], MixedCall]:
    return lambda maker: GrpcCall("bad", "own", "Translate", maker.own_request(**{"texts": ["Hello"], **changes}))


# Calls that every server must refuse.
_BAD: tuple[Callable[[_Maker], MixedCall], ...] = (
    _bad_request(target_language_code="xx"),
    _bad_request(target_language_code="not a language"),
    _bad_request(model="nobody"),
    _bad_request(model_version="999"),
    _bad_request(glossary="none"),
    _bad_request(mime_type="application/pdf"),
    _bad_request(options=pb.DecodingOptions(max_output_tokens=1_000_000)),
    _bad_request(options=pb.DecodingOptions(temperature=1.0, beam_size=4)),
    _bad_request(target_prefixes=["one", "two"]),
    _bad_request(texts=[]),
    _bad_request(texts=["Hello"] * 1025),
    _bad_request(texts=["word " * 500], strict=True, split_sentences=pb.SPLIT_SENTENCES_OFF),
    lambda _: GrpcCall("bad", "google", "TranslateText", google_pb.TranslateTextRequest(parent="nowhere")),
    lambda maker: GrpcCall("bad", "kserve", "ModelInfer", maker._infer("nobody")),
    lambda _: HttpCall("bad", _TRANSLATE, {"texts": [], "target_language_code": "de"}),
    lambda _: HttpCall("bad", _STREAM, {"texts": ["Hello"], "target_language_code": "de", "glossary": "none"}),
    lambda _: HttpCall("bad", _FILES, {"name": "a.exe", "content": "MZ", "target_language_code": "de"}),
)


async def _once(request: Any) -> AsyncIterator[Any]:
    yield request


async def _joined(parts: AsyncIterator[pb.TranslateStreamResponse]) -> Any:
    """Return Translate's equivalent answer; each text's deltas must add up to its text."""
    deltas: dict[int, str] = {}
    translations: dict[int, Any] = {}
    version = ""
    async for part in parts:
        index, version = part.text_index, part.model_version
        assert index not in translations, "something after the end"
        deltas[index] = deltas.get(index, "") + part.delta
        if part.HasField("translation"):
            translations[index] = MessageToDict(part.translation)
            assert deltas[index] == part.translation.text, "the deltas do not make the text"
    return {"modelVersion": version, "translations": [each for _, each in sorted(translations.items())]}


def _inferred(answer: kserve_pb.ModelStreamInferResponse) -> Any:
    status, separator, _ = answer.error_message.partition(": ")
    if separator:
        raise Refused(status)
    return MessageToDict(answer)


def _streamed(answer: bytes) -> Any:
    """Return the equivalent answer of /v1/translate of a stream of events."""
    translations: dict[int, Any] = {}
    for name, document in events(answer):
        if name == "error":
            raise Refused(document["error"]["code"])
        if name == "done":
            whole = [each for _, each in sorted(translations.items())]
            return {"model_version": document["model_version"], "translations": whole}
        if "translation" in document:
            translations[document["text_index"]] = document["translation"]
    raise Refused("INCOMPLETE")


def _almost_one(number: int) -> float:
    return 1.0 + 1e-12 * number


def _distinct_texts(seed: int, most_words: int) -> Iterator[str]:
    chance, known = random.Random(-seed - 1), {""}
    while True:
        text = ""
        while text in known:
            text = " ".join(chance.choices(_WORDS, k=chance.randint(2, most_words)))
        known.add(text)
        yield text


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
