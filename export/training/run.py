"""Trains and scores: from a recipe and a corpus to a checkpoint, and its scores."""

import contextlib
import dataclasses
import json
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click
import numpy as np
import sentencepiece
import torch

from export.architecture import ModelConfig
from export.architecture.transformer import Transformer
from export.importers.imported import CheckpointError
from export.importers.native.folder import TOKENIZER_NAME, CheckpointInfo
from export.importers.native.importer import import_native
from export.training.batches import Batch, make_batch
from export.training.checkpoint import BestCheckpoint, save_checkpoint
from export.training.corpus import EncodedCorpus, Pair, read_pairs
from export.training.loop import LOG_NAME, Hardware, Trainer
from export.training.plot import plot_losses
from export.training.preparation import prepare
from export.training.recipe import Recipe, load_recipe
from export.training.scoring import score_by_part
from service.domain.errors import counted

MAX_SERVED_TOKENS = 128  # training used at most `max_tokens`; positions far beyond them translate badly


def run_training(
    recipe_path: Path,
    data: Sequence[Path],
    output: Path,
    init: Path | None,
    finish_steps: int | None,
    device: str,
    compile_: bool | None,
    bfloat16: bool | None,
    threads: int | None,
) -> None:
    """Run `train`; options are `None` where they were not given."""
    try:
        recipe = load_recipe(recipe_path)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if device == "cuda" and not torch.cuda.is_available():
        raise click.ClickException("--device cuda: torch finds no GPU here; use --device cpu.")
    if threads:
        torch.set_num_threads(threads)
    torch.manual_seed(recipe.schedule.seed)
    prepared = prepare(recipe, list(data), output, init / TOKENIZER_NAME if init else None)
    model = _initial_model(recipe, prepared.tokenizer, init)
    hardware = Hardware(
        device=torch.device(device),
        workers=torch.get_num_threads(),
        bfloat16=_has_bfloat16(device) if bfloat16 is None else bfloat16,
        compile=device == "cuda" if compile_ is None else compile_,
    )
    validation = _validation_batches(prepared.validation, model.config)

    def write(model: Transformer) -> None:
        checkpoint = output / "checkpoint"
        save_checkpoint(model, _info(recipe), output / TOKENIZER_NAME, checkpoint)
        shutil.copyfile(recipe_path, checkpoint / "recipe.toml")

    best = BestCheckpoint(output, write)
    trainer = Trainer(recipe, model, prepared.tokenizer, prepared.training, validation, output, hardware, best.offer)
    try:
        if finish_steps is None:
            trainer.resume()
        else:
            trainer.finish(finish_steps)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if trainer.progress.step:
        click.echo(f"Continuing from step {trainer.progress.step} in {output}.", err=True)
    with _calling_on_signals(trainer.stop):
        is_done = trainer.run()
    progress = trainer.progress
    amount = f"{counted(progress.step, 'step')}, {progress.tokens / 1e6:.1f} M tokens"
    if not is_done:
        click.echo(f"Stopped after {amount}; run the same command to continue.")
        return
    plot_losses(output / LOG_NAME, output / "checkpoint" / "loss.png", f"{recipe.name}: {amount}")
    click.echo(f"Wrote {output / 'checkpoint'}: {amount}, validation loss {best.loss:.3f}.")


def print_scores(checkpoint: Path, files: Sequence[Path], device: str, output: Path | None) -> None:
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(checkpoint / TOKENIZER_NAME))
    pairs: list[Pair] = []
    for path in files:
        read = read_pairs(path)
        pairs += [dataclasses.replace(pair, part=pair.part or path.name.partition(".")[0]) for pair in read]
    model = _import(checkpoint).to(device)
    scores, _ = score_by_part(model, tokenizer, pairs, torch.device(device))
    click.echo("| part | lines | BLEU | chrF |\n| --- | ---: | ---: | ---: |")
    for row in scores:
        click.echo(f"| {row.part} | {row.lines} | {row.bleu:.1f} | {row.chrf:.1f} |")
    click.echo(f"\nBLEU {scores[0].bleu_signature}\nchrF {scores[0].chrf_signature}")
    if output:
        output.write_text(json.dumps([dataclasses.asdict(row) for row in scores], indent=2) + "\n", encoding="utf-8")


@contextlib.contextmanager
def _calling_on_signals(action: Callable[[], None]) -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: action()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _initial_model(recipe: Recipe, tokenizer: sentencepiece.SentencePieceProcessor, init: Path | None) -> Transformer:
    if init is not None:
        return _import(init).requires_grad_(True)  # importers freeze the parameters
    size = tokenizer.get_piece_size()
    try:
        document = {"source_vocabulary_size": size, "target_vocabulary_size": size, **recipe.model}
        return Transformer(ModelConfig.from_document(document))
    except ValueError as error:
        raise click.ClickException(f"[model] of the recipe: {error}") from error


def _validation_batches(corpus: EncodedCorpus, config: ModelConfig) -> list[Batch]:
    lengths = np.diff(corpus.source_starts)
    groups = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
    return [make_batch(corpus, rows, config.decoder_start_id, config.pad_id) for rows in groups]


def _info(recipe: Recipe) -> CheckpointInfo:
    return CheckpointInfo(
        name=recipe.name,
        source_language_code=recipe.source_language_code,
        target_language_code=recipe.target_language_code,
        max_source_tokens=MAX_SERVED_TOKENS,
        max_output_tokens=MAX_SERVED_TOKENS,
        licence=recipe.licence,
    )


def _import(folder: Path) -> Transformer:
    try:
        return Transformer.of(import_native(folder).model)
    except CheckpointError as error:
        raise click.ClickException(str(error)) from error


def _has_bfloat16(device: str) -> bool:
    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    return bool(torch.cpu.get_capabilities().get("avx512_bf16"))
