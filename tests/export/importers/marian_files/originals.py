"""Models as they are imported, without a bundle: their translations and scores in float32."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from export.architecture.transformer import Transformer, padding_mask
from export.importers.options import ImportOptions
from export.importers.selection import import_checkpoint
from service.text.tokenizers import Tokenizer, load_tokenizer

ENGLISH_GERMAN = ImportOptions(source_language="en", target_language="de")
UNKNOWN = " \N{DOUBLE QUESTION MARK} "  # SentencePiece's text of `<unk>`


class Original:
    """A folder's model in float32, and what it makes of some lines."""

    def __init__(self, directory: Path, lines: Sequence[str], options: ImportOptions = ENGLISH_GERMAN) -> None:
        self.checkpoint = import_checkpoint(directory, None, options)
        self.model = Transformer.of(self.checkpoint.model)
        spec = self.checkpoint.tokenizer
        with tempfile.TemporaryDirectory() as written:
            for name, given in self.checkpoint.tokenizer_files.items():
                if isinstance(given, Path):
                    shutil.copyfile(given, Path(written) / name)
                else:
                    given(Path(written) / name)
            self.tokenizer: Tokenizer = load_tokenizer(spec, Path(written))
        (pair,) = self.checkpoint.languages
        self.sources = [spec.source_ids(self.tokenizer.encode(line), pair) for line in lines]

    def texts(self, outputs: Sequence[Sequence[int]]) -> list[str]:
        """Return outputs as text; unknown tokens are nothing."""
        return [self.tokenizer.decode(output).replace(UNKNOWN, "") for output in outputs]

    def greedy(self) -> list[str]:
        """Return translations by the most probable tokens that are not suppressed."""
        return self.texts(self.decode(self.forbid(*self.checkpoint.suppressed_ids)))

    @torch.no_grad()
    def decode(self, forbidden: torch.Tensor, factor: int = 2) -> list[tuple[int, ...]]:
        """Decode all sources together, anew in each step, to at most `factor` times their length; tokens of a mask (V,)
        or (N, V) are never chosen.
        """
        model, config = self.model, self.checkpoint.model.config
        lengths, memory, mask = self._encoded()
        read = torch.full((len(lengths), 2 + factor * int(lengths.max())), config.eos_id)
        read[:, 0] = config.decoder_start_id
        running = torch.arange(len(read))
        for length in range(1, read.shape[1] - 1):
            hidden = model.decoder(read[running, :length], memory[running], mask[running])[:, -1]
            logits = model.projection(hidden).masked_fill(forbidden.expand(len(read), -1)[running], -torch.inf)
            read[running, length] = logits.argmax(-1)
            running = running[(read[running, length] != config.eos_id) & (factor * lengths[running] > length)]
            if not len(running):
                break
        return [tuple(row[1 : row.index(config.eos_id)]) for row in read.tolist()]

    @torch.no_grad()
    def scores(self, targets: Sequence[str]) -> list[float]:
        """Return the summed log-probabilities of translations of the sources."""
        model, config = self.model, self.checkpoint.model.config
        _, memory, mask = self._encoded()
        wanted = [(*self.tokenizer.encode_target(target), config.eos_id) for target in targets]
        width = max(map(len, wanted))
        padded = torch.tensor([[*ids, *[config.eos_id] * (width - len(ids))] for ids in wanted])
        read = torch.cat([torch.full((len(wanted), 1), config.decoder_start_id), padded[:, :-1]], dim=1)
        log_probs = model.projection(model.decoder(read, memory, mask)).log_softmax(-1)
        chosen = log_probs.gather(-1, padded[..., None])[..., 0]
        return [float(row[: len(ids)].sum()) for row, ids in zip(chosen, wanted, strict=True)]

    def forbid(self, *token_ids: int) -> torch.Tensor:
        """Return a mask (V,) of tokens."""
        size = self.checkpoint.model.config.target_vocabulary_size
        return torch.isin(torch.arange(size), torch.tensor(token_ids))

    def _encoded(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the lengths of the sources, what the encoder makes of them, and the mask of their tokens."""
        pad_id = self.checkpoint.model.config.pad_id
        lengths = torch.tensor([len(source) for source in self.sources])
        width = int(lengths.max())
        source_ids = torch.tensor([[*source, *[pad_id] * (width - len(source))] for source in self.sources])
        mask = padding_mask(lengths, width)
        return lengths, self.model.encoder(source_ids, mask), mask
