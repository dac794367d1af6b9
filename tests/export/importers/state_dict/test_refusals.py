"""Models that cannot be imported: one line with all the problems, exit code 2, nothing written."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.export import folders
from tests.export.importers.state_dict.checkpoints import Weights, make
from tests.export.importers.state_dict.readings import Attention, Choices, JointAttention

PLAIN = Choices(partial(Attention, "w_query w_key w_value w_o"))
Refused = Callable[..., str]


@pytest.fixture
def refused(tokenizers: tuple[Path, Path], tmp_path: Path) -> Refused:
    """Return a function that returns the one line that the user sees of a changed model."""

    def of(
        change: Callable[[Weights], Any] = dict,
        flags: Any = None,
        choices: Choices = PLAIN,
        path: str = "",
        **said: Any,
    ) -> str:
        written = make(choices, **said).write(
            tmp_path / "saved", tokenizers, lambda weights, file: torch.save(change(dict(weights)), file)
        )
        given: dict[str, Any] = {"--from": "pytorch", "--source-language": "en", "--target-language": "hi"}
        given |= {f"--{name}": getattr(written.options, name.replace("-", "_")) for name in FILES} | (flags or {})
        words = [word for flag, value in given.items() if value is not ... for word in (flag, value)]
        return folders.refused(tmp_path / "saved" / path if path else written.path, *words, output=tmp_path / "out")

    return of


FILES = ("config", "tokenizer", "target-tokenizer")


def test_everything_wrong_at_once(refused: Refused, tokenizers: tuple[Path, Path]) -> None:
    def change(weights: Weights) -> Weights:
        del weights["encoder.encoder_list.1.self_attention.w_o.bias"]
        weights["rotary.inv_freq"] = torch.zeros(4)
        weights["decoder.decoder_list.0.cross_attention.w_key.weight"] = torch.zeros(16, 4)
        weights["source_embedding.embeddings.weight"][5, 3] = torch.nan
        return weights

    flags = {"--source-language": ..., "--target-language": "?", "--tokenizer": tokenizers[1]}
    said = {"rotary": True, "attention": "sparse", "activation": "swish", "max_output_tokens": 900}
    line = refused(change, flags, **said, source_eos_id=...)
    for expected in (
        "--source-language is missing",
        "--target-language is '?'",
        "rotary is unknown",
        "source_eos_id is missing",
        "attention is 'sparse', expected one of fused, packed",
        "activation is 'swish', allowed: relu, gelu, gelu_tanh, silu, identity",
        "max_output_tokens is 900, the model has 48 positions",
        "encoder.encoder_list.1.self_attention.w_o.bias is missing",
        "rotary.inv_freq is unexpected",
        "decoder.decoder_list.0.cross_attention.w_key.weight has shape (16, 4), the configuration asks for (16, 16)",
        "source_embedding.embeddings.weight holds NaN",
        "it has 100 tokens, the model's source has 130",
    ):
        assert expected in line, (expected, line)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"positions": {"kind": "learned"}}, "expected an object of layout"),
        ({"positions": {"base": -1}}, "positions.base is -1, allowed: a number from 0"),
        ({"positions": {"base": 10000}}, "differs from positions in --config (layout interleaved, base 10000,"),
        ({"positions": {"base": 10000}}, "it fits layout interleaved, base 1000, cosine_exponent paired"),
        ({"score_scale": 8}, "score_scale is 8, allowed: head, model"),
        ({"activation": ...}, "activation is missing"),
        ({"num_heads": ...}, "num_heads is missing"),
        ({"attention_bias": False}, "w_query.bias is unexpected"),
        ({"attention_output": "none"}, "w_o.weight is unexpected"),
        ({"final_norm": False}, "encoder.normalize.beta is unexpected"),
        ({"layer_norm": "vector"}, "encoder.normalize.weight is missing"),
        ({"projection_bias": False}, "projection_layer.linear_layer.bias is unexpected"),
        ({"tie_projection": True}, "projection_layer.linear_layer.weight is not target_embedding.embeddings.weight"),
        ({"num_decoder_layers": 3}, "decoder.decoder_list.2.self_attention.w_query.weight is missing"),
        ({"num_decoder_layers": 1}, "decoder.decoder_list.1.self_attention.w_query.weight is unexpected"),
        ({"max_source_positions": 65}, "max_source_positions is 65, the weights show 64"),
        ({"source_eos_id": 1}, "--tokenizer: it has eos_id 3, --config says 1 for the source"),
        ({"suppressed_ids": [100]}, "suppressed_ids 100 is outside the vocabulary of 100"),
        ({"pad_id": 120}, "pad_id 120 is outside the vocabulary of 100"),
        ({"decoder_start_id": 100}, "decoder_start_id 100 is outside the vocabulary of 100"),
        ({"decoder_start_id": ...}, "--config: decoder_start_id is missing, and the tokenizer does not have it"),
        ({"max_source_tokens": 65}, "max_source_tokens is 65, the model has 64 positions"),
        ({"d_model": "16"}, "d_model is '16', allowed: a number from 1"),
        ({"beam_size": 99}, "beam_size is 99, expected a number from 1 to 8"),
    ],
)
def test_contradictions(changes: dict[str, Any], expected: str, refused: Refused) -> None:
    assert expected in refused(**changes)


def test_two_readings_of_one_name_are_not_guessed(refused: Refused) -> None:
    line = refused(choices=Choices(partial(JointAttention, True)))
    assert "qkv_layer.weight may be packed or fused: say which" in line


TABLES = [f"{side}_positional_encoding.positional_embeddings" for side in ("source", "target")]
LEARNED = {TABLES[0]: torch.randn(1, 64, 16)}


def part(module: str, wrapper: str = "") -> Callable[[Weights], Weights]:
    """Return a function that keeps a module's weights, by their names in it."""
    start = f"{module}."
    return lambda weights: {
        f"{wrapper}{name.removeprefix(start)}": weights[name] for name in weights if name.startswith(start)
    }


