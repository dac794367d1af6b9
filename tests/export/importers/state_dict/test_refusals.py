"""Models that cannot be imported: one line with all the problems, exit code 2, nothing written."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.export import folders
from tests.export.importers.state_dict.checkpoints import Notebook, make
from tests.export.importers.state_dict.readings import Attention001, Attention002, Choices

PLAIN = Choices(lambda: Attention002(16, 2))
PACKED = Choices(lambda: Attention001(16, 2))


def part(module: str) -> Callable[[dict[str, Tensor]], dict[str, Tensor]]:
    """Return a function that keeps a module's weights, by their names in it."""
    start = f"{module}."
    return lambda weights: {name.removeprefix(start): weights[name] for name in weights if name.startswith(start)}


@pytest.fixture
def notebook(tokenizers: tuple[Path, Path], tmp_path: Path) -> Notebook:
    return make(PLAIN).write(tmp_path / "saved", tokenizers)


def arguments(notebook: Notebook) -> dict[str, Any]:
    options = notebook.options
    return {
        "--from": "pytorch",
        "--config": options.config,
        "--tokenizer": options.tokenizer,
        "--target-tokenizer": options.target_tokenizer,
        "--source-language": options.source_language,
        "--target-language": options.target_language,
    }


def refused(path: Path, given: dict[str, Any]) -> str:
    """Return the one line that the user sees."""
    words = [word for flag, value in given.items() if value is not None for word in (flag, value)]
    return folders.refused(path, *words, output=path.parent.parent / "out")


def said_otherwise(notebook: Notebook, **changes: Any) -> str:
    assert isinstance(notebook.options.config, Path)
    document = {name: value for name, value in (notebook.said | changes).items() if value != "left out"}
    notebook.options.config.write_text(json.dumps(document), encoding="utf-8")
    return refused(notebook.path, arguments(notebook))


def saved_otherwise(notebook: Notebook, change: Callable[[dict[str, Any]], Any]) -> str:
    weights = dict(notebook.model.state_dict())
    change(weights)
    torch.save(weights, notebook.path)
    return said_otherwise(notebook)


