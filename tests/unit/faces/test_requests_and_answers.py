"""One table for all APIs: what is asked becomes which request, and what is answered from one translation."""

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlencode

import pytest

from service.bundle.manifest_parts import Limits
from service.domain.call import Call, begin_call
from service.domain.errors import ServiceError
from service.domain.options import OPTIONS as ALL_OPTIONS
from service.domain.options import RequestedOptions
from service.domain.translation import (
    AlignedSpan,
    FinishReason,
    Flag,
    Hypothesis,
    MimeType,
    OwnPlaceholder,
    Priority,
    Segment,
    SplitSentences,
    Term,
    Translation,
    TranslationRequest,
    TranslationResult,
)
from service.faces.deepl.documents import Documents
from service.faces.deepl.http import DeepL
from service.faces.dragoman.grpc import TranslationServicer
from service.faces.dragoman.http import V1
from service.faces.google.http import Google
from service.faces.google.methods import GoogleMethods
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as own_pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as google_pb
from service.faces.grpc.pb.inference import grpc_service_pb2 as kserve_pb
from service.faces.http.application import HttpRequest
from service.faces.http.routes import Routes
from service.faces.kserve.http import KServe
from service.faces.kserve.methods import KServeMethods
from service.faces.libretranslate.http import Files, LibreTranslate
from service.faces.openai.http import OpenAI
from service.jobs.translation import DocumentTranslator
from service.models.catalogue import Catalogue
from service.models.language_pairs import LanguagePairs
from service.text.glossary import Glossary
from service.translation.translator import Translator
from tests.grpc_calls import infer_request
from tests.unit.faces.grpc.served_call import Context
from tests.unit.models.bare_manifest import MANIFEST

PARENT = "projects/p/locations/l"
TERMS = Glossary("terms", "en", "de", ())
SEGMENT = Segment(0, 1, 0, 2, FinishReason.LENGTH, 3, 4, (Flag.TERM,))
ANSWER = Translation(
    "XY",
    (Hypothesis("XY", -0.5, 4, FinishReason.LENGTH), Hypothesis("Z", None, 2)),
    FinishReason.LENGTH,
    3,
    (SEGMENT,),
    (AlignedSpan(0, 1, 0, 2),),
    "en",
)
PLACES = {"source_start": 0, "source_end": 1, "target_start": 0, "target_end": 2}


class Recorder:
    """A translator that keeps what it was asked, and answers `ANSWER` to each text."""

    def __init__(self) -> None:
        manifest = replace(MANIFEST, limits=Limits(99, 99))
        self.served: Any = SimpleNamespace(name="tiny", version="1", manifest=manifest, pairs=LanguagePairs(manifest))
        self.requests: list[TranslationRequest] = []

    async def translate(self, request: TranslationRequest) -> TranslationResult:
        self.requests.append(request)
        return TranslationResult("tiny", "1", (ANSWER,) * len(request.texts))

    async def convert(self, work: Any, size: int) -> Any:
        return work()

    def check_texts(self, texts: Any) -> None:
        pass

    def catalogue(self) -> Catalogue:
        return Catalogue([self.served], [])

    def glossaries(self) -> tuple[Glossary]:
        return (TERMS,)

    def model(self, name: str, version: str) -> Any:
        return self.served


def routes_of(recorder: Recorder) -> Routes:
    translator = cast(Translator, recorder)
    faces = (
        V1(translator, cast(DocumentTranslator, None), 60.0),
        DeepL(translator, 60.0, cast(Documents, SimpleNamespace(routes=lambda route: ()))),
        LibreTranslate(translator, 60.0, cast(Files, SimpleNamespace(routes=lambda keyed, free: ()))),
        Google(translator, 60.0),
        OpenAI(translator, 60.0),
        KServe(KServeMethods(translator, cast(Any, None), cast(Any, None)), 60.0),
    )
    return Routes(route for face in faces for route in face.routes())


