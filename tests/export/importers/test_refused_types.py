"""Models of kinds that people bring, and that can't be converted, are refused by name and with the reason."""

import json
from pathlib import Path
from typing import Any

import pytest

from export.importers.imported import CheckpointError
from export.importers.registry import KINDS
from export.importers.selection import import_checkpoint


def refused(folder: Path, **config: Any) -> str:
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(CheckpointError) as raised:
        import_checkpoint(folder)
    (problem,) = raised.value.problems
    return problem


@pytest.mark.parametrize(
    ("model_type", "architecture", "reason"),
    [
        ("nllb-moe", "NllbMoeForConditionalGeneration", "a mixture of experts"),
        ("seamless_m4t_v2", "SeamlessM4Tv2Model", "a model of speech and text"),
        ("fsmt", "FSMTForConditionalGeneration", "split by Moses and BPE rules"),
        ("pegasus", "PegasusForConditionalGeneration", "a summariser with a tokenizer of its own"),
        ("prophetnet", "ProphetNetForConditionalGeneration", "predicts several tokens at once"),
        ("xlm-prophetnet", "XLMProphetNetForConditionalGeneration", "predicts several tokens at once"),
        ("llama", "LlamaForCausalLM", "a decoder without an encoder (LlamaForCausalLM); converted are models of both"),
        ("gpt2", "GPT2LMHeadModel", "a decoder without an encoder"),
        ("qwen2", "Qwen2ForCausalLM", "a decoder without an encoder"),
        ("gemma3", "Gemma3ForConditionalGeneration", "a decoder without an encoder"),
        ("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", "a decoder without an encoder"),
        ("a_new_one", "ANewOneForCausalLM", "a decoder without an encoder (ANewOneForCausalLM)"),
    ],
)
def test_a_known_kind_is_refused_with_the_reason(
    tmp_path: Path, model_type: str, architecture: str, reason: str
) -> None:
    problem = refused(tmp_path, model_type=model_type, architectures=[architecture])
    assert problem.startswith(f"model_type is {model_type!r}, a ")
    assert reason in problem
    assert "supported are" not in problem


def test_an_unknown_kind_is_told_what_is_supported(tmp_path: Path) -> None:
    problem = refused(tmp_path, model_type="perceiver", architectures=[7])
    assert problem.startswith("model_type is 'perceiver'; supported are bart, ")
    for kind in KINDS:
        assert all(each in problem for each in kind.model_types)