def test_everything_wrong_at_once(notebook: Notebook, tokenizers: tuple[Path, Path]) -> None:
    weights = dict(notebook.model.state_dict())
    del weights["encoder.encoder_list.1.self_attention.w_o.bias"]
    weights["rotary.inv_freq"] = torch.zeros(4)
    weights["decoder.decoder_list.0.cross_attention.w_key.weight"] = torch.zeros(16, 4)
    weights["source_embedding.embeddings.weight"][5, 3] = torch.nan
    torch.save(weights, notebook.path)
    assert isinstance(notebook.options.config, Path)
    document = notebook.said | {"rotary": True, "attention": "sparse", "activation": "swish", "max_output_tokens": 900}
    del document["source_eos_id"]
    notebook.options.config.write_text(json.dumps(document), encoding="utf-8")
    given = arguments(notebook) | {"--source-language": None, "--target-language": "?", "--tokenizer": tokenizers[1]}
    line = refused(notebook.path, given)
    for expected in (
        "--source-language is missing",
        "--target-language is '?'",
        "rotary is unknown",
        "source_eos_id is missing",
        "attention is 'sparse', expected one of fused, packed",
        "activation is 'swish', allowed are relu, gelu, gelu_tanh, silu, identity",
        "max_output_tokens is 900, the model has 48 positions",
        "encoder.encoder_list.1.self_attention.w_o.bias is missing",
        "rotary.inv_freq is unexpected",
        "decoder.decoder_list.0.cross_attention.w_key.weight has shape (16, 4), the configuration asks for (16, 16)",
        "source_embedding.embeddings.weight holds NaN",
        "it has 100 tokens, --config says source_vocabulary_size 130",
    ):
        assert expected in line, (expected, line)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"positions": "rotary"}, "positions are not usable"),
        ({"positions": {"kind": "learned"}}, "positions are not usable"),
        ({"positions": {"base": -1}}, "positions.base is -1, allowed is a number from 0"),
        ({"positions": {"base": 10000}}, "differs from positions in --config (base 10000, cosine_exponent paired)"),
        ({"positions": {"base": 10000}}, "it fits base 1000, cosine_exponent paired"),
        ({"norm": "rms"}, "norm is 'rms', allowed are pre, post"),
        ({"score_scale": 8}, "score_scale is 8, allowed are head, model"),
        ({"activation": "left out"}, "activation is missing"),
        ({"num_heads": "left out"}, "num_heads is missing"),
        ({"num_heads": 3}, "d_model 16 is not a multiple of num_heads 3"),
        ({"attention_bias": False}, "w_query.bias is unexpected"),
        ({"attention_output": "none"}, "w_o.weight is unexpected"),
        ({"final_norm": False}, "encoder.normalize.beta is unexpected"),
        ({"layer_norm": "vector"}, "encoder.normalize.weight is missing"),
        ({"projection_bias": False}, "projection_layer.linear_layer.bias is unexpected"),
        ({"tie_projection": True}, "projection_layer.linear_layer.weight is not target_embedding.embeddings.weight"),
        ({"num_decoder_layers": 3}, "decoder.decoder_list.2.self_attention.w_query.weight is missing"),
        ({"num_decoder_layers": 1}, "decoder.decoder_list.1.self_attention.w_query.weight is unexpected"),
        ({"max_source_positions": 65}, "max_source_positions is 65, the weights show 64"),
        ({"eos_id": 3, "pad_id": 2}, "--target-tokenizer: it has pad_id 3, --config says 2 for the target"),
        ({"source_eos_id": 1}, "--tokenizer: it has eos_id 3, --config says 1 for the source"),
        ({"source_prefix_ids": [400]}, "source_prefix_ids 400 is outside the vocabulary of 130"),
        ({"suppressed_ids": [100]}, "suppressed_ids 100 is outside the vocabulary of 100"),
        ({"pad_id": 120}, "pad_id 120 is outside the vocabulary of 100"),
        ({"decoder_start_id": 100}, "decoder_start_id 100 is outside the vocabulary of 100"),
        ({"decoder_start_id": "left out"}, "--config: decoder_start_id is missing, which the tokenizer does not say"),
        ({"max_source_tokens": 65}, "max_source_tokens is 65, the model has 64 positions"),
        ({"d_model": "16"}, "d_model is '16', allowed is a number from 1"),
        ({"beam_size": 99}, "beam_size is 99, expected a number from 1 to 8"),
    ],
)
def test_contradictions(notebook: Notebook, changes: dict[str, Any], expected: str) -> None:
    assert expected in said_otherwise(notebook, **changes)