async def answered(routes: Routes, path: str, asked: Any, query: str = "", kind: str = "application/json") -> Any:
    """Return what the API of this path answers."""
    found = routes.find(path)
    assert found is not None
    begin_call(Call("m"))
    body = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
    request = HttpRequest("POST", path, {"content-type": kind}, body, query, found.parts)
    answer: Any = await found.by_method["POST"].handle(request)
    return json.loads(answer.body)


def request(*texts: str, **fields: Any) -> TranslationRequest:
    return TranslationRequest(texts, "en", "de", **fields)


def tensor(*data: str) -> dict[str, Any]:
    return {"name": "text", "datatype": "BYTES", "shape": [len(data)], "data": data}


OPTIONS: dict[str, Any] = {
    "beam_size": 4,
    "length_penalty": 1,
    "max_output_tokens": 9,
    "temperature": 0.5,
    "top_k": 7,
    "top_p": 0.25,
    "seed": 3,
    "max_length_ratio": 2.5,
    "max_repeats": 4,
    "repetition_penalty": 1.5,
    "no_repeat_ngram_size": 3,
    "min_output_tokens": 2,
    "check_numbers": False,
}
MORE_OPTIONS = {"num_hypotheses": 2, "return_scores": True}
assert {*OPTIONS, *MORE_OPTIONS} == set(ALL_OPTIONS)
EVERYTHING = request(
    "a",
    "b",
    model="tiny",
    model_version="1",
    options=RequestedOptions(**OPTIONS, **MORE_OPTIONS),
    priority=Priority.HIGH,
    mime_type=MimeType.HTML,
    split_sentences=SplitSentences.NO_NEWLINES,
    preserve_formatting=True,
    target_prefixes=("c", "d"),
    glossary="terms",
    terms=(Term("x", "y", True), Term("z")),
    placeholders=(OwnPlaceholder("p+"), OwnPlaceholder("", "[", "]")),
    return_alignments=True,
    keeps_other_languages=True,
    is_strict=True,
    labels=(("a", "1"), ("b", "2")),
)
V1_ASKED = {"source_language_code": "en", "target_language_code": "de"}
V1_ANSWER = {"text": "XY", "finish_reason": "length", "num_source_tokens": 3, "detected_language_code": "en"}
V1_MORE = {
    "hypotheses": [{"text": "XY", "num_tokens": 4, "score": -0.5}, {"text": "Z", "num_tokens": 2}],
    "flags": ["term"],
    "alignment": [PLACES],
}
V1_SEGMENT = {
    **PLACES,
    "finish_reason": "length",
    "num_source_tokens": 3,
    "num_output_tokens": 4,
    "flags": ["term"],
}
IN_V2 = {"translatedText": "XY", "detectedSourceLanguage": "en"}
IN_V3 = {"translatedText": "XY", "detectedLanguageCode": "en"}
GLOSSARY: dict[str, Any] = {"glossary": f"{PARENT}/glossaries/terms"}

