"""The distinct calls of a soak, over gRPC and HTTP, and the parts of an answer that must be the same each time."""

import base64
import dataclasses
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from google.protobuf.json_format import MessageToDict

from service.bundle.manifest import Manifest
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as google_pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2_grpc as google_grpc
from service.faces.grpc.pb.inference import grpc_service_pb2 as kserve_pb
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as kserve_grpc
from tests.soak import http_calls

PARENT = "projects/soak/locations/here"
GLOSSARY = "soak"
# How often each kind is called, as weights.
SHARES = {
    "one": 40,
    "word": 8,
    "few": 8,
    "many": 0.2,
    "document": 2,
    "html": 4,
    "beam": 4,
    "sample": 4,
    "prefix": 3,
    "terms": 3,
    "glossary": 3,
    "aligned": 3,
    "stream": 6,
    "detected": 3,
    "detect": 3,
    "list": 1,
    "google": 4,
    "google glossary": 2,
    "google detect": 1,
    "kserve": 4,
    "kserve stream": 2,
    "kserve state": 1,
    "http": 8,
    "http stream": 4,
    "http file": 1,
    "bad": 4,
}
_NUM_MANY = 300


@dataclass(frozen=True, slots=True)
class Call:
    """One request; `method` is a key of `_METHODS`, or one of HTTP's `PATHS`. One of kind `bad` must be rejected."""

    kind: str
    method: str
    request: bytes

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "method": self.method, "request": base64.b64encode(self.request).decode()}

    @staticmethod
    def from_json(given: dict[str, str]) -> "Call":
        return Call(given["kind"], given["method"], base64.b64decode(given["request"]))


class Answer(NamedTuple):
    """The response: status, the version that answered ("" where the API does not report it), and content.

    Scores are omitted because their last bits depend on concurrent requests; errors have only their status.
    """

    code: str
    version: str
    said: Any

    def is_one_of(self, expected: dict[str, "Answer"]) -> bool:
        """Return whether it equals its version's answer to that call alone; without a version, any version's."""
        allowed = [expected.get(self.version)] if self.version else list(expected.values())
        return any(each is not None and (each.code, each.said) == (self.code, self.said) for each in allowed)


class Asked(NamedTuple):
    """A call and its answers on an otherwise idle server, by the version that gave them."""

    call: Call
    expected: dict[str, Answer]


def save(asked: Sequence[Asked], path: Path) -> None:
    path.write_text(json.dumps([{"call": each.call.to_json(), "expected": each.expected} for each in asked]))


def load(path: Path) -> list[Asked]:
    return [
        Asked(Call.from_json(each["call"]), {version: Answer(*answer) for version, answer in each["expected"].items()})
        for each in json.loads(path.read_text())
    ]


def difference(answer: Answer, expected: dict[str, Answer]) -> str:
    """Describe in one line where an answer differs from its version's expected answer."""
    alone = expected.get(answer.version) or next(iter(expected.values()))
    if answer.code != alone.code:
        return f"{answer.code}; alone it is {alone.code}."
    got, wanted = json.dumps(answer.said, ensure_ascii=False), json.dumps(alone.said, ensure_ascii=False)
    first = next((i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), min(len(got), len(wanted)))
    around = slice(max(first - 60, 0), first + 100)
    return (
        f"version {answer.version!r} of {sorted(expected)} said ...{got[around]!r}; alone it is ...{wanted[around]!r}."
    )


class Refused(Exception):
    """A request on a stream was rejected with the status of this name; the stream continues."""


async def ask(channel: grpc.aio.Channel, http_url: str, call: Call, timeout_seconds: float, fresh: int = 0) -> Answer:
    """Make a call; a different `fresh` number avoids the server's cache where the API allows that.

    Raises:
        AioRpcError: CANCELLED, as the caller disconnected. Other statuses are answers.
    """
    almost_one = 1.0 + 1e-9 * (fresh % 1_000_000) if fresh else 0.0  # a length penalty
    if call.method in http_calls.PATHS:
        return Answer(*await http_calls.ask(http_url, call.method, call.request, timeout_seconds, almost_one))
    method = _METHODS[call.method]
    request = method.request.FromString(call.request)
    if fresh and method.freshen is not None:
        method.freshen(request, almost_one)
    try:
        return Answer(
            "OK", *await method.ask(getattr(method.stub(channel), call.method.split("/")[1]), request, timeout_seconds)
        )
    except Refused as refused:
        return Answer(str(refused), "", None)
    except grpc.aio.AioRpcError as error:
        return Answer(error.code().name, "", None)


