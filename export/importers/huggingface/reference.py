"""transformers' own model and `generate`, as the reference for a converted checkpoint."""

import contextlib
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from export.architecture import PositionConfig
from export.architecture.positions import sinusoidal_table
from export.importers.huggingface.generation import WITHOUT_EFFECT
from export.importers.imported import CheckpointError, Reference, Row
from export.stages import progress

MAX_BATCH_SIZE = 64
MAX_BATCH_LOGITS = 2**24  # generate holds several arrays of this many numbers


@contextlib.contextmanager
def open_transformers(directory: Path, positions: PositionConfig | None = None) -> Iterator[Reference]:
    """Load a checkpoint for the duration of the block; sinusoidal `positions`, if given, replace its own."""
    with _quiet():
        from transformers import AutoModelForSeq2SeqLM

        with _refusals(directory, "load it"):
            model: Any = AutoModelForSeq2SeqLM.from_pretrained(directory, local_files_only=True, dtype=torch.float32)
        if positions is not None:
            for side in (model.model.encoder, model.model.decoder):
                table = side.embed_positions.weight
                table.data = torch.from_numpy(sinusoidal_table(len(table), table.shape[1], positions))
        for name in WITHOUT_EFFECT:  # some are for other models, or make `generate` return something else
            setattr(model.generation_config, name, None)
        yield TransformersReference(model.eval(), directory)


@contextlib.contextmanager
def _refusals(directory: Path, what: str) -> Iterator[None]:
    """Turn any exception of transformers into one line: there is no list of those it may raise."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        reason = f"transformers {metadata.version('transformers')} can't {what}: {type(error).__name__}: {error}"
        raise CheckpointError(directory, [reason]) from error


class TransformersReference:
    """A `Reference`."""

    def __init__(self, model: Any, directory: Path) -> None:
        self._model = model
        self._directory = directory

    @property
    def name(self) -> str:
        return f"transformers {metadata.version('transformers')} {type(self._model).__name__}"

    @property
    def options(self) -> Mapping[str, float]:
        return {}

    @torch.no_grad()
    def generate(self, rows: Sequence[Row], beam_size: int, max_output_tokens: int) -> list[tuple[int, ...]]:
        outputs: list[tuple[int, ...]] = []
        size = self._batch_size(beam_size)
        for start in progress(range(0, len(rows), size), f"{type(self._model).__name__}, beam {beam_size}"):
            with _refusals(self._directory, "translate with it"):
                outputs += self._generate(rows[start : start + size], beam_size, max_output_tokens)
        return outputs

    def _batch_size(self, beam_size: int) -> int:
        fitting: int = MAX_BATCH_LOGITS // (self._model.config.vocab_size * beam_size)
        return max(1, min(fitting, MAX_BATCH_SIZE))

    def _generate(self, rows: Sequence[Row], beam_size: int, max_output_tokens: int) -> list[tuple[int, ...]]:
        settings = self._model.generation_config
        pad_id, eos_ids = self._model.config.pad_token_id, settings.eos_token_id
        eos_id = eos_ids[0] if isinstance(eos_ids, list) else eos_ids
        width, num_forced = max(len(row.source_ids) for row in rows), len(rows[0].target_prefix_ids)
        forces_end = settings.forced_eos_token_id is not None
        result = self._model.generate(
            input_ids=torch.tensor([[*ids, *[pad_id] * (width - len(ids))] for ids, _ in rows]),
            attention_mask=torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in rows]),
            num_beams=beam_size,
            do_sample=False,
            logits_processor=[_forced_prefixes(rows, beam_size)],
            max_length=1 + num_forced + max_output_tokens + forces_end,
            max_new_tokens=None,
        )
        return [_cut(row.tolist()[1 + num_forced :], eos_id, max_output_tokens) for row in result]


def _forced_prefixes(rows: Sequence[Row], beam_size: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function like `forced_bos_token_id`, with a separate token for each row; prefixes have equal lengths."""
    prefixes = torch.tensor([row.target_prefix_ids for row in rows]).repeat_interleave(beam_size, dim=0)

    def force(input_ids: Tensor, scores: Tensor) -> Tensor:
        position = input_ids.shape[1] - 1
        if position >= prefixes.shape[1]:
            return scores
        return torch.full_like(scores, -torch.inf).scatter_(1, prefixes[:, position : position + 1], 0.0)

    return force


def _cut(token_ids: list[int], eos_id: int, max_output_tokens: int) -> tuple[int, ...]:
    """Return the ids up to the end-of-sentence token, chosen by the model or forced, and without it."""
    if eos_id in token_ids:
        token_ids = token_ids[: token_ids.index(eos_id)]
    return tuple(token_ids[:max_output_tokens])


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    from transformers.utils import logging as own_logging

    logger = logging.getLogger("transformers")
    level = logger.level
    own_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            logger.setLevel(logging.ERROR)
            yield
    finally:
        logger.setLevel(level)
        own_logging.enable_progress_bar()