TABLE: list[tuple[str, str, dict[str, Any], list[TranslationRequest], Any]] = [
    (
        "v1, what is left out",
        "/v1/translate",
        {"text": "a", "target_language_code": "de"},
        [replace(request("a"), source_language_code="")],
        {"translations": [V1_ANSWER | V1_MORE], "model": "tiny", "model_version": "1"},
    ),
    (
        "v1",
        "/v1/translate",
        {
            **V1_ASKED,
            "texts": ["a", "b"],
            "model": "tiny",
            "model_version": "1",
            "options": OPTIONS | MORE_OPTIONS,
            "mime_type": "text/html",
            "priority": "high",
            "split_sentences": "no_newlines",
            "preserve_formatting": True,
            "glossary": "terms",
            "terms": [{"source": "x", "target": "y", "case_sensitive": True}, {"source": "z"}],
            "placeholders": [{"pattern": "p+"}, {"start": "[", "end": "]"}],
            "target_prefixes": ["c", "d"],
            "return_alignments": True,
            "return_segments": True,
            "strict": True,
            "keep_other_languages": True,
            "labels": {"b": "2", "a": "1"},
        },
        [EVERYTHING],
        {
            "translations": [V1_ANSWER | V1_MORE | {"segments": [V1_SEGMENT]}] * 2,
            "model": "tiny",
            "model_version": "1",
        },
    ),
    (
        "deepl",
        "/v2/translate",
        {
            "text": ["ä"],
            "source_lang": "EN",
            "target_lang": "DE",
            "split_sentences": "0",
            "preserve_formatting": "1",
            "tag_handling": "html",
            "show_billed_characters": True,
            "model_type": "quality_optimized",
        },
        [
            replace(
                request("ä", split_sentences=SplitSentences.OFF, preserve_formatting=True, mime_type=MimeType.HTML),
                source_language_code="EN",
                target_language_code="DE",
            )
        ],
        {
            "translations": [
                {
                    "detected_source_language": "EN",
                    "text": "XY",
                    "billed_characters": 1,
                    "model_type_used": "quality_optimized",
                    "tag_handling_version": "v2",
                }
            ]
        },
    ),
    (
        "libretranslate",
        "/translate",
        {"q": ["a", ""], "source": "en", "target": "pb", "format": "html", "alternatives": 3, "secret": "ignored"},
        [
            replace(
                request("a", "", options=RequestedOptions(num_hypotheses=4), mime_type=MimeType.HTML),
                target_language_code="pt-BR",
            )
        ],
        {"translatedText": ["XY", "XY"], "alternatives": [["Z"], ["Z"]]},
    ),
    (
        "libretranslate, what is left out",
        "/translate",
        {"q": "a", "source": "en", "target": "de", "format": "", "alternatives": None},
        [request("a")],
        {"translatedText": "XY"},
    ),
    (
        "google.v2",
        "/language/translate/v2",
        {"q": ["a", "b"], "source": "en", "target": "de", "format": "text", "model": "tiny"},
        [request("a", "b", model="tiny")],
        {"data": {"translations": [{**IN_V2, "model": "tiny"}] * 2}},
    ),
    (
        "google.v2, what is left out",
        "/language/translate/v2",
        {"q": "a", "target": "de"},
        [replace(request("a", mime_type=MimeType.HTML), source_language_code="")],
        {"data": {"translations": [IN_V2]}},
    ),
    (
        "google.v3, with a glossary and without it",
        f"/v3/{PARENT}:translateText",
        {
            "contents": ["a", ""],
            "sourceLanguageCode": "en",
            "targetLanguageCode": "de",
            "mimeType": "text/plain",
            "model": f"{PARENT}/models/tiny",
            "glossaryConfig": GLOSSARY,
            "labels": {"b": "2", "a": "1"},
        },
        [
            request("a", "", model="tiny", labels=(("a", "1"), ("b", "2"))),
            request("a", "", model="tiny", labels=(("a", "1"), ("b", "2")), glossary="terms"),
        ],
        {
            "translations": [{**IN_V3, "model": f"{PARENT}/models/tiny"}] * 2,
            "glossaryTranslations": [{**IN_V3, "model": f"{PARENT}/models/tiny", "glossaryConfig": GLOSSARY}] * 2,
        },
    ),
    (
        "google.v3, what is left out",
        f"/v3/{PARENT}:translateText",
        {"contents": ["a"], "targetLanguageCode": "de"},
        [replace(request("a", mime_type=MimeType.HTML), source_language_code="")],
        {"translations": [IN_V3]},
    ),
    (
        "kserve",
        "/v2/models/tiny/infer",
        {
            "id": "7",
            "inputs": [tensor("ä")],
            "outputs": [{"name": "score"}, {"name": "translation"}, {"name": "finish_reason"}],
            "parameters": {**OPTIONS, "strict": True, "priority": 1, "mime_type": "text/html", "left_out": None},
        },
        [
            request(
                "ä",
                model="tiny",
                options=RequestedOptions(**OPTIONS, return_scores=True),
                is_strict=True,
                priority=Priority.HIGH,
                mime_type=MimeType.HTML,
            )
        ],
        {
            "id": "7",
            "model_name": "tiny",
            "model_version": "1",
            "outputs": [
                {"name": "score", "datatype": "FP32", "shape": [1], "data": [-0.5]},
                {"name": "translation", "datatype": "BYTES", "shape": [1], "data": ["XY"]},
                {"name": "finish_reason", "datatype": "BYTES", "shape": [1], "data": ["length"]},
            ],
        },
    ),
]


