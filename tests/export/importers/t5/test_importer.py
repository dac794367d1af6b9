"""T5's folders: the same logits as transformers', languages from tasks, tokens or options, and clear refusals."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from export.architecture.transformer import Transformer
from export.cli import main
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.options import NOTHING_SAID, ImportOptions
from export.importers.selection import import_checkpoint
from service.bundle.manifest_parts import Limits
from tests.export.folders import edit, edit_weights, problems_of
from tests.export.huggingface.checkpoints import largest_difference
from tests.export.importers.t5 import checkpoints
from tests.tokenizer_folders import write_madlad

ENGLISH_HINDI = ImportOptions(source_language="en", target_language="hi")
# Distances at which a bucket begins or ends, up to those that share the last one.
LENGTHS = (8, 9, 15, 16, 17, 64, 91, 92, 127, 128, 129, 300)
KINDS: dict[str, Callable[[Path], Path]] = {
    **checkpoints.FAMILIES,
    **checkpoints.FURTHER,
    "gated silu": lambda folder: checkpoints.t5(folder, feed_forward_proj="gated-silu"),
    "gated relu": lambda folder: checkpoints.t5(folder, feed_forward_proj="gated-relu"),
    "gelu": lambda folder: checkpoints.mt5(folder, feed_forward_proj="gelu"),
    "other buckets": lambda folder: checkpoints.umt5(
        folder, relative_attention_num_buckets=12, relative_attention_max_distance=20
    ),
    "wide heads": lambda folder: checkpoints.t5(folder, d_model=96, d_kv=64, num_heads=6),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_logits(kind: str, tmp_path: Path) -> None:
    assert largest_difference(KINDS[kind](tmp_path / "folder"), LENGTHS) < 1e-5


def test_a_bias_of_another_bucket_is_noticed(tmp_path: Path) -> None:
    """A positive control."""
    folder = checkpoints.t5(tmp_path / "folder")
    name = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    expected = Transformer.of(import_checkpoint(folder).model)
    edit_weights(folder, lambda weights: weights[name][15].add_(1.0))  # of keys that are 91 tokens or more before
    given = Transformer.of(import_checkpoint(folder).model)
    for length, is_seen in ((91, False), (92, True)):
        ids = torch.randint(3, 340, (1, length), generator=torch.Generator().manual_seed(6))
        with torch.no_grad():
            assert torch.equal(given.encoder(ids), expected.encoder(ids)) != is_seen


@pytest.mark.parametrize("family", ["t5", "mt5", "umt5"])
@pytest.mark.parametrize(
    "said",
    [
        {"tie_word_embeddings": False},
        {"tie_word_embeddings": True},
        {"tie_word_embeddings": True, "scale_decoder_outputs": False},
        {"tie_word_embeddings": False, "scale_decoder_outputs": True},
        {},
    ],
)
def test_the_scale_of_the_output(family: str, said: dict[str, bool], tmp_path: Path) -> None:
    folder = KINDS[family](tmp_path / "folder")
    edit(folder / "config.json", **{"tie_word_embeddings": ..., "scale_decoder_outputs": ..., **said})
    assert largest_difference(folder, (5,)) < 1e-5


def test_activations_as_written_count(tmp_path: Path) -> None:
    """transformers derives them from feed_forward_proj only where a file does not have them."""
    folder = checkpoints.t5(tmp_path / "folder", feed_forward_proj="gated-gelu")
    assert import_checkpoint(folder).model.config.activation == "gelu_tanh"
    edit(folder / "config.json", dense_act_fn="silu")
    assert import_checkpoint(folder).model.config.activation == "silu"
    assert largest_difference(folder, (5,)) < 1e-5
    edit(folder / "config.json", dense_act_fn=..., is_gated_act=..., num_decoder_layers=..., num_layers=1)
    edit_weights(folder, lambda weights: [weights.pop(name) for name in list(weights) if "encoder.block.1" in name])
    assert largest_difference(folder, (5,)) < 1e-5


def test_the_first_published_settings_are_enough(tmp_path: Path) -> None:
    """t5-small's file says nothing of later variants, and it has the model's limit of positions, which has none."""
    folder = checkpoints.t5(tmp_path / "folder", num_decoder_layers=2)
    document = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    names = "architectures d_ff d_kv d_model decoder_start_token_id dropout_rate eos_token_id initializer_factor "
    names += "is_encoder_decoder layer_norm_epsilon model_type num_heads num_layers pad_token_id "
    names += "relative_attention_num_buckets task_specific_params vocab_size"
    document = {name: document[name] for name in names.split()} | {"n_positions": 512, "output_past": True}
    (folder / "config.json").write_text(json.dumps(document), encoding="utf-8")
    (folder / "generation_config.json").unlink()
    assert largest_difference(folder, (5, 130)) < 1e-5
    assert import_checkpoint(folder).limits == Limits(512, 511)


def prefixes(checkpoint: ImportedCheckpoint) -> dict[tuple[str, str], tuple[int, ...]]:
    return {
        (pair.source_language_code, pair.target_language_code): pair.source_prefix_ids for pair in checkpoint.pairs()
    }


def test_tasks_are_pairs_with_a_text_before_each_source(tmp_path: Path) -> None:
    folder = checkpoints.t5(tmp_path / "folder")
    checkpoint = import_checkpoint(folder)
    found = prefixes(checkpoint)
    assert [*found] == [("en", "de"), ("en", "fr")]
    assert len(found["en", "de"]) > 4
    assert found["en", "de"] != found["en", "fr"]
    assert checkpoint.limits == Limits(512, checkpoints.MAX_LENGTH - 1)
    assert (checkpoint.tokenizer.pad_id, checkpoint.tokenizer.eos_id, checkpoint.tokenizer.decoder_start_id) == (
        0,
        1,
        0,
    )
    chosen = import_checkpoint(folder, options=ImportOptions(source_language="en", target_language="fr"))
    assert prefixes(chosen) == {("en", "fr"): found["en", "fr"]}
    assert prefixes(import_checkpoint(folder, options=ENGLISH_HINDI)) == {("en", "hi"): ()}
    said = ImportOptions("en", "hi", source_prefix="translate English to German: ")
    assert prefixes(import_checkpoint(folder, options=said)) == {("en", "hi"): found["en", "de"]}


def test_tokens_are_languages_each_translated_into_every_other_one(tmp_path: Path) -> None:
    folder = checkpoints.madlad(tmp_path / "folder")
    checkpoint = import_checkpoint(folder)
    assert {each.code for each in checkpoint.any_to_any} == {"de", "en", "fr_Latn"}
    found = prefixes(checkpoint)
    assert len(found) == 6
    assert found["en", "de"] == found["fr_Latn", "de"] != found["de", "en"]
    spec = checkpoint.tokenizer
    assert (spec.pad_id, spec.eos_id, spec.unk_id, spec.decoder_start_id) == (1, 2, 0, 0)
    chosen = import_checkpoint(folder, options=ImportOptions(source_language="de", target_language="fr"))
    assert prefixes(chosen) == {("de", "fr_Latn"): found["de", "fr_Latn"]}


def test_one_token_of_a_language_makes_no_pairs(tmp_path: Path) -> None:
    folder = checkpoints.madlad(tmp_path / "folder")
    write_madlad(tmp_path / "other", languages=("de",))
    shutil.copy(tmp_path / "other" / "spiece.model", folder / "spiece.model")
    edit(folder / "config.json", task_specific_params=None)
    with pytest.raises(CheckpointError, match="does not name its languages"):
        import_checkpoint(folder)
    assert prefixes(import_checkpoint(folder, options=ENGLISH_HINDI)) == {("en", "hi"): ()}


def test_padding_that_is_no_piece_is_the_models(tmp_path: Path) -> None:
    folder = checkpoints.madlad(tmp_path / "folder")
    edit(folder / "tokenizer_config.json", pad_token=...)
    assert import_checkpoint(folder).tokenizer.pad_id == 1


REFUSALS: dict[str, tuple[Callable[[Path], object], ImportOptions, str]] = {
    "no tasks": (
        lambda folder: edit(folder / "config.json", task_specific_params=None),
        NOTHING_SAID,
        "does not name its languages; give --source-language, --target-language",
    ),
    "one language": (
        lambda folder: None,
        ImportOptions(source_language="en"),
        "--source-language chooses a pair together with the other language",
    ),
    "a prefix by itself": (
        lambda folder: None,
        ImportOptions(source_prefix="translate: "),
        "--source-language is '', expected a code such as en.*; --target-language is ''",
    ),
    "a long prefix": (
        lambda folder: None,
        ImportOptions("en", "hi", source_prefix="translate " * 100),
        "the text before each source has [0-9]+ tokens, allowed: 128",
    ),
    "bytes": (
        lambda folder: edit(folder / "tokenizer_config.json", tokenizer_class="ByT5Tokenizer"),
        NOTHING_SAID,
        "tokenizer_class is 'ByT5Tokenizer'; supported: T5Tokenizer",
    ),
    "another activation": (
        lambda folder: edit(folder / "config.json", dense_act_fn=..., feed_forward_proj="gated-tanh"),
        NOTHING_SAID,
        "feed_forward_proj is 'gated-tanh', with the activation 'tanh'; supported: relu, gelu, ",
    ),
    "an activation that is no text": (
        lambda folder: edit(folder / "config.json", dense_act_fn=..., feed_forward_proj=[1]),
        NOTHING_SAID,
        r"feed_forward_proj is '\[1\]'",
    ),
    "experts": (
        lambda folder: edit(folder / "config.json", num_experts=8, d_kv=0, num_decoder_layers="2"),
        NOTHING_SAID,
        "num_experts is '8'; T5 models have no such setting; d_kv is 0; .*num_decoder_layers is '2'",
    ),
    "few buckets": (
        lambda folder: edit(folder / "config.json", relative_attention_num_buckets=3),
        NOTHING_SAID,
        "relative_bias has 3 buckets for distances up to 128",
    ),
    "a scale that is no choice": (
        lambda folder: edit(folder / "config.json", scale_decoder_outputs=0.5),
        NOTHING_SAID,
        "scale_decoder_outputs is 0.5; expected true or false",
    ),
    "a weight of another architecture": (
        lambda folder: edit_weights(
            folder, lambda weights: weights.update({"encoder.block.0.layer.7.SelfAttention.q.weight": torch.zeros(1)})
        ),
        NOTHING_SAID,
        r"encoder\.block\.0\.layer\.7\.SelfAttention\.q\.weight is a weight that the architecture does not have",
    ),
    "biases in other layers": (
        lambda folder: edit_weights(
            folder,
            lambda weights: weights.update(
                {"encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight": torch.zeros(32, 3)}
            ),
        ),
        NOTHING_SAID,
        r"encoder\.relative_biases\.1\.weight is unexpected",
    ),
    "another vocabulary": (
        lambda folder: edit(folder / "config.json", vocab_size=100),
        NOTHING_SAID,
        "the source tokenizer has [0-9]+ tokens, the model 100",
    ),
}


@pytest.mark.parametrize(("change", "options", "message"), REFUSALS.values(), ids=REFUSALS)
def test_what_cannot_be_converted(
    change: Callable[[Path], object], options: ImportOptions, message: str, tmp_path: Path
) -> None:
    folder = checkpoints.t5(tmp_path / "folder")
    import_checkpoint(folder)
    change(folder)
    assert re.search(message, problems_of(folder, options))


def test_what_no_model_uses_is_left_out(tmp_path: Path) -> None:
    folder = checkpoints.t5(tmp_path / "folder")
    unused = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    edit_weights(folder, lambda weights: weights.update({unused: torch.zeros(32, 3)}))
    import_checkpoint(folder)


def test_a_prefix_is_for_texts_only(tmp_path: Path) -> None:
    folder = checkpoints.madlad(tmp_path / "madlad")
    command = ["convert", str(folder), "--output", str(tmp_path / "out"), "--source-prefix", "translate: "]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "--source-prefix is for T5; this checkpoint has its own" in line


def test_a_tokenizer_of_another_kind(tmp_path: Path) -> None:
    folder = checkpoints.t5(tmp_path / "folder")
    for content, problem in (
        ({"type": "BPE", "vocab": {}}, "its model is 'BPE', expected 'Unigram'"),
        ({"type": "Unigram", "vocab": [["<unk>", 0.0], ["a", -1.0]]}, "it has no piece </s>"),
        ({"type": "Unigram", "vocab": [["<unk>"]]}, "not enough values to unpack"),
    ):
        document: dict[str, Any] = {"model": content, "added_tokens": []}
        (folder / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")
        with pytest.raises(CheckpointError, match=rf"tokenizer\.json: it is not a tokenizer like T5's: {problem}"):
            import_checkpoint(folder)
