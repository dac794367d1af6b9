"""Options that change scores, as every caller sets them: gRPC, KServe's parameters, the client and the command line."""

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
from tests.api.test_translate import TEXTS, ask
from tests.grpc_calls import infer_request, refused, request_of, stub_of
from tests.patience import patient
from tests.servers import InProcessServer

OPTIONS: dict[str, dict[str, float]] = {
    "a penalty": {"repetition_penalty": 1.6},
    "a reward": {"repetition_penalty": 0.5},
    "no pair of tokens twice": {"no_repeat_ngram_size": 2},
    "none twice, in beams": {"no_repeat_ngram_size": 1, "beam_size": 3},
    "all, in beams": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 3, "min_output_tokens": 20, "beam_size": 4},
    "all, in samples": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "temperature": 1.2, "seed": 5},
}


def texts(response: pb.TranslateResponse) -> list[str]:
    return [translation.text for translation in response.translations]


@pytest.mark.parametrize("asked", OPTIONS.values(), ids=OPTIONS)
def test_every_way_to_ask_gives_the_same(
    server: InProcessServer, stub: pb_grpc.TranslationServiceStub, asked: dict[str, float]
) -> None:
    expected = texts(ask(stub, TEXTS, pb.DecodingOptions(**asked)))  # type: ignore[arg-type]
    assert expected != texts(ask(stub, TEXTS))
    assert [texts(ask(stub, [text], pb.DecodingOptions(**asked)))[0] for text in TEXTS] == expected  # type: ignore[arg-type]
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
            assert texts(ask(own, TEXTS, options)) == texts(ask(stub, TEXTS, options))
        error = refused(own.Translate, request_of(TEXTS, options=pb.DecodingOptions(min_output_tokens=3)))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    details = error.details()
    assert details.startswith("options.min_output_tokens is 3, which needs all scores")
    assert "export the bundle again" in details
