"""Imported models translate as CTranslate2 does with the same files, computing in float32."""

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from export.convert import convert
from export.fidelity import ask_reference, check_fidelity
from export.importers.imported import Row
from export.importers.options import NOTHING_SAID, ImportOptions
from export.importers.selection import import_checkpoint
from export.verify import TIE_GAP
from tests.export.importers.ctranslate2.converted import CONVERTED, QUANTIZATIONS
from tests.export.importers.ctranslate2.greedy import gap_at_difference, greedy
from tests.export.importers.ctranslate2.model_files import Arrays, int8, int16
from tests.export.importers.ctranslate2.variants import VARIANTS, write_folder
from tests.export.random_sentences import random_sentences

_BETWEEN_MANY = ("m2m100", "nllb", "mbart")
_MAX_OUTPUT_TOKENS = 24


def options_of(name: str) -> ImportOptions:
    return NOTHING_SAID if name in _BETWEEN_MANY else ImportOptions(source_language="en", target_language="de")


def check_greedy(folder: Path, options: ImportOptions, count: int) -> None:
    checkpoint = import_checkpoint(folder, None, options).in_float32()
    rows = [Row(each.source_ids, each.languages.target_prefix_ids) for each in random_sentences(checkpoint, count)]
    assert checkpoint.open_reference is not None
    with checkpoint.open_reference() as reference:
        assert reference.name.startswith("CTranslate2 4.")
        expected = reference.generate(rows, 1, _MAX_OUTPUT_TOKENS)
    assert len(set(expected)) > count // 3, "a model that says the same to everyone would prove nothing"
    outputs = greedy(checkpoint, rows, _MAX_OUTPUT_TOKENS)
    gaps = [
        gap_at_difference(checkpoint, row, *pair)
        for row, *pair in zip(rows, outputs, expected, strict=True)
        if pair[0] != pair[1]
    ]
    assert len(gaps) <= 1 + count // 200
    assert all(gap < TIE_GAP for gap in gaps), gaps


def each_with_each(names: Iterable[str], kinds: Mapping[str, Any], usual: Collection[str]) -> list[Any]:
    """Return all kinds of the first model and the usual ones of the others, with few rows; and in `full` all."""
    cases = []
    for number, (name, kind) in enumerate(itertools.product(names, kinds)):
        is_usual = number < len(kinds) or kind in usual
        marks = () if is_usual else pytest.mark.full
        cases.append(pytest.param(name, kinds[kind], 20, marks=marks, id=f"{name}-{kind}-20"))
        cases.append(pytest.param(name, kinds[kind], 500, marks=pytest.mark.full, id=f"{name}-{kind}-500"))
    return cases


@pytest.mark.parametrize(
    ("name", "change", "count"),
    each_with_each(VARIANTS, {"float32": lambda arrays: arrays, "int8": int8, "int16": int16}, usual=["int8"]),
)
def test_models_of_our_writer(name: str, change: Callable[[Arrays], Arrays], count: int, tmp_path: Path) -> None:
    check_greedy(write_folder(tmp_path / "folder", name, change), options_of(name), count)


@pytest.mark.parametrize("name", ["embedding-norm-learned", "t5"], ids=["plain", "gated"])
@pytest.mark.parametrize("decoder", [2, 4])
def test_gelu_by_a_sigmoid_becomes_silu(name: str, decoder: int, tmp_path: Path) -> None:
    """In the encoder, beside silu in the decoder, and in both."""
    check_greedy(write_folder(tmp_path / "folder", name, int8, encoder=4, decoder=decoder), options_of(name), 20)


@pytest.mark.parametrize(
    ("name", "quantization", "count"),
    each_with_each(CONVERTED, {str(kind): kind for kind in QUANTIZATIONS}, usual=["None", "int8_float16"]),
)
def test_models_of_its_converters(name: str, quantization: str | None, count: int, tmp_path: Path) -> None:
    check_greedy(CONVERTED[name](tmp_path / "folder", quantization), options_of(name), count)


@pytest.mark.full
@pytest.mark.parametrize("name", [*CONVERTED, "post-separate"])
def test_the_engine_translates_as_ctranslate2(name: str, tmp_path: Path) -> None:
    """Greedily and by four beams, except for ties; the golden sentences are text, and so show the tokenizer."""
    folder, options = tmp_path / "folder", options_of(name)
    if name in CONVERTED:
        CONVERTED[name](folder, "int8")
    else:
        write_folder(folder, name, int8)
    bundle = tmp_path / "bundle"
    manifest = convert(folder, bundle, options=options)
    assert manifest.verification["fidelity"]["reference"].startswith("CTranslate2 4.")
    checkpoint = import_checkpoint(folder, None, options)
    expected = ask_reference(checkpoint, random_sentences(checkpoint, 500, _MAX_OUTPUT_TOKENS))
    assert expected is not None
    assert len(set(expected.beams)) > 166
    report = check_fidelity(bundle, manifest, expected, checkpoint.in_float32)
    print(report.line())
    assert report.num_greedy_ties == 0
    assert report.num_beam_ties <= 1
