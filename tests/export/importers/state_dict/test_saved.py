"""Checkpoints of toolkits as they write them: settings, vocabularies and weights are read, and no code in them runs."""

import json
import re
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from torch import nn

from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.options import ImportOptions
from export.importers.selection import import_checkpoint
from export.importers.sentencepiece_file import pieces_of
from service.text.tokenizers import load_tokenizer
from tests.export.importers.state_dict.checkpoints import Notebook, Weights, make, renamed
from tests.export.importers.state_dict.readings import WIDTH, Choices
from tests.export.importers.state_dict.test_logits import OF_002, POST, difference

NUM_HEADS = 2
PRE = Choices(OF_002, lambda: nn.LayerNorm(WIDTH, 1e-6), pre_norm=True, base=10000.0)
NORM = r"residual_connections.{}.norm".format
# What hkproj calls its parts, and what these do.
JOEY = (
    (r"tgt_", "trg_"),
    (r"_embed.embedding", "_embed.lut"),
    (r"src_pos.pe", "encoder.pe.pe"),
    (r"trg_pos.pe", "decoder.pe.pe"),
    (r"projection_layer.proj", "decoder.output_layer"),
    (r"coder\.norm", "coder.layer_norm"),
    (r"w_([qkv])", r"\1_layer"),
    (r"w_o", "output_layer"),
    (r"(encoder.*)self_attention_block", r"\1src_src_att"),
    (r"self_attention_block", "trg_trg_att"),
    (r"source_attention_block", "src_trg_att"),
    (r"feed_forward_block.linear_1", "feed_forward.pwff_layer.0"),
    (r"feed_forward_block.linear_2", "feed_forward.pwff_layer.3"),
    (rf"(encoder.*){NORM(1)}|{NORM(2)}", r"\1feed_forward.layer_norm"),
    (rf"(encoder.*){NORM(0)}", r"\1layer_norm"),
    (NORM(0), "x_layer_norm"),
    (NORM(1), "dec_layer_norm"),
)
OPENNMT = (
    (r"src_embed.embedding", "encoder.embeddings.make_embedding.emb_luts.0"),
    (r"tgt_embed.embedding", "decoder.embeddings.make_embedding.emb_luts.0"),
    (r"src_pos", "encoder.embeddings.make_embedding.pe"),
    (r"tgt_pos", "decoder.embeddings.make_embedding.pe"),
    (r"projection_layer.proj", "generator"),
    (r"coder\.norm", "coder.layer_norm"),
    *((f"w_{word[0]}", f"linear_{word}") for word in ("query", "keys", "values")),
    (r"w_o", "final_linear"),
    (r"self_attention_block", "self_attn"),
    (r"source_attention_block", "context_attn"),
    (r"feed_forward_block.linear", "feed_forward.w"),
    (rf"(encoder.*){NORM(1)}|{NORM(2)}", r"\1feed_forward.layer_norm"),
    (rf"(encoder.*){NORM(0)}", r"\1layer_norm"),
    (NORM(0), "layer_norm_1"),
    (NORM(1), "layer_norm_2"),
    (r"encoder.layers", "encoder.transformer"),
    (r"decoder.layers", "decoder.transformer_layers"),
)
OF_FAIRSEQ = {
    "task": "translation",
    "encoder_attention_heads": NUM_HEADS,
    "decoder_attention_heads": NUM_HEADS,
    "encoder_normalize_before": False,
    "encoder_learned_pos": True,
    "activation_fn": "relu",
    "no_scale_embedding": False,
}
OF_JOEY = {
    side: {"type": "transformer", "num_heads": NUM_HEADS, "layer_norm": "pre", "embeddings": {"scale": True}}
    for side in ("encoder", "decoder")
}
OF_OPENNMT = {"encoder_type": "transformer", "heads": NUM_HEADS, "position_encoding": True, "norm_eps": 1e-6}
IDS = {
    "fairseq": ("<s>", "<pad>", "</s>", "<unk>"),
    "joey": ("<unk>", "<pad>", "<s>", "</s>"),
    "opennmt": ("<unk>", "<blank>", "<s>", "</s>"),
}
Words = list[list[str]]


class RunsCode:
    """What a stranger may put into a checkpoint: loaded by pickle, it writes a file."""

    def __reduce__(self) -> Any:
        return exec, ("open('ran', 'w').close()",)


def fairseq(folder: Path, weights: Weights, lists: Words, **settings: Any) -> tuple[Any, str]:
    for language, side in zip(("en", "hi"), lists, strict=True):
        (folder / f"dict.{language}.txt").write_text("".join(f"{word} 7\n" for word in side[4:]), encoding="utf-8")
    for name in [name for name in weights if "embed_positions" in name]:
        weights[name] = torch.cat([torch.full((2, WIDTH), 9.0), weights[name][0].float()])
    weights["encoder.layers.0.fc1_weight"] = torch.zeros(3)  # what fairseq 0.12 keeps for nested tensors
    model = Namespace(**OF_FAIRSEQ | settings)
    return {"args": None, "cfg": {"model": model, "task": {"data": "x"}}, "model": weights}, "checkpoint_best.pt"


def joey(folder: Path, weights: Weights, lists: Words, **settings: Any) -> tuple[Any, str]:
    for name, side in zip(("src", "trg"), lists, strict=True):
        (folder / f"{name}_vocab.txt").write_text("\n".join(side) + "\n", encoding="utf-8")
    document = {"name": "tiny", "data": {"special_symbols": {"eos_id": 3}}, "model": OF_JOEY | settings}
    (folder / "config.yaml").write_text(json.dumps(document))  # which is YAML
    return {"model_state": weights, "scaler_state": None}, "best.ckpt"


