"""A bundle's defaults are those of `generate` for the same folder, whichever file holds the settings."""

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

from export.importers.huggingface.generation import REFUSED, TAKEN_OVER, WITHOUT_EFFECT
from export.importers.imported import CheckpointError, ImportedCheckpoint, Row
from export.importers.selection import import_checkpoint
from tests.export.conftest import Converted
from tests.export.folders import edit
from tests.export.huggingface import checkpoints
from tests.export.huggingface.engine_output import by_the_engine

NUM_ROWS = 20
PAD_ID = 197
# The graphs contain these two; all cases share them, so that one conversion is enough.
IN_THE_GRAPHS = {"bad_words_ids": [[PAD_ID]], "renormalize_logits": True}
IDS = {"eos_token_id": 0, "decoder_start_token_id": PAD_ID}
Ids = tuple[int, ...]


@pytest.fixture(scope="module")
def converted(conversions: Callable[[str], Converted]) -> Converted:
    return conversions("marian")


def variant(source: Path, folder: Path, config: dict[str, Any], generation: dict[str, Any] | None) -> Path:
    """Write the folder with additions to `config.json`, and another `generation_config.json` or none."""
    shutil.copytree(source, folder)
    edit(folder / "config.json", **config)
    (folder / "generation_config.json").unlink()
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation), encoding="utf-8")
    return folder


def sources(checkpoint: ImportedCheckpoint) -> list[Ids]:
    rng = np.random.default_rng(7)
    pair = next(iter(checkpoint.pairs()))
    drawn = [rng.integers(2, PAD_ID, rng.integers(1, 30)) for _ in range(NUM_ROWS)]
    return [checkpoint.tokenizer.source_ids(map(int, ids), pair) for ids in drawn]


