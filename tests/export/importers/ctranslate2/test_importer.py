"""What is imported is the model that was written: architecture, weights in each type, tokens, languages, defaults."""

import dataclasses
import json
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy import typing as npt

from export.architecture import PositionConfig
from export.architecture.names import DECODER_TABLE, ENCODER_TABLE
from export.architecture.positions import sinusoidal_table
from export.importers.ctranslate2.importer import MAX_OUTPUT_TOKENS, MAX_SOURCE_TOKENS
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.options import ImportOptions
from export.importers.selection import import_checkpoint
from service.bundle.manifest_parts import GenerationDefaults, Language, LanguagePair, Limits
from tests.export.importers.ctranslate2 import model_files
from tests.export.importers.ctranslate2.model_files import Arrays, bfloat16, int8, int16
from tests.export.importers.ctranslate2.variants import (
    EOS_ID,
    START_ID,
    UNK_ID,
    VARIANTS,
    config_json,
    model_of,
    sentencepiece,
    tokens,
    weights_of,
    write_folder,
)
from tests.tokenizer_folders import write_bpe

ENGLISH_GERMAN = ImportOptions(source_language="en", target_language="de")


def imported(folder: Path, options: ImportOptions = ENGLISH_GERMAN) -> ImportedCheckpoint:
    return import_checkpoint(folder, None, options)


