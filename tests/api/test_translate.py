"""Translate and ListModels as a caller sees them: order, options in every way to ask, and what is between sentences."""

import shutil
from pathlib import Path
from typing import Any

import grpc
import onnx
import pytest
from click.testing import CliRunner

from dragoman_client import Client, Options
from service.bundle import graph_io
from service.bundle.checksums import file_sha256
from service.bundle.manifest import Manifest
from service.cli.main import dragoman
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as kserve_grpc
from tests.grpc_calls import infer_request, refused, request_of, stub_of
from tests.patience import patient
from tests.servers import InProcessServer
from tests.tiny_bundle import MAX_OUTPUT_TOKENS, MAX_SOURCE_TOKENS

TEXTS = ["Where is the train station?", "Hello", "Save the file.", "keys", "window?"]


def ask(stub: pb_grpc.TranslationServiceStub, texts: list[str], options: Any = None, **fields: Any) -> Any:
    fields = {"source_language_code": "en", "target_language_code": "de"} | fields
    return stub.Translate(pb.TranslateRequest(texts=texts, options=options, **fields), timeout=patient(30))


def test_every_text_gets_its_own_translation_in_order(stub: pb_grpc.TranslationServiceStub) -> None:
    alone = [ask(stub, [text]).translations[0] for text in TEXTS]
    together = ask(stub, TEXTS).translations
    assert list(together) == alone
    assert len({translation.text for translation in together}) == len(TEXTS)


@pytest.mark.plain
def test_list_models_says_what_there_is(stub: pb_grpc.TranslationServiceStub) -> None:
    (model,) = stub.ListModels(pb.ListModelsRequest(), timeout=patient(30)).models
    names = {field.name for field in pb.DecodingOptions.DESCRIPTOR.fields}
    assert (model.name, model.version, model.precision) == ("tiny", "1", "float32")
    assert (model.kernels, model.licence) == ("plain", "unknown")
    assert [(p.source_language_code, p.target_language_code) for p in model.language_pairs] == [("en", "de")]
    assert (model.max_source_tokens, model.max_output_tokens) == (MAX_SOURCE_TOKENS, MAX_OUTPUT_TOKENS)
    assert {field.name for field, _ in model.default_options.ListFields()} == names - {"seed"}
    assert model.default_options.beam_size == 1
    assert (model.default_options.max_repeats, model.default_options.max_length_ratio) == (10, 3.0)


DOCUMENT = (
    "Where is the train station? Save the file.\r\n"
    "\r\n"
    "  - Find my keys!\r\n"
    "  - Close the window.\r\n"
    "\t* Hello\n"
    "\n\n\n"
    "12 / 34\n"
    "1. Save the\nfile before you close the window. \u2028\n"
)
Stub = pb_grpc.TranslationServiceStub


def translated(stub: Stub, *texts: str, **changes: Any) -> list[pb.Translation]:
    return list(stub.Translate(request_of(texts, **changes), timeout=patient(60)).translations)


def parts(text: str, translation: pb.Translation) -> list[str]:
    """Return the text's segments."""
    return [text[segment.source_start : segment.source_end] for segment in translation.segments]


def between(text: str, spans: list[tuple[int, int]]) -> list[str]:
    bounds = [0, *(bound for span in spans for bound in span), len(text)]
    return [text[start:end] for start, end in zip(bounds[::2], bounds[1::2], strict=True)]


BEFORE = ["Where is the train station?", "Save the file.", "Find my keys!", "Close the window.", "Hello"]
SPLITS: dict[str, tuple[Any, list[str]]] = {
    "on": (pb.SPLIT_SENTENCES_UNSPECIFIED, ["Save the", "file before you close the window."]),
    "no newlines": (pb.SPLIT_SENTENCES_NO_NEWLINES, ["Save the\nfile before you close the window."]),
}


@pytest.mark.parametrize("split", SPLITS)
def test_what_stands_between_segments_comes_back(stub: Stub, split: str) -> None:
    mode, last = SPLITS[split]
    expected = [*BEFORE, *last]
    (translation,) = translated(stub, DOCUMENT, split_sentences=mode)
    assert parts(DOCUMENT, translation) == expected
    sources = [(segment.source_start, segment.source_end) for segment in translation.segments]
    targets = [(segment.target_start, segment.target_end) for segment in translation.segments]
    assert between(translation.text, targets) == between(DOCUMENT, sources)
    for (start, end), source in zip(targets, expected, strict=True):
        (alone,) = translated(stub, source, split_sentences=mode)
        assert translation.text[start:end] == alone.text
    assert translation.num_source_tokens == sum(segment.num_source_tokens for segment in translation.segments)
    assert translation.hypotheses[0].num_tokens == sum(segment.num_output_tokens for segment in translation.segments)