def by_transformers(folder: Path, rows: list[Ids]) -> list[Ids]:
    """Return the output of `generate` given nothing but the sources, and that it does not sample."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model: Any = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
        width = max(map(len, rows))
        given = model.generate(
            input_ids=torch.tensor([[*ids, *[PAD_ID] * (width - len(ids))] for ids in rows]),
            attention_mask=torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids in rows]),
            do_sample=False,
        )
    outputs = [row.tolist()[1:] for row in given]
    return [tuple(ids[: ids.index(0)] if 0 in ids else ids) for ids in outputs]


BASE = {**IDS, **IN_THE_GRAPHS, "max_length": 24}
BEAMS = {**BASE, "num_beams": 4}
MIXED = {"num_beams": 6, "length_penalty": 0.2, "early_stopping": True, "no_repeat_ngram_size": 2, "max_length": 9}
PENALIZED = {"num_beams": 3, "length_penalty": -2.0, "early_stopping": True, "max_length": 15}
ENDS_IN_LISTS = {"eos_token_id": [0], "forced_eos_token_id": [0], "max_length": 12, "num_beams": 2}
REWARDED = {"min_new_tokens": 9, "no_repeat_ngram_size": 2, "repetition_penalty": 0.8}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "six beams in config.json beside the other file": (MIXED, BASE),
    "six beams in config.json alone": ({**IN_THE_GRAPHS, "num_beams": 6, "max_length": 24}, None),
    "length penalty and early stop in config.json alone": ({**IN_THE_GRAPHS, **PENALIZED}, None),
    "a forced end in config.json beside the other file": ({"forced_eos_token_id": 0}, {**BEAMS, "max_length": 12}),
    "no ids of padding": ({}, {**BASE, "max_length": 12}),
    "ends in lists": ({}, {**BASE, **ENDS_IN_LISTS}),
    "bos for the start": ({}, {"eos_token_id": 0, "bos_token_id": 5, **IN_THE_GRAPHS, "max_length": 24}),
    "a repetition penalty": ({}, {**BASE, "repetition_penalty": 1.7}),
    "a repetition penalty in beams": ({}, {**BEAMS, "repetition_penalty": 1.7}),
    "no trigram twice": ({}, {**BEAMS, "no_repeat_ngram_size": 3}),
    "a least length": ({}, {**BEAMS, "min_length": 12}),
    "least new tokens, no bigram twice, a reward": ({}, {**BASE, **REWARDED}),
    "a sample, which is read as none": ({}, {**BEAMS, "do_sample": True, "temperature": 0.7}),
    "20 is a limit": ({}, {**BASE, "max_length": 20}),
    "new tokens": ({"max_length": 5}, {**BEAMS, "max_new_tokens": 17, "max_length": 5}),
}


@pytest.mark.parametrize(("config", "generation"), CASES.values(), ids=CASES)
def test_the_defaults_are_those_of_generate(
    converted: Converted,
    tmp_path: Path,
    config: dict[str, Any],
    generation: dict[str, Any] | None,
) -> None:
    source, bundle, manifest = converted
    folder = variant(source, tmp_path / "checkpoint", config, generation)
    checkpoint = import_checkpoint(folder)
    assert any("do_sample is true" in note for note in checkpoint.notes) == ("do_sample" in (generation or {}))
    rows = sources(checkpoint)
    expected = by_transformers(folder, rows)
    named = [Row(ids, ()) for ids in rows]
    assert by_the_engine(bundle, manifest, checkpoint, named) == expected
    assert checkpoint.open_reference is not None
    with checkpoint.open_reference() as reference:
        given = reference.generate(named, checkpoint.generation.beam_size, checkpoint.limits.max_output_tokens)
    assert given == expected


ODD: tuple[Any, ...] = (
    *(True, False, 0, 1, -1, 2, 3, 8, 12, 0.5, 1.0, -0.5, 2**70, "x", "", [], {}, {"a": 1}),
    *([0], [5], [1, 2], [0, 0], [True], [[0]], [[PAD_ID]], [[PAD_ID], [0]], [[5, 6]], [[True]], [[250]]),
)


@pytest.mark.full
@pytest.mark.parametrize("name", sorted((TAKEN_OVER | REFUSED.keys()) - IN_THE_GRAPHS.keys()))
def test_odd_values_are_refused_by_name_or_count_as_in_generate(
    converted: Converted, tmp_path: Path, name: str
) -> None:
    source, bundle, manifest = converted
    for number, value in enumerate(ODD):
        settings = {**BASE, "num_beams": 2, name: value}
        folder = variant(source, tmp_path / str(number), {}, settings)
        try:
            checkpoint = import_checkpoint(folder)
        except CheckpointError as error:
            if name not in str(error):
                pytest.fail(f"{value!r} is refused without the name: {error}")
            continue
        rows = sources(checkpoint)[:6]
        named = [Row(ids, ()) for ids in rows]
        assert by_the_engine(bundle, manifest, checkpoint, named) == by_transformers(folder, rows), value


def test_other_settings_would_be_noticed(converted: Converted, tmp_path: Path) -> None:
    """A positive control: six beams, another limit and another start token all give different output."""
    source, _, _ = converted
    rows = sources(import_checkpoint(source))
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"num_beams": 6},
        {"max_length": 19},
        {"decoder_start_token_id": 5},
        {"num_beams": 6, "length_penalty": -2.0},
    )
    given = [
        tuple(by_transformers(variant(source, tmp_path / str(number), {}, {**BASE, **change}), rows))
        for number, change in enumerate(changes)
    ]
    assert len(set(given)) == len(changes)


HARMLESS = {
    "temperature": 0.5,
    "top_k": "many",
    "top_p": 0.5,
    "min_p": 0.1,
    "top_h": 0.1,
    "typical_p": 0.5,
    "epsilon_cutoff": 0.1,
    "eta_cutoff": 0.1,
    "diversity_penalty": 0.5,
    "num_assistant_tokens": 3,
    "num_assistant_tokens_schedule": "heuristic",
    "assistant_confidence_threshold": 0.9,
    "assistant_lookbehind": 3,
    "assistant_ensemble_weight": 0.5,
    "target_lookbehind": 3,
    "max_matching_ngram_size": 3,
    "speculation_type": "dflash",
    "remove_invalid_values": True,
    "use_cache": False,
    "cache_implementation": "static",
    "cache_config": {"nbits": 4},
    "max_cache_len": 64,
    "prefill_chunk_size": 4,
    "low_memory": True,
    "disable_compile": True,
    "continuous_batching_config": None,  # transformers warns about any other value
    "output_attentions": True,
    "output_hidden_states": True,
    "output_scores": True,
    "output_logits": True,
    "return_dict_in_generate": True,
    "of_another_program": [1, 2],
}


def test_settings_without_effect_have_none(converted: Converted, tmp_path: Path) -> None:
    assert HARMLESS.keys() - {"of_another_program"} == WITHOUT_EFFECT
    source, _, _ = converted
    outputs = []
    for name, change in (("plain", {}), ("odd", HARMLESS)):
        checkpoint = import_checkpoint(variant(source, tmp_path / name, {}, {**BASE, **change}))
        rows = [Row(ids, ()) for ids in sources(checkpoint)]
        assert checkpoint.open_reference is not None
        with checkpoint.open_reference() as reference:
            outputs.append([reference.generate(rows, beam_size, 20) for beam_size in (1, 4)])
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cache_implementation": "wax"}, "can't load it: ValueError: Invalid `cache_implementation` (wax)"),
        ({"validate": 3}, "can't load it: TypeError"),
    ],
)
def test_what_transformers_refuses_is_one_line(
    converted: Converted, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    source, _, _ = converted
    folder = variant(source, tmp_path / "checkpoint", {}, {**IDS, "max_length": 24, **settings})
    checkpoint = import_checkpoint(folder)
    assert checkpoint.open_reference is not None
    with pytest.raises(CheckpointError) as error, checkpoint.open_reference():
        pass
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_forced_language_gives_way_to_the_callers(tmp_path: Path) -> None:
    folder = checkpoints.m2m100(tmp_path / "plain", encoder_layers=1, decoder_layers=1)
    settings = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    plain = import_checkpoint(folder)
    german, french = (
        next(pair.target_prefix_ids for pair in plain.pairs() if pair.target_language_code == code)
        for code in ("de", "fr")
    )
    forced = variant(folder, tmp_path / "forced", {}, {**settings, "forced_bos_token_id": french[0]})
    rows = [Row(ids, german) for ids in sources(plain)]
    outputs = []
    for checkpoint in (plain, import_checkpoint(forced)):
        assert checkpoint.open_reference is not None
        with checkpoint.open_reference() as reference:
            outputs.append(reference.generate(rows, 4, 20))
    assert outputs[0] == outputs[1]
    strange = variant(folder, tmp_path / "strange", {}, {**settings, "forced_bos_token_id": 5})
    with pytest.raises(CheckpointError, match="forced_bos_token_id is 5; supported: the languages' tokens"):
        import_checkpoint(strange)