def same(weights: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    return weights.keys() == others.keys() and all(np.array_equal(weights[name], others[name]) for name in weights)


@pytest.mark.parametrize("name", VARIANTS)
def test_architecture_and_weights_are_those_written(name: str, tmp_path: Path) -> None:
    model = model_of(name)
    found = imported(write_folder(tmp_path / "folder", name)).model
    assert dataclasses.replace(found.config, dropout=0.1) == model.config
    assert same(found.weights, weights_of(name))


def test_a_folder_says_what_it_is(tmp_path: Path) -> None:
    found = imported(write_folder(tmp_path / "folder", "pre"))
    assert (found.name, found.family) == ("folder", "CTranslate2")
    assert found.languages == (LanguagePair("en", "de"),)
    spec = found.tokenizer
    assert (spec.eos_id, spec.unk_id, spec.decoder_start_id, spec.adds_source_eos) == (EOS_ID, UNK_ID, START_ID, True)
    assert (found.suppressed_ids, found.renormalizes) == ((), True)
    assert found.generation == GenerationDefaults(beam_size=2, stops_early=True)
    assert found.limits == Limits(MAX_SOURCE_TOKENS, MAX_OUTPUT_TOKENS)
    assert "float32" in found.notes[0]
    assert found.open_reference is not None


def _within(found: Any, expected: npt.NDArray[np.float32], levels: int) -> bool:
    """Return whether no number is further away than half a level of the largest of its row, or of all."""
    largest = np.abs(expected).max(axis=-1, keepdims=True) if levels == 127 else np.abs(expected).max()
    return bool((np.abs(found.astype(np.float32) - expected) <= 0.51 * largest / levels).all())


def _half(arrays: Arrays) -> Arrays:
    return {name: value.astype(np.float16) for name, value in arrays.items()}


def _bfloat16(arrays: Arrays) -> Arrays:
    return {name: bfloat16(value) for name, value in arrays.items()}


@pytest.mark.parametrize("name", ["pre", "post-separate"])
@pytest.mark.parametrize(("change", "levels"), [(int8, 127), (int16, 2**10), (_half, 2**9), (_bfloat16, 2**6)])
def test_weights_of_other_types(change: Callable[[Arrays], Arrays], levels: int, name: str, tmp_path: Path) -> None:
    found = imported(write_folder(tmp_path / "folder", name, change)).model.weights
    expected = weights_of(name)
    for each, value in found.items():
        is_quantized = value.ndim == 2 or levels < 127 or levels == 2**9
        assert _within(value, expected[each], levels) if is_quantized else np.array_equal(value, expected[each]), each


def _old(directory: Path, version: int, revision: int, settings: Arrays, *, spec: str = "TransformerSpec") -> Path:
    """Write a folder of an older version, whose settings were variables, with vocabularies as text."""
    model = model_of("pre")
    directory.mkdir()
    variables, aliases = model_files.aliased(model_files.variables_of(model))
    if version < 3:
        variables, aliases = model_files.variables_of(model), []
    data = model_files.container(variables | settings, aliases, version, spec, revision)
    (directory / "model.bin").write_bytes(data)
    model_files.write_vocabulary(directory, "shared", tokens(), ".txt")
    (directory / "any.model").write_bytes(sentencepiece())
    return directory


def test_the_oldest_files_are_read(tmp_path: Path) -> None:
    """Without types, aliases, flags and settings: heads come from the specification's name."""
    model = model_of("pre")
    with pytest.raises(CheckpointError, match="36 wide, not a multiple of 8 heads"):
        imported(_old(tmp_path / "base", 2, 2, {}, spec="TransformerBase"))
    heads = {"num_heads": np.array(3, np.int8)}
    found = imported(_old(tmp_path / "folder", 2, 3, heads))
    assert found.model.config == model.config
    assert same(found.model.weights, weights_of("pre"))
    assert not found.tokenizer.adds_source_eos  # OpenNMT's sources have no end


def _text(text: str) -> Any:
    return np.frombuffer(text.encode(), np.int8)


def test_settings_may_be_variables(tmp_path: Path) -> None:
    settings = {
        "num_heads": np.array(3, np.int16),
        "pre_norm": np.array(0, np.int8),
        "activation": np.array(3, np.int8),
        "with_source_bos": np.array(1, np.int8),
        "with_source_eos": np.array(1, np.int8),
        "with_target_bos": np.array(0, np.int8),
        "unk_token": _text("<blank>"),
    }
    found = imported(_old(tmp_path / "folder", 5, 4, settings))
    assert (found.model.config.norm, found.model.config.activation) == ("post", "gelu")
    assert (found.tokenizer.unk_id, found.tokenizer.decoder_start_id) == (0, EOS_ID)
    assert found.tokenizer.adds_source_eos
    assert found.languages[0].source_prefix_ids == (START_ID,)


def test_16_bits_without_a_scale_have_the_same_one(tmp_path: Path) -> None:
    folder = _old(tmp_path / "folder", 3, 3, {})
    variables, aliases = model_files.aliased(model_files.variables_of(model_of("pre")))
    stored = int16(variables, has_scale=False) | {"num_heads": np.array(3, np.int8)}
    (folder / "model.bin").write_bytes(model_files.container(stored, aliases, 3, "TransformerSpec", 3))
    levels = np.rint(weights_of("pre")[ENCODER_TABLE] * np.float32(1000.0))
    assert np.array_equal(imported(folder).model.weights[ENCODER_TABLE], levels / np.float32(1000.0))


def _update(given: Arrays, arrays: Arrays) -> None:
    arrays.update(given)


def _rewrite(folder: Path, name: str, change: Callable[[Arrays], object]) -> None:
    model = model_of(name)
    arrays = model_files.variables_of(model) | model_files.flags_of(model)
    change(arrays)
    variables, aliases = model_files.aliased(arrays)
    (folder / "model.bin").write_bytes(model_files.container(variables, aliases))


def test_a_start_of_zeros_is_a_token_that_is_never_chosen(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "folder", "pre")
    _rewrite(folder, "pre", lambda arrays: arrays.update({"decoder/start_from_zero_embedding": np.array(1, np.int8)}))
    found = imported(folder)
    start_id = len(tokens())
    assert found.tokenizer.decoder_start_id == found.model.config.decoder_start_id == start_id
    assert (found.suppressed_ids, found.renormalizes) == ((start_id,), True)
    table = found.model.weights[ENCODER_TABLE]
    assert DECODER_TABLE not in found.model.weights
    assert not table[start_id].any()
    assert np.array_equal(table[:-1], weights_of("pre")[ENCODER_TABLE])


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
def test_a_stored_sinusoid_is_computed(layout: Any, tmp_path: Path) -> None:
    """As Marian's and OpenNMT-py's; one that is rounded, or changed in one place, is taken as it is."""
    positions = PositionConfig(layout=layout)
    table = sinusoidal_table(90, 36, positions)
    names = [f"{side}/position_encodings/encodings" for side in ("encoder", "decoder")]
    folder = write_folder(tmp_path / "folder", "pre")
    _rewrite(folder, "pre", lambda arrays: arrays.update(dict.fromkeys(names, table)))
    config = imported(folder).model.config
    assert (config.positions, config.max_source_positions, config.max_target_positions) == (positions, 90, 90)
    changed = table.copy()
    changed[80, 3] += 0.01
    for other in (table.astype(np.float16), changed):
        stored = dict.fromkeys(names, other)
        _rewrite(folder, "pre", partial(_update, stored))
        model = imported(folder).model
        assert model.config.positions.layout == "learned"
        assert np.array_equal(model.weights["encoder.embedding.position_table.weight"], other)


def test_factors_of_embeddings_and_of_outputs(tmp_path: Path) -> None:
    """The root of the width may be stored as a number; what multiplies outputs goes into the last norm."""
    folder = write_folder(tmp_path / "folder", "pre")
    scales = {f"{side}/scale_embeddings": np.array(6.0, np.float32) for side in ("encoder", "decoder")}
    _rewrite(folder, "pre", lambda arrays: arrays.update(scales | {"decoder/scale_outputs": np.array(0.5, np.float32)}))
    model, written = imported(folder).model, weights_of("pre")
    assert model.config.scale_embeddings
    for end in ("weight", "bias"):
        assert np.array_equal(model.weights[f"decoder.final_norm.{end}"], written[f"decoder.final_norm.{end}"] * 0.5)
        assert np.array_equal(model.weights[f"encoder.final_norm.{end}"], written[f"encoder.final_norm.{end}"])


def _with_tokens(folder: Path, *added: str, **settings: Any) -> Path:
    """Replace the last tokens of a folder's vocabulary, and settings."""
    model_files.write_vocabulary(folder, "shared", [*tokens()[: -len(added)], *added])
    model_files.write_json(folder / "config.json", config_json(model_of("pre"), **settings))
    return folder


@pytest.mark.parametrize(
    ("added", "code"),
    [(("__en__", "__de__"), "de"), (("eng_Latn", "deu_Latn"), "deu_Latn"), (("en_XX", "de_DE"), "de")],
)
def test_tokens_of_languages_are_found(added: tuple[str, str], code: str, tmp_path: Path) -> None:
    folder = _with_tokens(
        write_folder(tmp_path / "folder", "pre"), *added, add_source_eos=False, decoder_start_token="</s>"
    )
    found = imported(folder, ImportOptions())
    last = len(tokens()) - 1
    assert found.any_to_any[1] == Language(code, (last,), (last,))
    assert found.tokenizer.adds_source_eos  # which the tokenizers of transformers add
    assert found.tokenizer.special_tokens[added[1]] == last
    (pair,) = imported(folder, ENGLISH_GERMAN).languages
    assert (pair.source_prefix_ids, pair.target_prefix_ids) == ((last - 1,), (last,))
    assert found.limits.max_output_tokens == MAX_OUTPUT_TOKENS
    assert imported(folder, ImportOptions(target_language="de")).languages == (pair,)


def test_madlads_tokens_of_languages(tmp_path: Path) -> None:
    folder = _with_tokens(write_folder(tmp_path / "folder", "pre"), "<2de>", "<2en>")
    last = len(tokens()) - 1
    assert imported(folder, ImportOptions()).any_to_any[1] == Language("en", into_prefix_ids=(last,))
    (pair,) = imported(folder, ENGLISH_GERMAN).languages
    assert pair == LanguagePair("en", "de", (last - 1,))


def test_marians_tokens_of_languages(tmp_path: Path) -> None:
    folder = _with_tokens(write_folder(tmp_path / "folder", "pre"), ">>deu<<", ">>fra<<")
    last = len(tokens()) - 1
    found = imported(folder, ImportOptions(source_language="en"))
    assert found.languages == (LanguagePair("en", "deu", (last - 1,)), LanguagePair("en", "fra", (last,)))
    assert imported(folder, ENGLISH_GERMAN).languages == (LanguagePair("en", "deu", (last - 1,)),)


def test_unknown_tokens_of_both_sides_have_their_own_ids(tmp_path: Path) -> None:
    from service.text.tokenizers import load_tokenizer

    folder = write_folder(tmp_path / "folder", "post-separate")
    lines = tokens()
    lines[UNK_ID], lines[10] = lines[10], lines[UNK_ID]
    model_files.write_vocabulary(folder, "source", lines, ".txt")
    found = imported(folder)
    assert (found.tokenizer.unk_id, found.tokenizer.source_unk_id) == (UNK_ID, 10)
    for name, write in found.tokenizer_files.items():
        assert not isinstance(write, Path)
        write(tmp_path / name)
    tokenizer = load_tokenizer(found.tokenizer, tmp_path)
    assert 10 in tokenizer.encode("\U00012000")
    assert tokenizer.unk_id == 10


def test_tokenizers_may_be_given(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "folder", "post-separate")
    given = [shutil.move(folder / f"{side}.spm", tmp_path / f"any.{side}") for side in ("source", "target")]
    with pytest.raises(CheckpointError, match="give the file with --tokenizer"):
        imported(folder)
    options = dataclasses.replace(ENGLISH_GERMAN, tokenizer=Path(given[0]), target_tokenizer=Path(given[1]))
    assert imported(folder, options).tokenizer.target_file == "target.spm"
    options = dataclasses.replace(ENGLISH_GERMAN, tokenizer=Path(given[1]), target_tokenizer=tmp_path / "none")
    with pytest.raises(CheckpointError, match=r"belongs to another model: \d+ of its \d+ pieces") as caught:
        imported(folder, options)
    assert "none: it is missing" in str(caught.value)


def _scalar(name: str, value: float, kind: type[np.generic] = np.int8) -> Callable[[Path], None]:
    return _arrays(lambda arrays: arrays.update({name: np.array(value, kind)}))


def _array(name: str, *shape: int) -> Callable[[Path], None]:
    return _arrays(lambda arrays: arrays.update({name: np.ones(shape, np.float32)}))


def _arrays(change: Callable[[Arrays], object]) -> Callable[[Path], None]:
    return lambda folder: _rewrite(folder, "pre", change)


def _json(**settings: Any) -> Callable[[Path], None]:
    return lambda folder: model_files.write_json(folder / "config.json", config_json(model_of("pre"), **settings))


def _spec(name: str, revision: int = 7) -> Callable[[Path], object]:
    data = model_files.container({}, spec=name, revision=revision)
    return lambda folder: (folder / "model.bin").write_bytes(data)


def _vocabulary(*lines: str) -> Callable[[Path], None]:
    return lambda folder: model_files.write_vocabulary(folder, "shared", lines)


def _with_other_tokenizer(folder: Path) -> None:
    write_bpe(_with_tokens(folder, "eng_Latn", "deu_Latn", "fra_Latn") / "tokenizer.json")


SELF = "encoder/layer_0/self_attention"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_spec("WhisperSpec"), "'WhisperSpec', a model of speech; supported: TransformerSpec"),
        (_spec("TransformerDecoderSpec"), "a decoder-only language model"),
        (_spec("TransformerSpec", 1), "it is of revision 1"),
        (_array(f"{SELF}/relative_position_keys", 5, 12), r"relative positions \(Shaw et al. 2018\) \(encoder"),
        (_array(f"{SELF}/rotary_dim"), "rotary positions"),
        (_array(f"{SELF}/linear_0/weight_zero", 4), "weights of AWQ"),
        (_scalar(f"{SELF}/num_heads_kv", 1, np.int32), "keys and values that heads share"),
        (_array(f"{SELF}/q_norm/gamma", 12), "norms of queries, keys or values"),
        (_array("decoder/layer_1/input_layer_norm/gamma", 36), "norms in other places"),
        (_array("encoder/embeddings_1/weight", 9, 4), "features beside tokens"),
        (_array("decoder/project_in/weight", 36, 36), "projections around the decoder"),
        (_scalar("decoder/alibi", 1), "positions of ALiBi"),
        (_scalar("decoder/sliding_window", 64, np.int32), "attention within a window"),
        (_array("encoder/strange", 2), "encoder/strange: variables that the architecture does not have"),
        (_scalar("encoder/activation", 5), "encoder/activation is tanh; supported: relu, gelu_tanh, silu, gelu"),
        (_scalar("encoder/activation", 3), "activation is gelu in the encoder and relu in the decoder"),
        (_scalar("encoder/num_heads", 0), "encoder/num_heads is 0"),
        (_scalar("encoder/num_heads", 4), "num_heads is 4 in the encoder and 3"),
        (_scalar("encoder/scale_embeddings", 2.0, np.float32), "supported: 1 and the root of the width, 6"),
        (_scalar(f"{SELF}/queries_scale", 0.3, np.float32), "queries_scale is"),
        (_array("encoder/num_heads", 2), r"encoder/num_heads has shape \(2,\), expected one number"),
        (_array("encoder/position_encodings/encodings", 9, 36), "decoder/position_encodings/encodings is missing"),
        (_arrays(lambda arrays: arrays.pop(f"{SELF}/linear_0/weight")), f"{SELF}/linear_0/weight is missing"),
        (_arrays(lambda arrays: arrays.pop("encoder/embeddings_0/weight")), "encoder/embeddings_0/weight is missing"),
        (_arrays(lambda arrays: arrays[f"{SELF}/linear_0/weight"].fill(np.nan)), "holds NaN"),
        (_array(f"{SELF}/linear_0/weight", 37, 36), "expected 3 equal parts"),
        (_array(f"{SELF}/linear_0/weight", 54, 36), "the configuration asks for"),
        (_vocabulary("<unk>", "</s>", "<s>", "a"), "it has 241 source tokens, the vocabulary 4"),
        (_vocabulary("<unk>", "</s>", "a", "a"), "shared_vocabulary.json: it has 'a' twice"),
        (_vocabulary("a", "b"), "source_vocabulary lacks '</s>'"),
        (_json(decoder_start_token="<start>"), "decoder_start_token is '<start>', which is not in"),
        (_json(decoder_start_token=None), "what a translation begins with is unknown"),
        (lambda folder: _with_tokens(folder, "en_XX", "de_DE", decoder_start_token=None), "as in mBART-25; convert"),
        (_json(decoder_start_token=7), "decoder_start_token is '7', expected a token or null"),
        (_json(layer_norm_epsilon="small"), "layer_norm_epsilon is 'small'"),
        (_json(quantization_type=1), "quantization_type is '1', which is not supported"),
        (_json(multi_query_attention=True), "multi_query_attention is 'True'"),
        (lambda folder: (folder / "config.json").write_text("["), "config.json: "),
        (lambda folder: (folder / "shared_vocabulary.json").write_text("{}"), "it holds no list of tokens"),
        (lambda folder: (folder / "shared_vocabulary.json").unlink(), "source_vocabulary.json or .txt is missing"),
        (lambda folder: (folder / "sentencepiece.model").write_bytes(b"x"), "is not a SentencePiece model"),
        (lambda folder: (folder / "sentencepiece.model").rename(folder / "bpe.model"), "subword-nmt"),
        (_with_other_tokenizer, r"tokenizer.json: it has other ids than the vocabulary, such as those of \['eng_Latn"),
        (lambda folder: (folder / "model.bin").write_bytes(b""), "model.bin: "),
        (lambda folder: (folder / "model.bin").unlink(), "model.bin: it is missing"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, change: Callable[[Path], object], message: str) -> None:
    folder = write_folder(tmp_path / "folder", "pre")
    change(folder)
    with pytest.raises(CheckpointError, match=message) as caught:
        import_checkpoint(folder, "ctranslate2", ENGLISH_GERMAN)
    assert "\n" not in str(caught.value)


def test_languages_have_to_be_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "folder", "pre")
    with pytest.raises(CheckpointError, match="the target language; give --target-language"):
        imported(folder, ImportOptions(source_language="en"))
    with pytest.raises(CheckpointError, match="--config is for bare state dicts"):
        imported(folder, dataclasses.replace(ENGLISH_GERMAN, config=folder / "config.json"))


def test_flags_without_effect_are_ignored(tmp_path: Path) -> None:
    """A positive control of what is refused."""
    folder = write_folder(tmp_path / "folder", "pre")
    flags = {name: np.array(0, np.int8) for name in ("decoder/alibi", "decoder/alibi_use_positive_positions")}
    _rewrite(
        folder, "pre", lambda arrays: arrays.update(flags | {"encoder/multi_query_attention": np.array(0, np.int8)})
    )
    (folder / "vmap.txt").write_text("")
    assert "vmap.txt" in imported(folder).notes[1]
    assert json.loads((folder / "config.json").read_text())["multi_query_attention"] is False
