"""CTranslate2 itself as the reference for a converted model, if it is installed."""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from export.importers.ctranslate2.files import MODEL_NAME, ModelFiles
from export.importers.ctranslate2.settings import Settings
from export.importers.ctranslate2.vocabulary import Vocabulary
from export.importers.imported import CheckpointError, Reference, Row

_BATCH_SIZE = 32


@contextlib.contextmanager
def open_ctranslate2(
    files: ModelFiles,
    vocabularies: tuple[Vocabulary, Vocabulary],
    settings: Settings,
    length_penalty: float,
    suppressed_ids: Sequence[int],
) -> Iterator[Reference]:
    """Load the model in float32 for the duration of the `with` block."""
    import ctranslate2

    with tempfile.TemporaryDirectory() as unpacked:
        directory = files.path / files.base
        if not files.is_folder:
            directory = Path(unpacked)
            for name in files.names:
                if Path(name).parent == Path(files.base) and Path(name).name != MODEL_NAME:
                    (directory / Path(name).name).write_bytes(files.read(name))
            (directory / MODEL_NAME).write_bytes(files.read_model())
        try:
            translator = ctranslate2.Translator(str(directory), device="cpu", compute_type="float32", intra_threads=1)
        except (RuntimeError, ValueError) as error:
            raise CheckpointError(files.path, [f"{_name()} can't load it: {error}"]) from error
        yield _Ctranslate2(translator, files.path, vocabularies, settings, length_penalty, suppressed_ids)


def _name() -> str:
    return f"CTranslate2 {metadata.version('ctranslate2')}"


class _Ctranslate2:
    """A `Reference`."""

    def __init__(
        self,
        translator: Any,
        path: Path,
        vocabularies: tuple[Vocabulary, Vocabulary],
        settings: Settings,
        length_penalty: float,
        suppressed_ids: Sequence[int],
    ) -> None:
        self._translator, self._path, self._settings = translator, path, settings
        self._source, self._target = vocabularies
        self._length_penalty = length_penalty
        self._forbidden = [[self._target.tokens[index]] for index in suppressed_ids if index < len(self._target.tokens)]

    @property
    def name(self) -> str:
        return _name()

    @property
    def options(self) -> Mapping[str, float]:
        """Translations are not empty: of beams after a prefix, only the best one may end at once in CTranslate2."""
        return {"min_output_tokens": 1}

    def generate(self, rows: Sequence[Row], beam_size: int, max_output_tokens: int) -> list[tuple[int, ...]]:
        """Translate as in `Reference.generate`; the end of a sentence counts in an output's length, as ours."""
        num_prefix = len(rows[0].target_prefix_ids)
        begin, end = int(self._settings.adds_source_bos), -1 if self._settings.adds_source_eos else None
        try:
            results = self._translator.translate_batch(
                [[self._source.tokens[index] for index in row.source_ids[begin:end]] for row in rows],
                target_prefix=[self._start(row) for row in rows],
                beam_size=beam_size,
                length_penalty=self._length_penalty,
                max_batch_size=_BATCH_SIZE,
                max_input_length=0,
                min_decoding_length=num_prefix + int(self.options["min_output_tokens"]),
                max_decoding_length=num_prefix + max_output_tokens,
                suppress_sequences=self._forbidden,
                return_end_token=True,
            )
        except (RuntimeError, ValueError) as error:
            raise CheckpointError(self._path, [f"{_name()} can't translate with it: {error}"]) from error
        return [self._ids(row, result.hypotheses[0]) for row, result in zip(rows, results, strict=True)]

    def _start(self, row: Row) -> list[str]:
        prefix = [self._target.tokens[index] for index in row.target_prefix_ids]
        return prefix if self._settings.start_token is not None else [self._settings.eos_token, *prefix]

    def _ids(self, row: Row, tokens: Sequence[str]) -> tuple[int, ...]:
        ids = [self._target.ids[token] for token in tokens][len(row.target_prefix_ids) :]
        eos_id = self._target.ids[self._settings.eos_token]
        return tuple(ids[: ids.index(eos_id)] if eos_id in ids else ids)