@pytest.mark.parametrize(
    ("path", "asked", "requests", "answer"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_what_is_asked_and_answered(path: str, asked: Any, requests: list[TranslationRequest], answer: Any) -> None:
    recorder = Recorder()
    assert asyncio.run(answered(routes_of(recorder), path, asked)) == answer
    assert [replace(each, deadline_seconds=None) for each in recorder.requests] == requests
    assert all(each.deadline_seconds for each in recorder.requests)


FORM = "application/x-www-form-urlencoded"
# APIs that take forms: the fields that have no texts, and the one that has.
FORMS = {
    "/v2/translate": ({"source_lang": "EN", "target_lang": "DE", "auth_key": "k"}, "text"),
    "/translate": ({"source": "en", "target": "de", "api_key": "k"}, "q"),
    "/language/translate/v2": ({"source": "en", "target": "de", "format": "text", "key": "k"}, "q"),
}


@pytest.mark.parametrize("path", FORMS)
def test_forms_queries_and_json_mean_the_same(path: str) -> None:
    recorder, (others, name) = Recorder(), FORMS[path]
    routes, both, rest = routes_of(recorder), [(name, "a b"), (name, "ü")], [*others.items()]
    whole = urlencode([*both, *rest])
    document = {**others, name: ["a b", "ü"]}
    document.pop("key", None)  # which Google's APIs have in queries and forms only
    sent = [
        (FORM, whole.encode(), ""),
        (FORM, urlencode([(f"{name}[]", text) for _, text in both] + rest).encode(), ""),
        (FORM, urlencode([(f"{name}[{at}]", text) for at, (_, text) in enumerate(both)] + rest).encode(), ""),
        (FORM, b"", whole),
        (FORM, urlencode(rest).encode(), urlencode(both)),
        (FORM, json.dumps(document).encode(), ""),  # as `curl -d` sends it
        ("text/json; charset=utf-8", json.dumps(document).encode(), ""),
    ]
    for kind, body, query in sent:
        asyncio.run(answered(routes, path, body, query, kind))
    asyncio.run(answered(routes, path, json.dumps({**document, name: "a b"}).encode()))
    [first, *others_asked, alone] = [each.texts for each in recorder.requests]
    assert first == ("a b", "ü")
    assert others_asked == [first] * (len(sent) - 1)
    assert alone == ("a b",)
    assert {(each.source_language_code.lower(), each.target_language_code.lower()) for each in recorder.requests} == {
        ("en", "de")
    }


async def answered_over_grpc(recorder: Recorder, asked: Any) -> Any:
    """Return what the API of this message answers."""
    translator = cast(Translator, recorder)
    begin_call(Call("m"))
    if isinstance(asked, own_pb.TranslateRequest):
        return await TranslationServicer(translator, 60.0).Translate(asked, cast(Any, Context()))
    if isinstance(asked, google_pb.TranslateTextRequest):
        answer, reasons = await GoogleMethods(translator).answer("TranslateText", asked, 60.0)
        assert reasons.startswith("length=0")
        return answer
    return await KServeMethods(translator, cast(Any, None), cast(Any, None)).infer(asked, 60.0)


IN_OWN: dict[str, Any] = {
    "text": "XY",
    "finish_reason": own_pb.FINISH_REASON_LENGTH,
    "num_source_tokens": 3,
    "detected_language_code": "en",
    "hypotheses": [{"text": "XY", "num_tokens": 4, "score": -0.5}, {"text": "Z", "num_tokens": 2}],
    "alignment": [PLACES],
    "segments": [
        {
            **PLACES,
            "finish_reason": own_pb.FINISH_REASON_LENGTH,
            "num_source_tokens": 3,
            "num_output_tokens": 4,
            "flags": [own_pb.FLAG_TERM],
        }
    ],
}
IN_GOOGLE: dict[str, Any] = {"translated_text": "XY", "detected_language_code": "en"}
PAIR: dict[str, Any] = {"source_language_code": "en", "target_language_code": "de"}


def infer_message(**parameters: Any) -> kserve_pb.ModelInferRequest:
    kinds = {bool: "bool_param", int: "int64_param", str: "string_param", float: "double_param"}
    message = infer_request("a")
    message.id = "7"
    for name, value in parameters.items():
        setattr(message.parameters[name], kinds[type(value)], value)
    return message


OVER_GRPC: list[tuple[str, Any, list[TranslationRequest], Any]] = [
    (
        "own, what is left out",
        own_pb.TranslateRequest(texts=["a"], **PAIR),
        [request("a")],
        own_pb.TranslateResponse(translations=[IN_OWN], model="tiny", model_version="1"),
    ),
    (
        "own, zeros are set and not left out",
        own_pb.TranslateRequest(texts=["a"], **PAIR, options={"beam_size": 0, "length_penalty": 0, "seed": 2**64 - 1}),
        [request("a", options=RequestedOptions(beam_size=0, length_penalty=0.0, seed=2**64 - 1))],
        own_pb.TranslateResponse(translations=[IN_OWN], model="tiny", model_version="1"),
    ),
    (
        "own",
        own_pb.TranslateRequest(
            texts=["a", "b"],
            **PAIR,
            model="tiny",
            model_version="1",
            options=OPTIONS | MORE_OPTIONS,
            mime_type="text/html",
            priority=own_pb.PRIORITY_HIGH,
            split_sentences=own_pb.SPLIT_SENTENCES_NO_NEWLINES,
            preserve_formatting=True,
            glossary="terms",
            terms=[{"source": "x", "target": "y", "case_sensitive": True}, {"source": "z"}],
            placeholders=[{"pattern": "p+"}, {"start": "[", "end": "]"}],
            target_prefixes=["c", "d"],
            return_alignments=True,
            strict=True,
            keep_other_languages=True,
            labels={"b": "2", "a": "1"},
        ),
        [EVERYTHING],
        own_pb.TranslateResponse(translations=[IN_OWN] * 2, model="tiny", model_version="1"),
    ),
    (
        "google, with a glossary and without it",
        google_pb.TranslateTextRequest(
            contents=["a", ""],
            **PAIR,
            parent=PARENT,
            mime_type="text/plain",
            model=f"{PARENT}/models/tiny",
            glossary_config=GLOSSARY,
            labels={"b": "2", "a": "1"},
        ),
        [
            request("a", "", model="tiny", labels=(("a", "1"), ("b", "2"))),
            request("a", "", model="tiny", labels=(("a", "1"), ("b", "2")), glossary="terms"),
        ],
        google_pb.TranslateTextResponse(
            translations=[{**IN_GOOGLE, "model": f"{PARENT}/models/tiny"}] * 2,
            glossary_translations=[{**IN_GOOGLE, "model": f"{PARENT}/models/tiny", "glossary_config": GLOSSARY}] * 2,
        ),
    ),
    (
        "google, what is left out",
        google_pb.TranslateTextRequest(contents=["a"], parent=PARENT, target_language_code="de"),
        [replace(request("a", mime_type=MimeType.HTML), source_language_code="")],
        google_pb.TranslateTextResponse(translations=[IN_GOOGLE]),
    ),
    (
        "kserve",
        infer_message(
            **OPTIONS,
            mime_type="text/html",
            split_sentences="no_newlines",
            preserve_formatting=True,
            strict=True,
            glossary="terms",
            sequence_id="of no interest",
            triton_enable_empty_final_response=True,
        ),
        [
            request(
                "a",
                model="tiny",
                options=RequestedOptions(**OPTIONS),
                mime_type=MimeType.HTML,
                split_sentences=SplitSentences.NO_NEWLINES,
                preserve_formatting=True,
                is_strict=True,
                glossary="terms",
            )
        ],
        kserve_pb.ModelInferResponse(
            model_name="tiny",
            model_version="1",
            id="7",
            outputs=[
                {"name": name, "datatype": "BYTES", "shape": [1], "contents": {"bytes_contents": [text]}}
                for name, text in (("translation", b"XY"), ("finish_reason", b"length"))
            ],
        ),
    ),
]


@pytest.mark.parametrize(
    ("asked", "requests", "answer"), [row[1:] for row in OVER_GRPC], ids=[row[0] for row in OVER_GRPC]
)
def test_what_is_asked_and_answered_over_grpc(asked: Any, requests: list[TranslationRequest], answer: Any) -> None:
    recorder = Recorder()
    assert asyncio.run(answered_over_grpc(recorder, asked)) == answer
    assert [replace(each, deadline_seconds=None) for each in recorder.requests] == requests
    assert all(each.deadline_seconds for each in recorder.requests)


PARTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


@pytest.mark.parametrize(
    ("asked", "text", "options"),
    [
        ({"n": 2, "max_tokens": 9}, "a", {"num_hypotheses": 2, "max_output_tokens": 9}),
        ({"max_completion_tokens": 8, "max_tokens": 9}, "a", {"max_output_tokens": 8}),
        ({"max_tokens": 4096, "temperature": 0.7, "user": "u", "stop": None}, PARTS, {}),
    ],
)
def test_a_chat_is_a_translation_of_its_last_message(asked: Any, text: Any, options: dict[str, Any]) -> None:
    recorder = Recorder()
    turns = [{"role": "user", "content": "no"}, {"role": "user", "content": text}, {"role": "assistant", "content": ""}]
    asked = {"model": "dragoman/en-de", "messages": turns, **asked}
    answer = asyncio.run(answered(routes_of(recorder), "/v1/chat/completions", asked))
    [found] = recorder.requests
    expected = request("a" if text == "a" else "a\nb", options=RequestedOptions(**options))
    assert replace(found, deadline_seconds=None) == expected
    assert (answer["object"], answer["model"]) == ("chat.completion", "dragoman/en-de")
    assert [each["message"] for each in answer["choices"]] == [
        {"role": "assistant", "content": content} for content in ("XY", "Z")
    ]
    assert [each["finish_reason"] for each in answer["choices"]] == ["length", "stop"]
    assert answer["usage"] == {"prompt_tokens": 3, "completion_tokens": 6, "total_tokens": 9}


@pytest.mark.parametrize(
    "asked",
    [
        {"input": "a", "instructions": "b", "temperature": 1, "max_output_tokens": 4096, "text": {"verbosity": "low"}},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}, {"type": "reasoning"}]},
    ],
)
def test_a_response_is_a_translation_of_the_last_message_of_its_input(asked: Any) -> None:
    recorder = Recorder()
    answer = asyncio.run(answered(routes_of(recorder), "/v1/responses", {"model": "en-de", **asked}))
    assert [replace(each, deadline_seconds=None) for each in recorder.requests] == [request("a")]
    [item] = answer["output"]
    assert (answer["object"], answer["status"]) == ("response", "incomplete")
    assert (item["role"], item["content"][0]["text"]) == ("assistant", "XY")
    assert answer["usage"]["total_tokens"] == 9