async def abandon(channel: grpc.aio.Channel, http_url: str, call: Call, timeout_seconds: float) -> None:
    """Read the first part of a stream, and no more."""
    if call.method in http_calls.PATHS:
        await http_calls.abandon(http_url, call.request, timeout_seconds)
        return
    method = _METHODS[call.method]
    stream = pb_grpc.TranslationServiceStub(channel).TranslateStream(
        method.request.FromString(call.request), timeout=timeout_seconds
    )
    await stream.read()
    stream.cancel()


def distinct_calls(bundles: Sequence[Path], texts: Sequence[str], per_kind: int) -> list[Call]:
    """Return calls of every kind, at most `per_kind` per model; the texts are in the source language of all models."""
    calls = []
    for number, bundle in enumerate(bundles):
        calls += _Maker(Manifest.load(bundle), texts[number % 7 :], per_kind).calls()
    return list(dict.fromkeys(calls))


def glossary_of(bundle: Path, texts: Sequence[str]) -> tuple[str, str]:
    """Return name and contents of the glossary file that the calls for this bundle's model name."""
    pair = Manifest.load(bundle).first_pair
    codes = [code.replace("-", "_") for code in (pair.source_language_code, pair.target_language_code)]
    words = sorted({_longest_word(text) for text in texts[:40]})
    return f"{GLOSSARY}.{codes[0]}-{codes[1]}.tsv", "".join(f"{word}\tXy{len(word)}\n" for word in words)