@pytest.mark.plain
def test_every_segment_says_how_it_ended(stub: Stub) -> None:
    """The tiny model never ends a sentence by itself and soon repeats itself."""

    def reasons(**options: Any) -> list[str]:
        (translation,) = translated(stub, "Hello. 12. Save the file.", options=pb.DecodingOptions(**options))
        names = [
            pb.FinishReason.Name(each.finish_reason).removeprefix("FINISH_REASON_") for each in translation.segments
        ]
        assert pb.FinishReason.Name(translation.finish_reason) == f"FINISH_REASON_{names[0]}"
        return names

    assert reasons(max_length_ratio=0, max_repeats=0) == ["LENGTH", "LENGTH"]
    assert reasons(max_output_tokens=3) == ["LENGTH", "LENGTH"]
    assert reasons(max_length_ratio=1, max_repeats=0) == ["RATIO", "RATIO"]
    assert reasons() == ["RATIO", "RATIO"]
    assert reasons(max_repeats=1, max_length_ratio=0) == ["REPETITION", "REPETITION"]


CHANGING: dict[str, dict[str, float]] = {
    "all, in beams": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 3, "min_output_tokens": 20, "beam_size": 4},
    "all, in samples": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "temperature": 1.2, "seed": 5},
}


def texts_of(response: pb.TranslateResponse) -> list[str]:
    return [translation.text for translation in response.translations]


@pytest.mark.parametrize("asked", CHANGING.values(), ids=CHANGING)
def test_every_way_to_ask_gives_the_same(
    server: InProcessServer, stub: pb_grpc.TranslationServiceStub, asked: dict[str, float]
) -> None:
    expected = texts_of(ask(stub, TEXTS, pb.DecodingOptions(**asked)))  # type: ignore[arg-type]
    assert expected != texts_of(ask(stub, TEXTS))
    assert [texts_of(ask(stub, [text], pb.DecodingOptions(**asked)))[0] for text in TEXTS] == expected  # type: ignore[arg-type]
    with Client(server.address) as client:
        assert [each.text for each in client.translate(TEXTS, "en", "de", options=Options(**asked))] == expected  # type: ignore[arg-type]
    infer = infer_request(*TEXTS)
    for name, value in asked.items():
        kind = "double_param" if isinstance(value, float) else "int64_param"
        setattr(infer.parameters[name], kind, value)
    with grpc.insecure_channel(server.address) as channel:
        answer = kserve_grpc.GRPCInferenceServiceStub(channel).ModelInfer(infer, timeout=patient(30))
    (translations,) = (output for output in answer.outputs if output.name == "translation")
    assert [text.decode() for text in translations.contents.bytes_contents] == expected
    flags = [part for name, value in asked.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    command = ["translate", "--server", server.address, "--from", "en", "--to", "de", *flags]
    assert CliRunner().invoke(dragoman, [*command, *TEXTS]).output.splitlines() == expected


@pytest.fixture
def old(serve: Any, tiny_models: Path, tmp_path: Path) -> InProcessServer:
    """A server of a bundle that was exported before graphs returned logits."""
    bundle = shutil.copytree(tiny_models / "tiny" / "1", tmp_path / "models" / "tiny" / "1")
    manifest = Manifest.load(bundle)
    graph = onnx.load(bundle / manifest.graphs.decoder_step)
    kept = [output for output in graph.graph.output if output.name not in graph_io.SCORE_OUTPUTS]
    del graph.graph.output[:]
    graph.graph.output.extend(kept)
    onnx.save(graph, bundle / manifest.graphs.decoder_step)
    manifest.checksums[manifest.graphs.decoder_step] = file_sha256(bundle / manifest.graphs.decoder_step)
    manifest.save(bundle)
    server: InProcessServer = serve(models=tmp_path / "models")
    return server


@pytest.mark.plain
def test_a_bundle_without_logits_serves_everything_else(
    old: InProcessServer, stub: pb_grpc.TranslationServiceStub
) -> None:
    with stub_of(old.address) as own:
        for options in (pb.DecodingOptions(), pb.DecodingOptions(beam_size=3, repetition_penalty=1.0)):
            assert texts_of(ask(own, TEXTS, options)) == texts_of(ask(stub, TEXTS, options))
        error = refused(own.Translate, request_of(TEXTS, options=pb.DecodingOptions(min_output_tokens=3)))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    details = error.details()
    assert details.startswith("options.min_output_tokens is 3, which needs all scores")
    assert "export the bundle again" in details