def test_two_readings_of_one_name_are_not_guessed(tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    notebook = make(PACKED).write(tmp_path / "saved", tokenizers)
    assert "qkv_layer.weight may be packed or fused: say which" in refused(notebook.path, arguments(notebook))


def test_positions_that_nothing_tells(notebook: Notebook) -> None:
    tables = [f"{side}_positional_encoding.positional_embeddings" for side in ("source", "target")]
    learned = {tables[0]: torch.randn(1, 64, 16)}
    assert "positions is missing" in saved_otherwise(notebook, lambda weights: [weights.pop(name) for name in tables])
    assert "positions is missing, and" in saved_otherwise(notebook, lambda weights: weights.update(learned))
    notebook.said["positions"] = {"base": 1000}
    line = saved_otherwise(notebook, lambda weights: weights.update(learned))
    assert "it fits no reading of the documents" in line


OTHERS: dict[str, tuple[Callable[[dict[str, Tensor]], dict[str, Tensor]], str]] = {
    "another kind": (
        lambda _: {f"transformer.h.{layer}.attn.weight": torch.zeros(3) for layer in range(9)},
        "its names (0.attn.weight, 1.attn.weight, 2.attn.weight, 3.attn.weight, 4.attn.weight, 5.attn.weight, ...) are "
        "of no known layout; nearest is",
    ),
    "attention": (part("encoder.encoder_list.0.self_attention"), "(w_key.bias, without encoder.encoder_list.0.self_"),
    "a layer": (
        part("decoder.decoder_list.1"),
        "(cross_attention.w_key.bias, without encoder.encoder_list.0 before",
    ),
    "layers": (part("decoder.decoder_list"), "(0.cross_attention.w_key.bias, without encoder.encoder_list before it"),
    "an encoder": (part("encoder"), "(encoder_list.0.feed_forward_block.linear_layer1.bias, without encoder before it"),
    "no decoder": (
        lambda weights: {name: value for name, value in weights.items() if not name.startswith("decoder.")},
        "it holds no decoder, such as decoder.decoder_list.0.feed_forward_block.linear_layer1.weight; save the",
    ),
}


@pytest.mark.parametrize("wrapper", ["", "_orig_mod.module."])
@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_whole_model(name: str, wrapper: str, notebook: Notebook) -> None:
    change, expected = OTHERS[name]
    weights = change(notebook.model.state_dict())
    torch.save({f"{wrapper}{name}": value for name, value in weights.items()}, notebook.path)
    assert expected in refused(notebook.path, arguments(notebook))


def test_a_weight_with_and_without_its_wrapper(notebook: Notebook) -> None:
    name = "encoder.normalize.beta"
    line = saved_otherwise(notebook, lambda weights: weights.update({f"module.{name}": weights[name] + 1}))
    assert f"module.{name} and {name} are one weight; keep one" in line


class RunsCode:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("owned",)


def test_files_that_are_no_state_dict(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    given = arguments(notebook)
    monkeypatch.chdir(notebook.path.parent)
    torch.save({"weights": RunsCode()}, notebook.path)
    assert "model.pt holds more than tensors (" in refused(notebook.path, given)
    assert not Path("owned").exists()
    torch.save(notebook.model, notebook.path)
    assert "Transformer002" in refused(notebook.path, given)
    torch.save([1, 2], notebook.path)
    assert "it holds list, expected names with tensors: save model.state_dict()" in refused(notebook.path, given)
    torch.save({"epoch": 3, "weights": [1, 2]}, notebook.path)
    assert "'epoch' holds int" in refused(notebook.path, given)
    for content in (b"", b"\x80garbage", b"PK\x03\x04 cut off"):
        notebook.path.write_bytes(content)
        assert "model.pt is damaged, truncated or not a file of weights" in refused(notebook.path, given)
    other = notebook.path.with_suffix(".safetensors")
    other.write_bytes(b"garbage")
    assert "model.safetensors is damaged, truncated or not a file of weights" in refused(other, given)
    assert "found model.pt, model.safetensors" in refused(notebook.path.parent, given | {"--name": "x"})


def test_files_that_are_not_there(notebook: Notebook, tmp_path: Path) -> None:
    given = arguments(notebook)
    line = refused(notebook.path, {"--from": "pytorch"})
    for flag in ("--config", "--tokenizer", "--source-language", "--target-language"):
        assert f"{flag} is missing" in line
    line = refused(
        notebook.path, given | {"--config": tmp_path / "no.json", "--target-tokenizer": tmp_path / "no.model"}
    )
    assert "no.json is not a file" in line
    assert "no.model is not a file" in line
    assert "there is no such file or folder" in refused(tmp_path / "saved" / "no.pt", given)


def test_damaged_companions(notebook: Notebook, tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    cut, text = tmp_path / "cut.model", tmp_path / "text.json"
    cut.write_bytes(tokenizers[0].read_bytes()[:500])
    text.write_text("[1, 2")
    line = refused(notebook.path, arguments(notebook) | {"--tokenizer": cut, "--target-tokenizer": text})
    assert "--tokenizer cut.model: it is not a SentencePiece model" in line
    assert "--target-tokenizer text.json: it is not JSON of the tokenizers library" in line
    line = refused(notebook.path, arguments(notebook) | {"--config": text})
    assert "--config text.json: Expecting ',' delimiter" in line


@pytest.mark.parametrize(
    ("is_json", "number", "expected"),
    [
        (False, 1, "--tokenizer is of kind sentencepiece, --target-tokenizer of kind tokenizers"),
        (True, 0, "--target-tokenizer: it has unk_id 1, --config says 0 for the target"),
    ],
)
def test_tokenizers_that_do_not_fit(
    is_json: bool,
    number: int,
    expected: str,
    notebook: Notebook,
    tokenizers: tuple[Path, Path],
    json_tokenizers: tuple[Path, Path],
) -> None:
    source = (json_tokenizers if is_json else tokenizers)[0]
    given = arguments(notebook) | {"--tokenizer": source, "--target-tokenizer": json_tokenizers[number]}
    assert expected in refused(notebook.path, given)


def test_options_of_other_importers_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "models" / "tiny"
    folder.parent.mkdir()
    folder.symlink_to(checkpoint)
    assert "--config is not for our own checkpoints" in refused(folder, {"--config": tmp_path / "x.json"})
