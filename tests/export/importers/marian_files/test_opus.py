"""A model as OPUS-MT has them, against the translations that Marian made with it; and the same as a folder of
transformers, which computes other positions."""

import dataclasses
import functools
import itertools
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy import typing as npt
from safetensors.numpy import save_file
from sentencepiece import SentencePieceProcessor

from export.architecture.names import ENCODER_TABLE
from export.convert import convert
from export.engine_decode import open_engine
from export.importers.imported import Row
from export.importers.marian_files.yaml_file import parse_pieces
from export.importers.options import ImportOptions
from export.importers.selection import import_checkpoint
from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions
from service.engine.generate import sequences_of
from service.text.tokenizers import load_tokenizer
from tests.export.importers.marian_files.folders import DATA
from tests.export.importers.marian_files.originals import ENGLISH_GERMAN, Original
from tests.nasty_texts import NASTY_TEXTS
from tests.unit.engine import reference_search

OPUS = DATA / "opus"
FILES = ("model.npz", "model.npz.decoder.yml", "opus.vocab.yml", "source.spm", "target.spm")
MARIAN_POSITIONS = ImportOptions(source_language="en", target_language="de", positions="marian")
GREEDY = DecodingOptions(beam_size=1, length_penalty=1.0, num_hypotheses=1, max_output_tokens=60)
BEAM = DecodingOptions(beam_size=4, length_penalty=1.0, num_hypotheses=1, max_output_tokens=60, narrows=True)
# transformers' names of a layer's parts.
PARTS = {
    "self_attention.": "self_attn.",
    "cross_attention.": "encoder_attn.",
    "self_attention_residual.norm": "self_attn_layer_norm",
    "cross_attention_residual.norm": "encoder_attn_layer_norm",
    "feed_forward_residual.norm": "final_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "out_proj",
}


def lines(name: str) -> list[str]:
    return (OPUS / name).read_text(encoding="utf-8").split("\n")[:100]


def folder(directory: Path) -> Path:
    directory.mkdir()
    for name in FILES:
        shutil.copyfile(OPUS / name, directory / name)
    return directory


def text(pieces: str) -> str:
    """Return the text of Marian's output, which is pieces."""
    return pieces.replace(" ", "").replace("▁", " ").strip()


def equal(given: Sequence[str], expected: str) -> int:
    wanted = list(map(text, lines(expected)))
    return sum(itertools.starmap(str.__eq__, zip(given, wanted[: len(given)], strict=True)))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    return Original(folder(tmp_path_factory.mktemp("opus") / "folder"), lines("t100.en"))


def test_greedy_translations_are_those_of_marian(original: Original) -> None:
    assert equal(original.greedy(), "expected.greedy.txt") == 100


def test_texts_are_split_as_before_marian(original: Original) -> None:
    """By spm_encode, whose pieces Marian finds in the vocabulary; its output becomes text as in OPUS-MT's scripts."""
    splitter = SentencePieceProcessor(model_file=str(OPUS / "source.spm"))
    vocabulary = parse_pieces("opus.vocab.yml", (OPUS / "opus.vocab.yml").read_bytes())
    names = {index: piece for piece, index in vocabulary.items()}
    for given in (*NASTY_TEXTS, *lines("t100.en")):
        ids = original.tokenizer.encode(given)
        assert ids == [vocabulary.get(piece, vocabulary["<unk>"]) for piece in splitter.encode(given, out_type=str)]
        known = [index for index in ids if index != vocabulary["<unk>"]]
        assert original.tokenizer.decode(known) == text(" ".join(names[index] for index in known))


@pytest.mark.parametrize("narrows", [True, False])
def test_a_beam_that_narrows_finds_what_marian_finds(original: Original, *, narrows: bool) -> None:
    """By our search's reference, with which the engine's own is compared elsewhere, in short sentences of the eleven in
    which another one, that of transformers, finds others.
    """
    spec, options = original.checkpoint.tokenizer, dataclasses.replace(BEAM, narrows=narrows)
    for index in (49, 89, 79):
        read = functools.partial(log_probs, original, original.sources[index])
        (ids, _), *_ = reference_search.search(read, (spec.decoder_start_id,), spec.eos_id, options)
        found = original.tokenizer.decode([token for token in ids if token != spec.eos_id])
        assert (found == text(lines("expected.beam4.txt")[index])) == narrows


