"""Wrong and ambiguous inputs of people who convert a model of their own: a line says what is missing, and what to do.

Of all, one thing is wrong with a model that converts. Nothing that a file holds is run but what --like names.
"""

import contextlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from torch import Tensor, nn

from export.cli import main

LONGEST_LINE = 300
FACTORY = """
import torch
from torch import nn

class Seq2Seq(nn.Module):
    def __init__(self, source=40, target=36):
        super().__init__()
        self.transformer = nn.Transformer(16, 2, 2, 2, 24, batch_first=True)
        self.generator = nn.Linear(16, target)
        self.src_tok_emb, self.tgt_tok_emb = nn.Embedding(source, 16), nn.Embedding(target, 16)

    def forward(self, source, target):
        later = torch.full((target.shape[1], target.shape[1]), -torch.inf).triu(1)
        found = self.transformer(4 * self.src_tok_emb(source), 4 * self.tgt_tok_emb(target), tgt_mask=later)
        return self.generator(found)

def build():
    return Seq2Seq()
"""
CONFIG = json.loads("""
{"num_heads": 2, "norm": "post", "activation": "relu", "positions": {"layout": "none"}, "pad_id": 0, "unk_id": 1,
"decoder_start_id": 2, "eos_id": 3, "source_prefix_ids": [], "source_eos_id": 3, "max_source_positions": 30,
"max_target_positions": 30, "tokenizer": {"split": "whitespace"}}
""")
FLAGS = {
    "CHECKPOINT": "model.pt",
    "--config": "config.json",
    "--source-language": "en",
    "--target-language": "de",
    "--tokenizer": "source.txt",
    "--target-tokenizer": "target.txt",
}
BY_NAMES, LIKE = {"--from": "pytorch"}, {"--like": "factory.py:build"}
Weights = dict[str, Tensor]
Mistake = Callable[[Weights], dict[str, str | None] | None]  # made beside a good model; may return other flags


class RunsCode:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("ran",)


def saved(change: Callable[[Weights], Any]) -> Mistake:
    """Save what `change` returns of the weights, or leaves of them."""
    return lambda weights: torch.save(found if (found := change(weights)) is not None else weights, "model.pt")


def without(start: str) -> Mistake:
    return saved(lambda weights: {name: each for name, each in weights.items() if not name.startswith(start)})


def with_(**values: Any) -> Mistake:
    return saved(lambda weights: weights.update({f"generator.{name}": each for name, each in values.items()}))


def said(**values: Any) -> Mistake:
    kept = {name: value for name, value in (CONFIG | values).items() if value is not ...}
    return written("config.json", json.dumps(kept))


def written(name: str, content: str | bytes, **flags: str | None) -> Mistake:
    def write(_: Weights) -> dict[str, str | None]:
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return given(**flags)

    return write


def given(**flags: str | None) -> dict[str, str | None]:
    return {f"--{name.replace('_', '-')}": value for name, value in flags.items()}


def code(text: str) -> Mistake:
    return written("factory.py", f"{FACTORY}\n{text}\n", like="factory.py:build")


def words(number: int) -> str:
    return "\n".join(["<pad>", "<unk>", "<s>", "</s>", *(f"w{index}" for index in range(number - 4))])


def names(text: str) -> Mistake:
    return written("mine.toml", text, names="mine.toml")


def of_layers(name: str, *others: str) -> Mistake:
    kept = {name.format(layer): torch.zeros(8, 8) for layer in range(3)} | dict.fromkeys(others, torch.zeros(9, 8))
    return saved(lambda _: kept)


LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d' * 32}\nsize 310000000\n"
CONVERTS = "converts"
SWAPPED = {"--tokenizer": "target.txt", "--target-tokenizer": "source.txt"}
BAD_LINE = "def build():\n    return Seq2Seq("
WRONG: dict[str, tuple[dict[str, str], Mistake, str]] = {
    "by names": (BY_NAMES, lambda _: None, CONVERTS),
    "by its code": (LIKE, lambda _: None, CONVERTS),
    "held by a trainer": (LIKE, saved(lambda all_: {f"model.{name}": each for name, each in all_.items()}), CONVERTS),
    "wrapped": (LIKE, code("def build():\n    return nn.DataParallel(Seq2Seq())"), CONVERTS),
    "encoder only": (BY_NAMES, without("transformer.decoder"), "it holds no decoder, such as .* of the whole model"),
    "decoder only": (BY_NAMES, without("transformer.encoder"), "it holds no encoder, such as"),
    "GPT": (
        BY_NAMES,
        of_layers("h.{}.attn.c_attn.weight", "wte.weight"),
        "it has no encoder by its names .*; only encoder-decoder models",
    ),
    "BERT": (BY_NAMES, of_layers("encoder.layer.{}.dense.weight", "embeddings.weight"), "no decoder by its names"),
    "LSTM": (BY_NAMES, of_layers("encoder.weight_hh_l{}", "decoder.weight_hh_l0"), "a recurrent network .* Transform"),
    "module": (
        BY_NAMES,
        saved(lambda _: nn.Linear(2, 2)),
        "it holds Linear, expected names .*: save model.state",
    ),
    "runs code": (LIKE, saved(lambda _: {"epoch": RunsCode()}), r"might run code; save model.state_dict\(\)"),
    "no wrapper": (BY_NAMES, saved(lambda all_: {"net": all_}), "'net' holds names with tensors: save that by itself"),
    "optimizer": (BY_NAMES, saved(lambda _: {"state": {}, "param_groups": []}), "'state' holds dict, expected a tens"),
    "a list": (BY_NAMES, saved(lambda all_: list(all_.values())), r"holds list, .*: save model.state_dict\(\)"),
    "page": (BY_NAMES, written("model.pt", "<!DOCTYPE html><html>"), "it is a web page; download the file"),
    "pointer": (LIKE, written("model.pt", LFS), "it is a pointer of git-lfs; run 'git lfs pull'"),
    "empty": (BY_NAMES, written("model.pt", ""), "it is empty; download it again"),
    "text": (
        BY_NAMES,
        written("model.pt", "PK is how zips begin"),
        r"damaged, .* \(it is not a pickle, or .*\); download",
    ),
    "cut": (BY_NAMES, lambda _: os.truncate("model.pt", 9000), "damaged, truncated or .*; download it again"),
    "path": (BY_NAMES, lambda _: {"CHECKPOINT": "modle.pt"}, "no such file or folder; nearest is model.pt"),
    "kind": ({}, lambda _: None, "a file of torch; if it is a bare state dict, give it with --from pytorch"),
    "nothing": (BY_NAMES, lambda _: dict.fromkeys([*FLAGS][1:]), "--config is missing.*--tokenizer is missing"),
    "no file": (LIKE, lambda _: given(like="fctory.py:build"), "fctory.py is not a file; expected FILE.py:FUNCTION"),
    "no function": (LIKE, lambda _: given(like="factory.py"), "factory.py names no function; expected FILE.py:FUNC"),
    "another function": (LIKE, lambda _: given(like="factory.py:bild"), "no function .bild.; it has Seq2Seq, build"),
    "syntax": (LIKE, code(BAD_LINE), r"can't build the model \(SyntaxError: .* \(factory.py, line 21\)\)"),
    "arguments": (LIKE, code("def build(size): ..."), "missing 1 required positional argument: 'size'"),
    "stops": (LIKE, code("raise SystemExit('usage: train.py\\n  --data')"), r"\(SystemExit: usage: train.py --data\)"),
    "package": (LIKE, code("import not_installed"), "ModuleNotFoundError: No module named 'not_installed'"),
    "None": (LIKE, code("def build():\n    Seq2Seq()"), "returns NoneType, expected a torch.nn.Module with its"),
    "a class": (LIKE, code("def build():\n    return Seq2Seq"), "returns type, expected a torch.nn.Module with its"),
    "meta": (LIKE, code("def build():\n    return Seq2Seq().to('meta')"), "without numbers .*; build it on the CPU"),
    "another size": (LIKE, code("def build(): return Seq2Seq(41)"), r"emb.weight is \(40, 16\) instead of \(41, 16"),
    "another model": (LIKE, without("generator"), "the file lacks generator.bias, generator.weight"),
    "beside it": (LIKE, with_(scale=torch.ones(1)), "the file has besides generator.scale"),
    "argmax": (LIKE, code("def logits(f, *ids): return f(*ids).argmax(-1)"), r"returns shape \(7, 13\), expected"),
    "softmax": (
        LIKE,
        code("def logits(f, *ids): return f(*ids).softmax(-1)"),
        "returns probabilities; expected",
    ),
    "NaN": (LIKE, with_(bias=torch.full((36,), torch.nan)), "returns NaN; check its weights"),
    "infinite": (BY_NAMES, with_(bias=torch.full((36,), torch.inf)), "generator.bias holds NaN or infinite numbers"),
    "complex": (LIKE, with_(weight=torch.ones(36, 16) * 1j), r"complex64 .*, expected plain numbers"),
    "quantized": (LIKE, with_(weight=torch.ones(36, 16).char()), "int8; save the model as it is before it is"),
    "no numbers": (BY_NAMES, with_(weight=torch.ones(36, 16, device="meta")), "meta.*, expected plain numbers"),
    "no key": (BY_NAMES, without("generator.w"), "generator.weight is missing"),
    "width": (BY_NAMES, with_(weight=torch.ones(36, 12)), r"shape \(36, 12\), the configuration asks for \(36, 16\)"),
    "few words": (BY_NAMES, written("source.txt", words(9)), "--tokenizer: it has 9 tokens, the model's source has 40"),
    "many words": (LIKE, written("target.txt", words(99)), "if the tokenizers have more tokens than the model, or are"),
    "swapped": (BY_NAMES, lambda _: dict(SWAPPED), "has the 36 tokens of the target, .*: swap them"),
    "one of two": (BY_NAMES, lambda _: given(target_tokenizer=None), "without --target-tokenizer: it has 40 tokens"),
    "words twice": (BY_NAMES, written("source.txt", "<unk>\na\na"), "it has the token 'a' or the id 2 twice"),
    "no words": (BY_NAMES, written("no.model", LFS, tokenizer="no.model"), "--tokenizer .* a pointer of git-lfs"),
    "split": (LIKE, said(tokenizer=...), 'give "tokenizer" in --config, such as {"split": "whitespace"}'),
    "settings": (BY_NAMES, written("config.json", "{'num_heads': 2}"), "--config config.json: Expecting property name"),
    "a typing error": (BY_NAMES, said(source_eos_di=3), "source_eos_di is unknown; did you mean source_eos_id?"),
    "texts": (LIKE, said(eos_id="</s>"), "config.json: eos_id is '</s>', expected a token id"),
    "several ends": (LIKE, said(eos_id=[3, 4]), r"config.json: eos_id is \[3, 4\], expected a token id"),
    "far": (BY_NAMES, said(source_prefix_ids=[77]), "source_prefix_ids 77 is outside the vocabulary of 40"),
    "no end": (BY_NAMES, said(source_eos_id=...), "config.json: source_eos_id is missing"),
    "another end": (BY_NAMES, said(eos_id=5), "--target-tokenizer: it has eos_id 3, --config says 5 for the target"),
    "heads": (BY_NAMES, said(num_heads=3), "d_model 16 is not a multiple of num_heads 3"),
    "a fraction": (BY_NAMES, said(num_heads=2.5), "config.json: num_heads is 2.5, expected a number from 1"),
    "norm": (BY_NAMES, said(norm="prenorm"), "norm is 'prenorm', allowed: pre, post, sandwich"),
    "positions": (BY_NAMES, said(positions="sinusoidal"), "positions is 'sinusoidal', expected an object of layout"),
    "no languages": (LIKE, lambda _: given(source_language=None), "--source-language is missing"),
    "no code": (LIKE, lambda _: given(target_language="?"), r"--target-language is '\?', expected a code such as en"),
    "names": (BY_NAMES, names("[names\n"), r"--names mine.toml: it is not TOML \("),
    "no names": (BY_NAMES, names('about = "mine"'), r"it has no table \[names\]"),
    "other names": (
        BY_NAMES,
        names('[names]\n"a" = "projection.weight"'),
        "nearest is mine, which has no .* and needs",
    ),
    "both": (LIKE, names('[names]\n"a" = "projection.weight"'), "--names is for names that no --like explains"),
    "generate": (BY_NAMES, lambda _: given(set="num_beams=3"), "--set changes the generation settings of"),
}


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("name", WRONG)
def test_a_line_says_what_is_missing_and_how_to_give_it(name: str, tmp_path: Path) -> None:
    by, mistake, expected = WRONG[name]
    space: dict[str, Any] = {}
    exec(FACTORY, space)
    weights: Weights = dict(space["build"]().state_dict())
    with contextlib.chdir(tmp_path):
        torch.save(weights, "model.pt")
        for file, content in {"factory.py": FACTORY, "config.json": json.dumps(CONFIG)}.items():
            Path(file).write_text(content)
        for side, number in (("source", 40), ("target", 36)):
            Path(f"{side}.txt").write_text(words(number))
        for neighbour in ("model", "conftest", "__init__"):
            Path(f"{neighbour}.py").write_text("import os; os.mkdir('ran')")
        checkpoint, *flags = [
            word
            for flag, value in {**FLAGS, **by, **(mistake(weights) or {})}.items()
            if value is not None
            for word in ([value] if flag == "CHECKPOINT" else [flag, value])
        ]
        if expected == CONVERTS:  # a control, which `doctor` tells without converting
            told = CliRunner().invoke(main, ["doctor", checkpoint, *flags])
            assert (told.exit_code, told.output.count(CONVERTS)) == (0, 1), told.output
            assert not Path("ran").exists()
            return
        result = CliRunner().invoke(main, ["convert", checkpoint, *flags, "--output", "out"])
        assert (result.exit_code, type(result.exception), result.stderr.count("\n")) == (2, SystemExit, 1), result
        assert re.search(expected, result.stderr), result.stderr
        assert len(result.stderr) <= LONGEST_LINE, result.stderr
        assert not Path("out").exists()
        assert not Path("ran").exists()
        if name == "runs code":
            torch.load("model.pt", weights_only=False)
            assert Path("ran").exists(), "a control: it does run"