class _Maker:
    """Makes the calls for one model."""

    def __init__(self, manifest: Manifest, texts: Sequence[str], per_kind: int) -> None:
        pair = manifest.first_pair
        self._model = manifest.name
        self._source, self._target = pair.source_language_code, pair.target_language_code
        self._golden = manifest.golden[0]
        self._texts = list(texts)
        self._count = per_kind

    def calls(self) -> list[Call]:
        texts, count = self._texts, self._count
        calls = []
        for i in range(3 * count):
            calls.append(self._own("one", [texts[i % len(texts)]]))
        for i in range(count):
            text, word = texts[(3 * i + 1) % len(texts)], _longest_word(texts[i % len(texts)])
            calls.append(self._own("word", [word]))
            calls.append(self._own("few", [texts[(5 * i + j) % len(texts)] for j in range(2 + i % 7)]))
            calls.append(self._own("document", [_document(texts, i)]))
            calls.append(self._own("html", [_html(texts, i)], mime_type="text/html"))
            search = pb.DecodingOptions(beam_size=2 + i % 4, num_hypotheses=1 + i % 2, return_scores=True)
            calls.append(self._own("beam", [text], options=search))
            drawn = pb.DecodingOptions(temperature=0.8, seed=i, top_k=8 + i, top_p=0.9, num_hypotheses=1 + i % 3)
            calls.append(self._own("sample", [text], options=drawn))
            prefix = self._golden.translation.split()[0]
            calls.append(self._own("prefix", [text], target_prefixes=[prefix], split_sentences=pb.SPLIT_SENTENCES_OFF))
            term = pb.Term(source=_longest_word(text), target="Quux" if i % 2 else None)
            calls.append(self._own("terms", [text], terms=[term]))
            calls.append(self._own("glossary", [texts[i % 40 % len(texts)]], glossary=GLOSSARY))
            calls.append(self._own("aligned", [text], return_alignments=True))
            calls.append(self._own("stream", [text, _document(texts, i)][: 1 + i % 2], stream=True))
            detected = self._own("detected", [text, "12:30"])
            calls.append(self._changed(detected, source_language_code=""))
            calls.append(
                Call("detect", "own/DetectLanguage", pb.DetectLanguageRequest(texts=[text]).SerializeToString())
            )
            calls.append(self._google("google", [text], "text/html" if i % 2 else "text/plain"))
            calls.append(self._google("google glossary", [texts[i % 40 % len(texts)]], "text/plain", glossary=True))
            detect = google_pb.DetectLanguageRequest(parent=PARENT, content=text).SerializeToString()
            calls.append(Call("google detect", "google/DetectLanguage", detect))
            calls.append(self._infer("kserve", [text, texts[i % len(texts)]]))
            calls.append(self._infer("kserve stream", [text], stream=True))
            calls.append(self._http("http", http_calls.TRANSLATE, texts=[text, word]))
            streamed = [text, _document(texts, i)][: 1 + i % 2]
            calls.append(self._http("http stream", http_calls.STREAM, texts=streamed))
            file = f"# {word}\n\n- {text}\n\n```\n{word}\n```\n\n{texts[i % len(texts)]}\n"
            calls.append(self._http("http file", http_calls.FILES, name="a.md", content=file))
        calls.append(self._own("many", [texts[i % len(texts)] for i in range(_NUM_MANY)], priority=pb.PRIORITY_LOW))
        calls.append(Call("list", "own/ListModels", b""))
        ready = kserve_pb.ModelReadyRequest(name=self._model)
        calls.append(Call("kserve state", "kserve/ModelReady", ready.SerializeToString()))
        calls.append(
            Call("kserve state", "kserve/ModelStatistics", kserve_pb.ModelStatisticsRequest().SerializeToString())
        )
        return calls + self._bad()

    def _bad(self) -> list[Call]:
        good = self._own("bad", [self._texts[0]])
        too_long = pb.DecodingOptions(max_output_tokens=1_000_000)
        sampled_beam = pb.DecodingOptions(temperature=1.0, beam_size=4)
        return [
            self._changed(good, target_language_code="xx"),
            self._changed(good, target_language_code="not a language"),
            self._changed(good, model="nobody"),
            self._changed(good, model_version="999"),
            self._changed(good, glossary="none"),
            self._changed(good, mime_type="application/pdf"),
            self._changed(good, options=too_long),
            self._changed(good, options=sampled_beam),
            self._changed(good, target_prefixes=["one", "two"]),
            self._own("bad", []),
            self._own("bad", ["Hello"] * 1025),
            self._own("bad", ["word " * 500], strict=True, split_sentences=pb.SPLIT_SENTENCES_OFF),
            Call("bad", "google/TranslateText", google_pb.TranslateTextRequest(parent="nowhere").SerializeToString()),
            Call("bad", "kserve/ModelInfer", kserve_pb.ModelInferRequest(model_name=self._model).SerializeToString()),
            Call("bad", "kserve/ModelInfer", kserve_pb.ModelInferRequest(model_name="nobody").SerializeToString()),
            self._http("bad", http_calls.TRANSLATE, texts=[]),
            self._http("bad", http_calls.STREAM, texts=["Hello"], glossary="none"),
            self._http("bad", http_calls.FILES, name="a.exe", content="MZ"),
            self._http("bad", http_calls.FILES, name="a.po", content="no entry"),
        ]

    def _http(self, kind: str, path: str, **fields: Any) -> Call:
        languages = {"source_language_code": self._source, "target_language_code": self._target}
        options = {"length_penalty": 1.0}
        return Call(kind, path, http_calls.request_of(model=self._model, options=options, **languages, **fields))

    def _own(self, kind: str, texts: list[str], stream: bool = False, **fields: Any) -> Call:
        options = pb.DecodingOptions(length_penalty=1.0)
        options.MergeFrom(fields.pop("options", pb.DecodingOptions()))
        fields.setdefault("priority", pb.PRIORITY_HIGH if len(texts) == 1 else pb.PRIORITY_UNSPECIFIED)
        request = pb.TranslateRequest(
            texts=texts,
            source_language_code=self._source,
            target_language_code=self._target,
            model=self._model,
            options=options,
            **fields,
        )
        return Call(kind, "own/TranslateStream" if stream else "own/Translate", request.SerializeToString())

    @staticmethod
    def _changed(call: Call, **fields: Any) -> Call:
        request = pb.TranslateRequest.FromString(call.request)
        for name, value in fields.items():
            request.ClearField(name)
            request.MergeFrom(pb.TranslateRequest(**{name: value}))
        return dataclasses.replace(call, request=request.SerializeToString())

    def _google(self, kind: str, texts: list[str], mime_type: str, glossary: bool = False) -> Call:
        request = google_pb.TranslateTextRequest(
            parent=PARENT,
            contents=texts,
            mime_type=mime_type,
            source_language_code=self._source,
            target_language_code=self._target,
            model=f"{PARENT}/models/{self._model}",
        )
        if glossary:
            request.glossary_config.glossary = f"{PARENT}/glossaries/{GLOSSARY}"
        return Call(kind, "google/TranslateText", request.SerializeToString())

    def _infer(self, kind: str, texts: list[str], stream: bool = False) -> Call:
        request = kserve_pb.ModelInferRequest(model_name=self._model, id="soak")
        tensor = request.inputs.add(name="text", datatype="BYTES", shape=[len(texts)])
        tensor.contents.bytes_contents.extend(text.encode() for text in texts)
        request.parameters["length_penalty"].double_param = 1.0
        for name in ("translation", "finish_reason"):
            request.outputs.add(name=name)
        return Call(kind, "kserve/ModelStreamInfer" if stream else "kserve/ModelInfer", request.SerializeToString())


async def _translate(method: Any, request: Any, timeout_seconds: float) -> tuple[str, Any]:
    response = await method(request, timeout=timeout_seconds)
    return response.model_version, [_said(each) for each in response.translations]