CHAT = {"model": "en-de", "messages": [{"role": "user", "content": "a"}]}
RESPONSE = {"model": "en-de", "input": "a"}
IN_GOOGLES_V2 = {"q": "a", "target": "de"}
INFER = "/v2/models/tiny/infer"
# What an API refuses before anything is translated: where, what is asked, the status, and words of the answer.
REFUSED: list[tuple[str, Any, int, str]] = [
    ("/v1/translate", b'{"texts": ["a", 1], "target_language_code": "de"}', 400, '"field":"texts[1]","allowed":"a str'),
    ("/v1/translate", b'{"text": "a", "target_language_code": "de", "deadline": NaN}', 400, '"field":"deadline"'),
    ("/v1/translate", b'{"text": "\\ud800", "target_language_code": "de"}', 400, '"field":"text"'),
    ("/v1/translate", {"text": "a", "target_language_code": "de", "options": {"seed": "2"}}, 400, '"options.seed"'),
    ("/v1/translate", {**V1_ASKED, "texts": ["a"] * 1025}, 400, "allowed: 1024"),
    ("/v1/chat/completions", {**CHAT, "model": "gpt-4o"}, 404, '"param":"model","code":"model_not_found"'),
    ("/v1/chat/completions", {**CHAT, "messages": []}, 400, '"param":"messages","code":"invalid_argument"'),
    (
        "/v1/chat/completions",
        {**CHAT, "messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        400,
        '"type":"invalid_request_error","param":"messages[0].content[0]","code":"invalid_argument"',
    ),
    ("/v1/chat/completions", {**CHAT, "n": 2, "stream": True}, 400, '"param":"n","code":"unimplemented"'),
    ("/v1/chat/completions", {**CHAT, "tools": [{}]}, 400, '"param":"tools","code":"unimplemented"'),
    ("/v1/responses", {"model": "en-de", "input": [{"type": "reasoning"}]}, 400, '"param":"input","code":"invalid'),
    ("/v1/responses", {**RESPONSE, "text": {"format": {"type": "json_schema"}}}, 400, '"param":"text.format.type"'),
    ("/v1/responses", {**RESPONSE, "background": True}, 400, '"param":"background","code":"unimplemented"'),
    ("/v1/responses", {**RESPONSE, "input": 1}, 400, '"param":"input","code":"invalid_argument"'),
    (
        "/language/translate/v2",
        {**IN_GOOGLES_V2, "q": ["a"] * 1025},
        400,
        '"locationType":"parameter","location":"q"',
    ),
    ("/language/translate/v2", {**IN_GOOGLES_V2, "cid": "c"}, 501, '"reason":"notImplemented"'),
    (f"/v3/{PARENT}:translateText", {"contents": ["a"] * 1025}, 400, '"field":"contents"'),
    (f"/v3/{PARENT}:translateText?alt=proto", {"contents": ["a"]}, 400, '"field":"alt"'),
    (f"/v3/{PARENT}:translateText", {"contents": []}, 400, '"field":"contents"'),
    ("/v3/projects/a%2Fb/locations/l:translateText", {"contents": ["a"]}, 400, '"field":"parent"'),
    ("/suggest", {}, 403, "suggestions are disabled on this server"),
    (INFER, {"inputs": [tensor("a")], "tone": "b"}, 400, "tone is unknown"),
    (INFER, {"inputs": [tensor("a")], "parameters": {"beam_size": 0}}, 400, "'beam_size' is 0"),
    ("/v2/repository/other/index", {}, 501, "'other'"),
    ("/v2/repository/models/tiny/load", {"parameters": {"config": "{}"}}, 501, "'config'"),
    ("/v2/models/tiny/versions/1/generate_stream", {"text_input": "a"}, 501, "generate"),
    ("/v2/logging", {}, 501, "--log-level"),
    ("/v2/trace/setting", {}, 501, "tracing"),
    ("/v2/systemsharedmemory/unregister", {}, 501, "shared memory is not supported"),
]


@pytest.mark.parametrize(("url", "asked", "status", "words"), REFUSED)
def test_what_is_refused(url: str, asked: Any, status: int, words: str) -> None:
    path, _, query = url.partition("?")
    recorder = Recorder()
    routes = routes_of(recorder)
    with pytest.raises(ServiceError) as raised:
        asyncio.run(answered(routes, path, asked, query))
    found = routes.find(path)
    assert found is not None
    answer = found.by_method["POST"].failure(raised.value, Call("m"))
    assert (answer.status, recorder.requests) == (status, [])
    assert words in answer.body.decode()