@torch.no_grad()
def log_probs(original: Original, source: Sequence[int], inputs: Sequence[int]) -> npt.NDArray[np.float32]:
    found = original.model(torch.tensor([source]), torch.tensor([inputs]))[0, -1].log_softmax(-1)
    found[list(original.checkpoint.suppressed_ids)] = -torch.inf
    return np.asarray(found.numpy(), np.float32)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_the_engine_finds_what_marian_finds(tmp_path: Path) -> None:
    assert translated(tmp_path, "float32") == (100, 100)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_in_8_bits_most_translations_are_the_same(tmp_path: Path) -> None:
    """The model is half-trained, so its best tokens are close to each other."""
    assert min(translated(tmp_path, "int8")) >= 65


def translated(directory: Path, precision: str) -> tuple[int, int]:
    """Return how many greedy translations, and how many of 4 beams, of a bundle are Marian's."""
    bundle = directory / "bundle"
    convert(folder(directory / "folder"), bundle, precision=precision, options=ENGLISH_GERMAN)
    manifest = Manifest.load(bundle)
    assert manifest.generation.narrows
    tokenizer = load_tokenizer(manifest.tokenizer, bundle)
    rows = [(manifest.source_ids(tokenizer.encode(line), manifest.first_pair), ()) for line in lines("t100.en")]
    with open_engine(bundle, manifest, max_slots=32) as engine:
        greedy, beam = (
            [tokenizer.decode(best.token_ids) for best, *_ in engine.generate(sequences_of(rows, options))]
            for options in (GREEDY, BEAM)
        )
    return equal(greedy, "expected.greedy.txt"), equal(beam, "expected.beam4.txt")


@pytest.fixture(scope="module")
def of_transformers(original: Original, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model as transformers has it."""
    directory = tmp_path_factory.mktemp("hub") / "folder"
    shutil.copytree(OPUS / "hf", directory)
    for name in ("source.spm", "target.spm"):
        shutil.copyfile(OPUS / name, directory / name)
    pieces = parse_pieces("opus.vocab.yml", (OPUS / "opus.vocab.yml").read_bytes())
    (directory / "vocab.json").write_text(json.dumps({**pieces, "<pad>": len(pieces)}), encoding="utf-8")
    ours = original.checkpoint.model.weights
    weights = {"model.shared.weight": ours[ENCODER_TABLE]}
    for name, weight in ours.items():
        if ".layers." in name:
            theirs = functools.reduce(lambda given, part: given.replace(*part), PARTS.items(), name)
            weights[f"model.{theirs}"] = weight
    weights["final_logits_bias"] = ours["projection.bias"][None]
    save_file(weights, directory / "model.safetensors")
    return directory


@pytest.mark.parametrize(("options", "number"), [(ENGLISH_GERMAN, 65), (MARIAN_POSITIONS, 100)])
def test_a_folder_of_transformers_has_its_positions_or_those_of_marian(
    of_transformers: Path, options: ImportOptions, number: int
) -> None:
    assert equal(Original(of_transformers, lines("t100.en"), options).greedy(), "expected.greedy.txt") == number


def test_positions_of_marian_are_compared_with_transformers(of_transformers: Path) -> None:
    """The reference has them, too."""
    checkpoint = import_checkpoint(of_transformers, None, MARIAN_POSITIONS)
    assert checkpoint.open_reference is not None
    original = Original(of_transformers, lines("t100.en")[:10], MARIAN_POSITIONS)
    with checkpoint.open_reference() as reference:
        outputs = reference.generate([Row(source, ()) for source in original.sources], 1, 40)
    assert equal(original.texts(outputs), "expected.greedy.txt") == 10