def opennmt(folder: Path, weights: Weights, lists: Words, **settings: Any) -> tuple[Any, str]:
    generator = {name[10:]: weights.pop(name) for name in list(weights) if name.startswith("generator.")}
    vocab = {"src": lists[0], "tgt": lists[1], "data_task": "seq2seq"}
    opt = Namespace(**OF_OPENNMT | settings)
    return {"model": weights, "generator": generator, "vocab": vocab, "opt": opt}, "model_step_9.pt"


@dataclass
class Toolkit:
    """What its models compute and are called, and how it writes them."""

    choices: Choices
    layout: str
    renames: tuple[tuple[str, str], ...]
    save: Callable[..., tuple[Any, str]]

    def write(self, folder: Path, tokenizers: tuple[Path, Path], *, is_old: bool = False, **settings: Any) -> Notebook:
        """Write a checkpoint as the toolkit does, with an object that would run code; no config is given."""
        folder.mkdir()
        lists = [words(self.save.__name__, path) for path in tokenizers]
        notebook = make(self.choices)
        weights = renamed(dict(notebook.model.state_dict()), self.layout)
        for theirs, other in self.renames:
            weights = {re.sub(theirs, other, each): value for each, value in weights.items()}
        document, name = self.save(folder, weights, lists, **settings)
        document["extra_state"] = RunsCode()
        torch.save(document, folder / name, _use_new_zipfile_serialization=not is_old)
        return replace(notebook, path=folder / name, options=ImportOptions("en", "hi", None, *tokenizers))


def words(name: str, path: Path) -> list[str]:
    """Return a toolkit's vocabulary: its special tokens, and a model's pieces in another order."""
    return [*IDS[name], *sorted(pieces_of(path.read_bytes())[4:], reverse=True)]


def read(notebook: Notebook, path: Path | None = None) -> ImportedCheckpoint:
    return import_checkpoint(path or notebook.path, None if path else "pytorch", notebook.options)


TOOLKITS = {
    "fairseq": Toolkit(replace(POST, projection_bias=False), "fairseq", (), fairseq),
    "joey": Toolkit(replace(PRE, projection_bias=False), "hkproj", JOEY, joey),
    "opennmt": Toolkit(PRE, "hkproj", OPENNMT, opennmt),
}


@pytest.mark.parametrize("is_old", [False, True])
@pytest.mark.parametrize("name", TOOLKITS)
def test_a_checkpoint_is_read_as_it_was_written(
    name: str, is_old: bool, tokenizers: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = TOOLKITS[name].write(tmp_path / "saved", tokenizers, is_old=is_old)
    imported = read(notebook, None if name == "opennmt" else notebook.path.parent)
    assert not Path("ran").exists()
    torch.load(notebook.path, weights_only=False)
    assert Path("ran").exists()  # the control: an ordinary reader runs it
    assert difference(notebook, imported) < 1e-4
    for file, written in imported.tokenizer_files.items():
        assert not isinstance(written, Path)
        written(tmp_path / file)
    text = "The train is late."
    model, spec = sentencepiece.SentencePieceProcessor(model_file=str(tokenizers[0])), imported.tokenizer
    listed = words(name, tokenizers[0])
    end = [] if name == "opennmt" else ["</s>"]
    expected = [listed.index(piece) for piece in [*model.encode(text, out_type=str), *end]]
    encoded = load_tokenizer(spec, tmp_path).encode(text)
    assert list(spec.source_ids(encoded, imported.languages[0])) == expected
    assert spec.decoder_start_id == listed.index("</s>" if name == "fairseq" else "<s>")


OTHER_TASK = "translation_multi_simple_epoch"
RECURRENT, DEEPNET = {"type": "recurrent"}, OF_JOEY["decoder"] | {"alpha": 1.5}
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "task": ("fairseq", {"task": OTHER_TASK}, f"its task is '{OTHER_TASK}'; supported: translation"),
    "heads": ("fairseq", {"decoder_attention_heads": 1}, "its encoder_attention_heads is 2, and decoder_attention"),
    "activation": ("fairseq", {"activation_fn": "tanh"}, "its activation_fn is 'tanh'; supported: relu, gelu, gelu_"),
    "dictionary": ("fairseq", {"source_lang": "../fr"}, "its vocabulary dict.../fr.txt is missing"),
    "recurrent": ("joey", {"encoder": RECURRENT}, "its model_encoder_type is 'recurrent'; supported: transformer"),
    "DeepNet": ("joey", {"decoder": DEEPNET}, "its model_decoder_alpha is '1.5'; supported: 1"),
    "rotary": ("opennmt", {"max_relative_positions": -1}, "its max_relative_positions is '-1'; supported: 0"),
}


@pytest.mark.parametrize(("name", "settings", "problem"), REFUSED.values(), ids=REFUSED)
def test_refusals(
    name: str, settings: dict[str, Any], problem: str, tokenizers: tuple[Path, Path], tmp_path: Path
) -> None:
    notebook = TOOLKITS[name].write(tmp_path / "saved", tokenizers, **settings)
    with pytest.raises(CheckpointError) as caught:
        read(notebook)
    assert problem in str(caught.value)


def test_a_checkpoint_needs_its_pieces_model(tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    notebook = TOOLKITS["opennmt"].write(tmp_path / "saved", tokenizers)
    for given, problem in {
        None: "--tokenizer is missing: the SentencePiece model whose pieces are in the checkpoint's vocabulary",
        tokenizers[1]: "--tokenizer: it belongs to another model: ",
    }.items():
        with pytest.raises(CheckpointError, match=problem):
            read(replace(notebook, options=replace(notebook.options, tokenizer=given)))
