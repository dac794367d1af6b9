"""Special tokens according to `tokenizer_config.json` and its older companions."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from export.importers.huggingface.tokenizer_config import TokenizerConfig, class_of, read_tokenizer_config

VOCABULARY = {"</s>": 0, "<unk>": 1, "▁a": 2, "<pad>": 3}
DEFAULTS = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


def write(folder: Path, **files: Any) -> Path:
    for name, document in files.items():
        (folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def read(folder: Path) -> TokenizerConfig:
    problems: list[str] = []
    config = read_tokenizer_config(folder, VOCABULARY, DEFAULTS, problems)
    assert problems == []
    return config


def problems_with(folder: Path) -> str:
    problems: list[str] = []
    read_tokenizer_config(folder, VOCABULARY, DEFAULTS, problems)
    assert problems
    assert not any("\n" in problem for problem in problems)
    return "; ".join(problems)


def test_placed_tokens_have_their_place(tmp_path: Path) -> None:
    placed = {"0": {"content": "</s>", "special": True}, "9": {"content": "<x>", "special": True}}
    settings = {"added_tokens_decoder": placed, "extra_special_tokens": ["<x>"], "clean_up_tokenization_spaces": True}
    config = read(write(tmp_path, tokenizer_config=settings, special_tokens_map={"eos_token": "ignored"}))
    assert config.special_tokens == {"</s>": 0, "<unk>": 1, "<pad>": 3, "<x>": 9}
    assert config.cleans_up_spaces


def test_older_files_count_where_no_tokens_are_placed(tmp_path: Path) -> None:
    write(tmp_path, special_tokens_map={"additional_special_tokens": ["<x>"], "unk_token": {"content": "▁a"}})
    config = read(write(tmp_path, added_tokens={"<x>": 7}))
    assert config.special_tokens == {"</s>": 0, "▁a": 2, "<pad>": 3, "<x>": 7}
    assert config.named_ids["unk_token"] == 2


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ([], "tokenizer_config.json: it holds list"),
        ({"eos_token": 7}, "expected a special token, not '7'"),
        ({"eos_token": None}, "the vocabulary has no eos_token"),
        ({"unk_token": "<oov>"}, r"the vocabulary has no unk_token \('<oov>'\)"),
        ({"pad_token": {"content": "<pad>", "lstrip": True}}, "lstrip of the special token '<pad>' is not supported"),
        ({"additional_special_tokens": "<x>"}, "are not a list"),
        ({"added_tokens_decoder": []}, "not an object of ids"),
        ({"added_tokens_decoder": {"x": {"content": "<x>"}}}, "not an object of ids"),
        ({"added_tokens_decoder": {"9": {"content": "<x>"}}}, "the added token '<x>' is not special"),
        ({"added_tokens_decoder": {"9": {"content": "<pad>"}}}, "'<pad>' has the id 9, which contradicts"),
        (
            {"added_tokens_decoder": {"2": {"content": "<x>"}}, "extra_special_tokens": ["<x>"]},
            "'<x>' has the id 2, which contradicts",
        ),
        ({"split_special_tokens": True}, "split_special_tokens is not supported"),
        ({"sp_model_kwargs": {"enable_sampling": True}}, "sp_model_kwargs is not supported"),
        ({"image_token": "<image>"}, "image_token is not supported"),
    ],
)
def test_what_is_not_done_is_refused(settings: Any, problem: str, tmp_path: Path) -> None:
    assert re.search(problem, problems_with(write(tmp_path, tokenizer_config=settings)))


@pytest.mark.parametrize(
    ("tokenizer_config", "config", "message"),
    [
        ({}, {}, ""),
        ({"tokenizer_class": "M2M100Tokenizer"}, {"tokenizer_class": "Other"}, ""),
        ({"tokenizer_class": "M2M100TokenizerFast"}, {}, ""),
        ({"tokenizer_class": None}, {"tokenizer_class": None}, ""),
        ({"tokenizer_class": "SMALL100Tokenizer"}, {}, "tokenizer_config.json: tokenizer_class is 'SMALL100Tokenizer'"),
        (
            {},
            {"tokenizer_class": "SMALL100Tokenizer"},
            "config.json: tokenizer_class is 'SMALL100Tokenizer'; supported",
        ),
        ({"tokenizer_class": "PreTrainedTokenizerFast"}, {}, "is 'PreTrainedTokenizerFast'"),
        ({"tokenizer_class": ["M2M100Tokenizer"]}, {}, "supported: M2M100Tokenizer"),
        ({"auto_map": {"AutoTokenizer": ["own.Own", None]}}, {}, "auto_map names a tokenizer of its own code"),
    ],
)
def test_the_class_is_the_one_that_reads_such_files(
    tokenizer_config: dict[str, Any], config: dict[str, Any], message: str, tmp_path: Path
) -> None:
    problems: list[str] = []
    class_of(write(tmp_path, config=config), tokenizer_config, ("M2M100Tokenizer",), problems)
    assert len(problems) == bool(message)
    assert message in "".join(problems)


def test_all_problems_are_listed(tmp_path: Path) -> None:
    settings = {"split_special_tokens": True, "image_token": "<image>", "unk_token": "<oov>"}
    write(tmp_path, tokenizer_config=settings, tokenizer={}, added_tokens={"<x>": "7"})
    found = problems_with(tmp_path)
    for problem in ("split_special_tokens", "image_token", "<oov>", "tokenizer.json", "'<x>' is not special", "is '7'"):
        assert problem in found
