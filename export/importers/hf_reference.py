"""transformers' own model and `generate`, to hold a converted checkpoint against."""

import contextlib
import itertools
import logging
import warnings
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from export.importers.imported import Reference, Row

MAX_BATCH_SIZE = 64
MAX_BATCH_LOGITS = 2**24  # generate holds several arrays of that many numbers


@contextlib.contextmanager
def open_transformers(directory: Path) -> Iterator[Reference]:
    """Load the checkpoint with transformers for as long as the `with` block lasts."""
    with _quiet():
        from transformers import AutoModelForSeq2SeqLM

        model: Any = AutoModelForSeq2SeqLM.from_pretrained(directory, local_files_only=True, dtype=torch.float32)
        yield _TransformersReference(model.eval())


class _TransformersReference:
    """A `Reference`."""

    def __init__(self, model: Any) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return f"transformers {metadata.version('transformers')} {type(self._model).__name__}"

    @torch.no_grad()
    def generate(self, rows: Sequence[Row], beam_size: int, max_output_tokens: int) -> list[tuple[int, ...]]:
        """As `Reference.generate`."""
        outputs: dict[int, tuple[int, ...]] = {}
        by_prefix = sorted(range(len(rows)), key=lambda index: rows[index].target_prefix_ids)
        for prefix, group in itertools.groupby(by_prefix, key=lambda index: rows[index].target_prefix_ids):
            for indices in _batched(group, self._batch_size(beam_size)):
                given = self._generate(
                    [rows[index].source_ids for index in indices], prefix, beam_size, max_output_tokens
                )
                outputs.update(zip(indices, given, strict=True))
        return [outputs[index] for index in range(len(rows))]

    def _batch_size(self, beam_size: int) -> int:
        fitting: int = MAX_BATCH_LOGITS // (self._model.config.vocab_size * beam_size)
        return max(1, min(fitting, MAX_BATCH_SIZE))

    def _generate(
        self, sources: Sequence[Sequence[int]], prefix: tuple[int, ...], beam_size: int, max_output_tokens: int
    ) -> list[tuple[int, ...]]:
        settings = self._model.generation_config
        pad_id, eos_id = settings.pad_token_id, settings.eos_token_id
        width = max(map(len, sources))
        forces_end = settings.forced_eos_token_id is not None
        result = self._model.generate(
            input_ids=torch.tensor([[*source, *[pad_id] * (width - len(source))] for source in sources]),
            attention_mask=torch.tensor([[1] * len(source) + [0] * (width - len(source)) for source in sources]),
            num_beams=beam_size,
            forced_bos_token_id=prefix[0] if prefix else None,
            max_length=1 + len(prefix) + max_output_tokens + forces_end,
            max_new_tokens=None,
        )
        return [_cut(row.tolist()[1 + len(prefix) :], eos_id, max_output_tokens) for row in result]


def _cut(token_ids: list[int], eos_id: int, max_output_tokens: int) -> tuple[int, ...]:
    """Without the end-of-sentence token, whether the model chose it or it was forced, and what is behind it."""
    if eos_id in token_ids:
        token_ids = token_ids[: token_ids.index(eos_id)]
    return tuple(token_ids[:max_output_tokens])


def _batched(indices: Iterator[int], size: int) -> Iterator[tuple[int, ...]]:
    while batch := tuple(itertools.islice(indices, size)):
        yield batch


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' notes, bars and warnings away from the terminal."""
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