# What is saved, what is said, and what is told.
CONTENTS: list[tuple[Callable[[Weights], Any], dict[str, Any], str]] = [
    (lambda weights: [weights.pop(name) for name in TABLES] and weights, {}, "positions is missing"),
    (lambda weights: weights | LEARNED, {}, "positions is missing, and"),
    (lambda weights: weights | LEARNED, {"positions": {"base": 1000}}, "it fits no formula that we know"),
    (
        lambda weights: weights | {"module.encoder.normalize.beta": weights["encoder.normalize.beta"] + 1},
        {},
        "module.encoder.normalize.beta and encoder.normalize.beta are one weight; keep one",
    ),
    (lambda weights: {"epoch": 3, "weights": [1, 2]}, {}, "'epoch' holds int"),
    (
        lambda weights: {f"transformer.h.{layer}.attn.weight": torch.zeros(3) for layer in range(9)},
        {},
        "its names (0.attn.weight, 1.attn.weight, ...) match no known layout; nearest is",
    ),
    *(
        (part(module, wrapper), {}, expected)
        for wrapper in ("", "_orig_mod.module.")
        for module, expected in {
            "encoder.encoder_list.0.self_attention": "(w_key.bias, without encoder.encoder_list.0.self_",
            "decoder.decoder_list.1": "(cross_attention.w_key.bias, without encoder.encoder_list.0 before",
            "decoder.decoder_list": "(0.cross_attention.w_key.bias, without encoder.encoder_list before it",
            "encoder": "(encoder_list.0.feed_forward_block.linear_layer1.bias, without encoder before it",
        }.items()
    ),
]


@pytest.mark.parametrize(("change", "said", "expected"), CONTENTS)
def test_contents_of_files(
    change: Callable[[Weights], Any],
    said: dict[str, Any],
    expected: str,
    refused: Refused,
) -> None:
    assert expected in refused(change, **said)


def test_files_that_are_not_there(refused: Refused, tmp_path: Path) -> None:
    line = refused(flags={"--config": tmp_path / "no.json", "--target-tokenizer": tmp_path / "no.model"})
    assert "no.json is not a file" in line
    assert "no.model is not a file" in line
    assert "there is no such file or folder" in refused(path="no.pt")
    (tmp_path / "saved" / "model.safetensors").write_bytes(b"garbage")
    assert "found model.pt, model.safetensors" in refused(path=".", flags={"--name": "x"})


def test_companions(
    refused: Refused, tokenizers: tuple[Path, Path], json_tokenizers: tuple[Path, Path], tmp_path: Path
) -> None:
    cut, text = tmp_path / "cut.model", tmp_path / "text.json"
    cut.write_bytes(tokenizers[0].read_bytes()[:500])
    text.write_text("[1, 2")
    source, target = "--tokenizer", "--target-tokenizer"
    for flags, expected in (
        ({source: cut, target: text}, "--tokenizer cut.model: it is not a SentencePiece model"),
        ({source: cut, target: text}, "--target-tokenizer text.json: it is not JSON of the tokenizers library"),
        ({target: json_tokenizers[1]}, "--tokenizer is of kind sentencepiece, --target-tokenizer of kind tokenizers"),
        (
            dict.fromkeys((source, target), json_tokenizers[0]),
            "--target-tokenizer: it has unk_id 1, --config says 0 for the target",
        ),
    ):
        assert expected in refused(flags=flags)


def test_options_of_other_importers_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    line = folders.refused(checkpoint, "--config", tmp_path / "x.json", output=tmp_path / "out")
    assert "--config is not for Dragoman's own checkpoints" in line