async def _translate_stream(method: Any, request: Any, timeout_seconds: float) -> tuple[str, Any]:
    deltas, whole, version = [""] * len(request.texts), [None] * len(request.texts), ""
    async for part in method(request, timeout=timeout_seconds):
        deltas[part.text_index] += part.delta
        version = part.model_version
        if part.HasField("translation"):
            whole[part.text_index] = _said(part.translation)
    return version, [deltas, whole]


async def _infer(method: Any, request: Any, timeout_seconds: float) -> tuple[str, Any]:
    return _inferred(await method(request, timeout=timeout_seconds))


async def _infer_stream(method: Any, request: Any, timeout_seconds: float) -> tuple[str, Any]:
    async def requests() -> AsyncIterator[Any]:  # stream writes by hand raise an error without a status on timeout
        yield request

    answers = [answer async for answer in method(requests(), timeout=timeout_seconds)]
    if code := next((word for word in _REFUSALS if answers[0].error_message.startswith(f"{word}: ")), ""):
        raise Refused(code)
    version, said = _inferred(answers[0].infer_response)
    return version, [said, [answer.error_message for answer in answers]]


async def _plain(method: Any, request: Any, timeout_seconds: float) -> tuple[str, Any]:
    return "", MessageToDict(await method(request, timeout=timeout_seconds))


async def _changing(method: Any, request: Any, timeout_seconds: float) -> tuple[str, Any]:
    """Make a call whose answer depends on what has happened before."""
    await method(request, timeout=timeout_seconds)
    return "", None


def _inferred(response: Any) -> tuple[str, Any]:
    version = response.model_version
    response.ClearField("model_version")
    return version, MessageToDict(response)


def _said(translation: pb.Translation) -> Any:
    for hypothesis in translation.hypotheses:
        hypothesis.ClearField("score")
    return MessageToDict(translation)


def _freshen_own(request: pb.TranslateRequest, length_penalty: float) -> None:
    request.options.length_penalty = length_penalty


def _freshen_kserve(request: kserve_pb.ModelInferRequest, length_penalty: float) -> None:
    request.parameters["length_penalty"].double_param = length_penalty


class _Method(NamedTuple):
    stub: Any
    request: Any
    ask: Callable[[Any, Any, float], Awaitable[tuple[str, Any]]]
    freshen: Callable[[Any, float], None] | None = None


_OWN, _GOOGLE, _KSERVE = (
    pb_grpc.TranslationServiceStub,
    google_grpc.TranslationServiceStub,
    kserve_grpc.GRPCInferenceServiceStub,
)
_REFUSALS = ("DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED")  # possible errors of a request on a stream
_METHODS = {
    "own/Translate": _Method(_OWN, pb.TranslateRequest, _translate, _freshen_own),
    "own/TranslateStream": _Method(_OWN, pb.TranslateRequest, _translate_stream, _freshen_own),
    "own/DetectLanguage": _Method(_OWN, pb.DetectLanguageRequest, _plain),
    "own/ListModels": _Method(_OWN, pb.ListModelsRequest, _changing),
    "google/TranslateText": _Method(_GOOGLE, google_pb.TranslateTextRequest, _plain),
    "google/DetectLanguage": _Method(_GOOGLE, google_pb.DetectLanguageRequest, _plain),
    "kserve/ModelInfer": _Method(_KSERVE, kserve_pb.ModelInferRequest, _infer, _freshen_kserve),
    "kserve/ModelStreamInfer": _Method(_KSERVE, kserve_pb.ModelInferRequest, _infer_stream, _freshen_kserve),
    "kserve/ModelReady": _Method(_KSERVE, kserve_pb.ModelReadyRequest, _changing),
    "kserve/ModelStatistics": _Method(_KSERVE, kserve_pb.ModelStatisticsRequest, _changing),
}


def _longest_word(text: str) -> str:
    words: list[str] = re.findall(r"\w+", text)
    return max(words, key=len)


def _document(texts: Sequence[str], number: int) -> str:
    chosen = [texts[(11 * number + i) % len(texts)] for i in range(12)]
    return "\n\n".join(" ".join(chosen[i : i + 4]) for i in range(0, 12, 4))


def _html(texts: Sequence[str], number: int) -> str:
    first, second, third = (texts[(13 * number + i) % len(texts)] for i in range(3))
    word = _longest_word(second)
    marked = second.replace(word, f"<b>{word}</b>", 1)
    return f'<h1>{first}</h1><p class="a">{marked} <code>x = 1</code> {third}</p><!-- {number} -->'
