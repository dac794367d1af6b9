"""What can't be converted is recognised with advice: folders of other tools, with any `--from`, and kinds of models."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from export.importers.imported import CheckpointError
from export.importers.registry import KINDS, NAMES
from export.importers.selection import import_checkpoint
from export.importers.weight_files import SINGLE_NAMES
from tests.export.folders import refused

ADAPTER = {"peft_type": "LORA", "base_model_name_or_path": "facebook/nllb-200-distilled-600M"}
FOLDERS: dict[str, tuple[dict[str, str], str, str]] = {
    "fairseq, M2M100": (
        {"418M_last_checkpoint.pt": "PK", "model_dict.128k.txt": "", "data_dict.128k.txt": "", "spm.128k.model": ""},
        "it is a checkpoint of fairseq (418M_last_checkpoint.pt, data_dict.128k.txt)",
        "take the folder for transformers",
    ),
    "LoRA": (
        {"adapter_config.json": json.dumps(ADAPTER), "adapter_model.safetensors": "", "tokenizer.json": ""},
        "it is a PEFT adapter (adapter_config.json) of 'facebook/nllb-200-distilled-600M'",
        "give its base model with --base",
    ),
    "LoRA that says nothing": (
        {"adapter_config.json": "[", "adapter_model.bin": "", "config.json": '{"model_type": "marian"}'},
        "it is a PEFT adapter (adapter_config.json): ",
        "give its base model with --base",
    ),
}


@pytest.mark.parametrize("kind", [None, *NAMES])
@pytest.mark.parametrize(("files", "what", "advice"), FOLDERS.values(), ids=FOLDERS)
def test_other_tools_are_named(files: dict[str, str], what: str, advice: str, kind: str | None, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)
    line = refused(folder, *(("--from", kind) if kind else ()))
    assert what in line
    assert advice in line
    assert "--from" not in line
    assert " is missing" not in line  # only one problem, which is sufficient


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"])
def test_an_adapter_beside_its_base_is_not_left_out_silently(name: str, checkpoint: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoint, tmp_path / "checkpoint"))
    (folder / name).write_text(json.dumps(ADAPTER))
    line = refused(folder)
    if name == "adapter_config.json":
        assert "its adapter can't be merged: its weights, adapter_model.safetensors or adapter_model.bin, are" in line
        return
    assert f"it holds a PEFT adapter ({name}) beside a model, and adapter_config.json is needed to merge it" in line
    assert "remove the adapter's files" in line


OTHERS = {name: files for name, (files, _, _) in FOLDERS.items() if "adapter_config.json" not in files}


@pytest.mark.parametrize("files", OTHERS.values(), ids=OTHERS)
def test_a_folder_with_weights_that_we_read_is_taken(files: dict[str, str], checkpoint: Path, tmp_path: Path) -> None:
    """A positive control: other files beside them do not matter."""
    folder = Path(shutil.copytree(checkpoint, tmp_path / "checkpoint"))
    assert (folder / SINGLE_NAMES[0]).is_file()
    for name in files.keys() - {"config.json"}:
        (folder / name).write_text(files[name])
    import_checkpoint(folder)


def test_nothing_known(tmp_path: Path) -> None:
    (tmp_path / "weights.pt").write_text("")
    line = refused(tmp_path)
    assert "it has no config.json, so its kind is unknown; for a bare state dict give --from pytorch" in line


def problem_of(folder: Path, **config: Any) -> str:
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
        (
            "llama",
            "LlamaForCausalLM",
            "a decoder-only model (LlamaForCausalLM); only encoder-decoder models can be converted",
        ),
        ("gpt2", "GPT2LMHeadModel", "a decoder-only model"),
        ("qwen2", "Qwen2ForCausalLM", "a decoder-only model"),
        ("gemma3", "Gemma3ForConditionalGeneration", "a decoder-only model"),
        ("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", "a decoder-only model"),
        (
            "xlm-roberta",
            "XLMRobertaForMaskedLM",
            "an encoder-only model, which does not generate; only encoder-decoder models can be converted",
        ),
        ("a_new_one", "ANewOneForCausalLM", "a decoder-only model (ANewOneForCausalLM)"),
    ],
)
def test_a_known_kind_is_refused_with_the_reason(
    tmp_path: Path, model_type: str, architecture: str, reason: str
) -> None:
    problem = problem_of(tmp_path, model_type=model_type, architectures=[architecture])
    assert re.match(f"model_type is {model_type!r}, an? ", problem)
    assert reason in problem
    assert "supported:" not in problem


def test_an_unknown_kind_is_told_what_is_supported(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, model_type="perceiver", architectures=[7])
    supported = "bart, IndicTrans, m2m_100, marian, mbart, mt5, plbart, t5, umt5"
    assert problem.startswith(f"model_type is 'perceiver'; supported: {supported}")
    for kind in KINDS:
        assert all(each in problem for each in kind.model_types)
